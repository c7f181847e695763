"""What an ended session taught, put together from what was decided, mended and planned."""

from collections.abc import Sequence
from typing import Final

from app.language.llm.extractor import ConversationTurn, Proposed
from app.language.text.normal_forms import has_cjk

_TAUGHT: Final = ("decision", "correction", "goal", "constraint")
_MOST: Final = 5
_LONGEST: Final = 600


def experience(turns: Sequence[ConversationTurn], proposals: Sequence[Proposed]) -> Proposed | None:
    """One proposal that strings together what the session settled, in the order it was said.

    Extractive and honest about it: no word is new but the heading. None when nothing was
    decided, corrected or planned; a constraint alone is no lesson.
    """
    found = [each for each in proposals if each.memory_type in _TAUGHT and not each.retracts]
    if not any(each.memory_type != "constraint" for each in found):
        return None
    order = {turn.message_id: number for number, turn in enumerate(turns)}
    chosen = sorted(
        sorted(found, key=lambda each: _TAUGHT.index(each.memory_type))[:_MOST],
        key=lambda each: order.get(each.evidence[-1], 0),
    )
    content = _told([each.content for each in chosen])
    evidence = tuple(dict.fromkeys(one for each in chosen for one in each.evidence))
    return Proposed(
        content=content,
        memory_type="experience",
        confidence=min(each.confidence for each in chosen),
        evidence=evidence,
        scope=chosen[0].scope if len({each.scope for each in chosen}) == 1 else "user",
    )


def _told(contents: Sequence[str]) -> str:
    chinese = sum(map(has_cjk, contents)) * 2 > len(contents)
    kept: list[str] = []
    for each in contents:
        if sum(map(len, kept)) + len(each) <= _LONGEST or not kept:
            kept.append(each.rstrip("。.") if chinese else each)
    return f"本次会话：{'；'.join(kept)}。" if chinese else f"In this session: {' '.join(kept)}"
