"""What an ended session taught, put together from what was decided, mended and planned."""

from collections.abc import Sequence
from typing import Final

from app.language.llm.extractor import Proposed
from app.language.text.normal_forms import has_cjk

_TAUGHT: Final = ("decision", "correction", "goal", "constraint")
_MOST: Final = 5


def experience(proposals: Sequence[Proposed]) -> Proposed | None:
    """One proposal that strings together what the session settled, in the order of proposals.

    No word is new but the heading. None when nothing was decided, corrected or planned; a
    constraint alone is no lesson.
    """
    found = [each for each in proposals if each.memory_type in _TAUGHT and not each.retracts]
    if not any(each.memory_type != "constraint" for each in found):
        return None
    best = sorted(found, key=lambda each: _TAUGHT.index(each.memory_type))[:_MOST]
    chosen = [each for each in found if each in best]
    told = [each.content.rstrip(" .。") for each in chosen]
    chinese = sum(map(has_cjk, told)) * 2 > len(told)
    return Proposed(
        content=f"本次会话中用户说：{'；'.join(told)}。"
        if chinese
        else f"In this session the user said: {'; '.join(told)}.",
        memory_type="experience",
        confidence=min(each.confidence for each in chosen),
        evidence=tuple(
            dict.fromkeys(message_id for each in chosen for message_id in each.evidence)
        ),
        scope=chosen[0].scope if len({each.scope for each in chosen}) == 1 else "user",
    )
