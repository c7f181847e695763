"""Which frame what a Chinese clause says of the speaker fits, and what is kept of it.

Patterns are matched on simplified signs; what is kept is the text as it was written.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.language.keyless import chinese_words as words
from app.language.keyless.chinese_ability import HABITS, SKILLS
from app.language.keyless.chinese_cutting import is_about_others, is_time, kin_in_passing
from app.language.keyless.chinese_doubts import goes_on
from app.language.keyless.chinese_events import EVENTS
from app.language.keyless.chinese_frames import PAST_TIME, Frame
from app.language.keyless.chinese_life import FORMER, GONE, LIFE
from app.language.keyless.chinese_persons import IDENTITY
from app.language.keyless.chinese_plans import DECISIONS, GOALS, UNDER_WAY
from app.language.keyless.chinese_taste import LIMITS, TASTE
from app.language.keyless.chinese_telling import third_person
from app.language.keyless.chinese_topics import TOPICS
from app.language.keyless.chinese_turns import DENIED, OFTEN, PLACE_JOB, WORK_JOB
from app.language.keyless.chinese_vetoes import VETO
from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import exact
from app.language.keyless.statements import EXPLICIT, IMPLIED, Statement

_FRAMES: Final = (
    *VETO, *FORMER, *IDENTITY, *DECISIONS, *UNDER_WAY, *LIMITS, *GOALS, *TASTE, *SKILLS, *EVENTS,
    *LIFE, *GONE, *HABITS,
)  # fmt: skip
# 每月十五号我先给我妈转一千: first of all, and not for now.
_IN_ORDER: Final = exact(r"^(?:就|都|会|得|要){0,3}先")
_FROM_NOW: Final = exact(r"以后|今后|往后|从今|从明天|从下")
_FREQUENT: Final = exact(words.FREQUENCY)
_HAPPENED: Final = exact(r"了|过|到|毕业[于自]|骨折|手术|上岸|录取|入选|当选|成功")


def in_passing(folded: str) -> Iterator[Statement]:
    """Relatives and their age that a clause names by the way."""
    for kin, age in kin_in_passing(folded):
        yield Statement(f"用户的{kin}{age}", "fact", IMPLIED)


def topic_of(clause: str, folded: str) -> Statement | None:
    """What a clause says of the thing it begins with: 香菜我不吃; None if it begins with none."""
    for kind, pattern in TOPICS:
        match = pattern.match(folded)
        if match and not is_about_others(folded):
            topic = match["topic"] or match.groupdict().get("topic2") or ""
            if is_time(topic) or re.search(
                r"(?:每|平时|早上|晚上|现在|以后|一般|不|就|都|有|去|来|要|会|想)$", topic
            ):
                continue
            return Statement(third_person(clause), kind)
    return None


def stated(
    clause: str, folded: str, start: int, opening: str, *, bare: bool = False
) -> Iterator[Statement]:
    """What is said behind "我", which ends at `start`; `bare` if the clause itself lacks it."""
    body, whole = folded[start:], simplified(opening) + folded
    frame = framed(body, whole, bare=bare)
    if frame is None:
        return
    denied = frame.may_retract and DENIED.search(folded) is not None
    # "以后我不吃主食了" is settled for the time to come, whatever held before.
    ahead = denied and _FROM_NOW.search(whole) is not None
    retracts = denied and not ahead
    kind = "decision" if ahead else "fact" if retracts else frame.memory_type or "fact"
    split = (
        (PLACE_JOB.match(folded) or WORK_JOB.match(folded))
        if kind == "fact" and not retracts
        else None
    )
    if split:
        place = clause[split.start("place") : split.end("place")]
        yield Statement(f"用户在{place}工作", kind, EXPLICIT)
        yield Statement(f"用户{clause[split.start('verb') :]}", kind, EXPLICIT)
        return
    yield Statement(
        third_person(f"{opening}{clause}"), kind, frame.confidence, retracts, frame.past
    )


def framed(body: str, whole: str, *, bare: bool) -> Frame | None:
    """The first frame a predicate fits; None also where it is of the kinds nothing is kept of."""
    if OFTEN.match(whole):
        body = _IN_ORDER.sub("", body)
    frames: Sequence[Frame] = (*VETO, *HABITS, *_FRAMES) if OFTEN.match(body) else _FRAMES
    for frame in frames:
        if (bare and not frame.bare) or (frame.within and not frame.within.search(whole)):
            continue
        fits = frame.pattern.match(body)
        if not fits or (bare and goes_on(body[fits.end() :])):
            continue
        if frame.memory_type == "event" and not (
            _HAPPENED.search(whole) or PAST_TIME.search(whole)
        ):
            continue
        if (
            bare
            and frame.within
            and frame.memory_type == "habit"
            and (often := _FREQUENT.search(body))
            and often.start() > 2
        ):
            continue
        return frame if frame.memory_type is not None else None
    return None
