"""Key decisions of a project, out of what is remembered as one. Pure."""

import re
from collections.abc import Sequence
from typing import Any, Final

from app.language.llm.profiler import KnownMemory
from app.memory.profiles.slots import MOST_DECISIONS

_BECAUSE: Final = re.compile(
    r"[,，;；]?\s*(?:\b(?:because|since|as it|as they|so that)\b|因为|由于|以便|为了)"
    r"\s*(?P<why>.+)",
    re.IGNORECASE | re.DOTALL,
)


def decisions_of(known: Sequence[KnownMemory]) -> tuple[list[dict[str, Any]], list[str]]:
    """Decisions, oldest first, and the memories they are: the newest of them when they are many.

    The reason is what the memory itself gives as one.
    """
    decided = sorted(
        (one for one in known if one.memory_type == "decision"),
        key=lambda one: (one.since, one.memory_id),
    )[-MOST_DECISIONS:]
    return [_decision(one) for one in decided], [one.memory_id for one in decided]


def _decision(one: KnownMemory) -> dict[str, Any]:
    found = _BECAUSE.search(one.content)
    # What stands first would leave no decision.
    if found is None or not one.content[: found.start()].strip():
        return {"decision": one.content, "reason": None, "time": one.since.isoformat()}
    return {
        "decision": one.content[: found.start()].strip(),
        "reason": found["why"].strip().rstrip(".。"),
        "time": one.since.isoformat(),
    }
