"""What a correction mends (the wrong value it names, or the sentence said before that it denies),
and what an ended session taught, put together from what was decided, mended and planned.
"""

from collections.abc import Sequence
from typing import Final

from app.language.keyless.clauses import Clause
from app.language.llm.extractor import Proposed
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import has_cjk
from app.language.text.terms import terms

_BEFORE: Final = 60
_OPENS: Final = lazy_pattern(
    r"(?:^|[.!?,\n]\s*)(?:no|nope|wrong|not (?:quite|true|right|correct)|incorrect|correction"
    r"|i (?:meant|misspoke)|(?:that|it)(?:'s| is| was) (?:wrong|not (?:right|true|correct)"
    r"|incorrect)|you(?:'re| are) (?:wrong|mistaken))\b[^.!?\n]{0,20}[,.:!;]?\s*$"
    r"|(?:不对|不是(?:的|这样|啊)?|错了|说错了?|弄错了?|搞错了?|记错了?|更正(?:一下)?|纠正一下"
    r"|不正确|那是错的)[，。,！!：: ]*$"
)
_INSTEAD: Final = lazy_pattern(
    r"[,;]\s*(?:and )?not (?P<wrong>[^,.;!?]{2,60})[.!]*$"
    r"|而?不是(?P<instead_of>[^，。！]{1,30})[。！]*$"
)
_SENTENCE: Final = lazy_pattern(r"[^.!?。！？\n]+")
_LEAST_IN_COMMON: Final = 0.3


def mistake(text: str, clause: Clause, earlier: Sequence[str]) -> str | None:
    """What was wrong, in the words in which it was said; None where nothing is plainly mended.

    Args:
        text: the message of the clause.
        earlier: what was said before it, the last one first.

    """
    named = _INSTEAD.search(clause.text)
    opened = _OPENS.search(text[max(clause.start - _BEFORE, 0) : clause.start].lower())
    if named:
        wrong: str = named["wrong"] or named["instead_of"]
        return wrong.strip()
    if not opened:
        return None
    said = set(terms(clause.text))
    for turn in earlier:
        sentences: list[str] = [each.strip() for each in _SENTENCE.findall(turn[:2_000])]
        shares = [_share(said, each) for each in sentences]
        if shares and max(shares) >= _LEAST_IN_COMMON:
            return sentences[shares.index(max(shares))]
    return None


def _share(said: set[str], sentence: str) -> float:
    """How much of the words they have in common; a question mends nothing."""
    other = set(terms(sentence))
    return len(said & other) / max(len(said | other), 1)


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
