"""What Chinese says about the speaker: sentences, their clauses, and the frames those fit.

Patterns are matched on simplified signs; what is kept is the text as it was written.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.rules import chinese_words as words
from app.rules.chinese_ability import HABITS, SKILLS
from app.rules.chinese_clauses import (
    ME,
    WE,
    clauses,
    clean,
    is_about_others,
    is_acquaintance,
    is_subject_only,
    is_time,
    kin_in_passing,
    kin_predicate,
    subject_end,
)
from app.rules.chinese_events import EVENTS
from app.rules.chinese_exclusions import (
    is_excluded,
    is_question,
    is_task,
    is_writing,
    opens_text,
    supposes,
)
from app.rules.chinese_family import FAMILY
from app.rules.chinese_frames import PAST_TIME, Frame
from app.rules.chinese_life import FORMER, GONE, LIFE
from app.rules.chinese_persons import IDENTITY
from app.rules.chinese_plans import DECISIONS, GOALS
from app.rules.chinese_project import of_project
from app.rules.chinese_taste import LIMITS, TASTE, TOPICS
from app.rules.chinese_telling import third_person, wanted
from app.rules.chinese_turns import (
    AIMS,
    ANNOUNCED,
    AS,
    ASKS,
    AT_HAND,
    COMMENT,
    DENIED,
    DOCTOR,
    LET_US,
    OFTEN,
    PLACE_JOB,
    WEATHER,
    WORK_JOB,
)
from app.rules.chinese_vetoes import VETO
from app.rules.chinese_wishes import CALLED, ORDER, POLITE, asked_after, asked_before
from app.rules.chinese_words import simplified
from app.rules.patterns import exact
from app.rules.sentences import sentences, without_foreign_words
from app.rules.statements import ASKED, EXPLICIT, IMPLIED, Statement

__all__ = ["clean", "read", "remembered"]

_FRAMES: Final = (
    *VETO, *FORMER, *IDENTITY, *DECISIONS, *LIMITS, *GOALS, *TASTE, *SKILLS, *EVENTS, *LIFE, *GONE,
    *HABITS,
)  # fmt: skip
_ME: Final = "我"


def read(text: str) -> list[Statement]:
    """Statements of one message, in order; never raises, linear in the length of the text."""
    found: dict[str, Statement] = {}
    about: str | None = _ME
    for each in sentences(without_foreign_words(text), chinese=True):
        folded = simplified(each.text)
        if opens_text(folded):
            break
        reading = _Reading(about)
        for statement in reading.sentence(each.text, question=each.question):
            found.setdefault(statement.content, statement)
        about = _ME if reading.about == _ME else None
        if reading.stopped:
            break
    return list(found.values())


def remembered(said: str, *, separated: bool) -> Iterator[Statement]:
    """What somebody asks to be remembered: read as ever, else kept as it was said."""
    yield from _Reading(_ME).remembered(said, separated=separated)


class _Reading:
    """One sentence, read clause by clause; `about` is whom a clause without subject is about."""

    def __init__(self, about: str | None) -> None:
        self.about = about
        self.stopped = False
        self._opening = ""
        self._settled = False
        self._aimed = False

    def sentence(self, said: str, *, question: bool) -> Iterator[Statement]:
        folded = simplified(said)
        asked = asked_before(folded)
        if asked and not is_question(folded) and not question:
            yield from self.remembered(said[asked.end() :], separated=bool(asked["mark"].strip()))
            return
        behind = asked_after(folded)
        if behind is not None and not question:
            yield from self.remembered(said[:behind], separated=True)
            return
        order = None if POLITE.search(folded) else ORDER.match(folded)
        if order and not question and not is_question(folded):
            yield wanted(clean(said[: order.end()]))
            return
        yield from self._clauses(clauses(said), question=question)

    def remembered(self, said: str, *, separated: bool) -> Iterator[Statement]:
        said = said.strip(" ，,：:")
        folded = simplified(said)
        if len(said) < 3 or is_question(folded):
            return
        order = ORDER.match(folded)
        found = list(self._clauses(clauses(said), question=False)) if not order else []
        if found:
            for each in found:
                yield Statement(
                    each.content, each.memory_type, ASKED, each.retracts, each.past, each.project
                )
            return
        about_me = re.match(rf"{ME}|{WE}|我们|家|咱|[^我]{{1,8}}(?:是|叫|在)", folded)
        if order or not (separated or about_me):
            if order or re.match(r"(?:用|不要|别|每次|以后|先|回答|叫我|把(?!手|脚))", folded):
                yield wanted(clean(said), confidence=ASKED)
            return
        yield Statement(third_person(clean(said)), "fact", ASKED)

    def _clauses(self, pieces: Sequence[str], *, question: bool) -> Iterator[Statement]:
        supposed = False
        for number, clause in enumerate(pieces):
            folded = simplified(clause)
            last = number == len(pieces) - 1
            asks = is_question(folded) or (question and last)
            asked = asked_before(folded) if number and not asks else None
            if asked:
                later = "，".join([clause[asked.end() :], *pieces[number + 1 :]])
                yield from self.remembered(later, separated=False)
                return
            supposed = supposed or supposes(folded)
            if supposed:
                continue
            yield from _in_passing(folded)
            if is_task(folded) and not LET_US.match(folded):
                if is_writing(folded):
                    self.stopped = True
                    return
            elif asks:
                yield from self._before_question(clause, folded)
            elif last or not self._prepares(clause, folded):
                yield from self._said(clause, folded, first=not number)

    def _prepares(self, clause: str, folded: str) -> bool:
        """Take note of a clause that only says how the next one is meant."""
        if is_subject_only(folded):
            self.about = _ME
        elif is_time(folded):
            self._opening = clause
        elif AIMS.search(folded):
            self._aimed, self.about = True, _ME
        elif ANNOUNCED.match(folded):
            self._settled, self.about = True, _ME
        else:
            return False
        return True

    def _said(self, clause: str, folded: str, *, first: bool) -> Iterator[Statement]:
        order = None if first or POLITE.search(folded) else ORDER.match(folded)
        if order and not re.match(ME, folded):
            yield wanted(clean(clause[: order.end()]))
            return
        yield from self._one(clause, folded)
        self._opening = ""

    def _before_question(self, clause: str, folded: str) -> Iterator[Statement]:
        """What stands before a question in one breath: 我对青霉素过敏能吃头孢吗."""
        asks = ASKS.search(folded, 5)
        if (
            not asks
            or not re.match(ME, folded)
            or re.search(r"[是的会想]$", folded[: asks.start()])
        ):
            return
        stem = clean(clause[: asks.start()])
        for each in self._one(stem, simplified(stem)):
            if each.memory_type in {"constraint", "fact"}:
                yield each

    def _one(self, clause: str, folded: str) -> Iterator[Statement]:
        if self._settled:
            self._settled = False
            plain = re.sub(r"^(?:我们|我|咱们?|就|还是|决定)+", "", clause)
            yield Statement(third_person(f"{self._opening}决定{plain}"), "decision")
            return
        if self._aimed:
            self._aimed = False
            yield Statement(third_person(f"我的目标是{clause}"), "goal", past=False)
            return
        if is_excluded(folded) and not DOCTOR.match(folded):
            if not re.match(ME, folded) and not re.search(r"现在|今", folded):
                return
            self.about = _ME
            return
        for attempt in (self._called, self._of_people, self._of_project, self._settling):
            found = attempt(clause, folded)
            if found is not None:
                yield from found
                return
        yield from self._of_me(clause, folded)

    def _called(self, clause: str, folded: str) -> list[Statement] | None:
        match = CALLED.match(folded)
        if not match:
            return None
        name = clause[match.start("name") : match.end("name")]
        return [Statement(f"用户希望被叫做{name}", "fact")]

    def _of_people(self, clause: str, folded: str) -> list[Statement] | None:
        predicate = kin_predicate(folded, bare=self.about == _ME)
        if predicate is not None:
            # "我和男朋友" is about the user, and 我姐姐 about the sister.
            self.about = None
            if AT_HAND.search(folded) or not (
                FAMILY.match(predicate) or _framed(predicate, folded, bare=True)
            ):
                return []
            return [Statement(third_person(clause), "fact")]
        if is_acquaintance(folded):
            self.about = None
            return [Statement(third_person(clause), "fact")]
        if DOCTOR.match(folded):
            return [Statement(third_person(clause), "constraint")]
        as_what = AS.fullmatch(folded)
        if as_what:
            self.about = _ME
            what = clause[as_what.start("what") : as_what.end("what")]
            return [Statement(f"用户是{what}", "fact", IMPLIED)]
        return None

    def _of_project(self, clause: str, folded: str) -> list[Statement] | None:
        kind = of_project(folded)
        if kind is None:
            return None
        text = third_person(clause) if re.match(r"我|咱", folded) else f"用户的团队{clause}"
        return [Statement(text, kind, past=kind == "decision", project=True)] if kind else []

    def _settling(self, clause: str, folded: str) -> list[Statement] | None:
        if not LET_US.match(folded) or AT_HAND.search(folded):
            return None
        settled = re.match(r"(?:最后|最终|还是|我们|咱们?){0,6}(?:敲定|选定|定)", folded)
        body = re.sub(r"^(?:那就|那|好|行|OK|ok|咱们?|我们|就|干脆)+", "", clause)
        verb = "" if settled else "决定"
        self.about = _ME
        return [
            Statement(f"用户{self._opening}{verb}{third_person(body, subject=False)}", "decision")
        ]

    def _of_me(self, clause: str, folded: str) -> Iterator[Statement]:
        if AT_HAND.search(folded):
            self.about = None if is_about_others(folded) else self.about
            return
        if folded.startswith((_ME, "咱", "俺")) and is_about_others(folded):
            self.about = None
            return
        subject = subject_end(folded)
        topic = _topic(clause, folded) if not subject or subject[0] >= 1 else None
        if topic is not None and (subject or self.about == _ME):
            yield topic
            return
        if subject:
            start, end = subject
            opening = self._opening + clause[:start]
            self.about = None if _introduces(folded) else _ME
            yield from _stated(clause[start:], folded[start:], end - start, opening)
            return
        if is_about_others(folded):
            self.about = None
            return
        if self.about == _ME and not POLITE.search(folded) and not WEATHER.search(folded):
            if COMMENT.match(folded):
                return
            if _introduces(folded):
                self.about = None
            yield from _stated(f"我{clause}", f"我{folded}", 1, self._opening, bare=True)


def _in_passing(folded: str) -> Iterator[Statement]:
    for kin, age in kin_in_passing(folded):
        yield Statement(f"用户的{kin}{age}", "fact", IMPLIED)


def _introduces(folded: str) -> bool:
    """Tell whether the next clause is about a person or animal that this one introduces."""
    return re.search(rf"[有养](?:了|着)?\S{{0,5}}?(?:{words.RELATIONS})", folded) is not None


def _topic(clause: str, folded: str) -> Statement | None:
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


def _stated(
    clause: str, folded: str, start: int, opening: str, *, bare: bool = False
) -> Iterator[Statement]:
    """What follows "我"."""
    body, whole = folded[start:], simplified(opening) + folded
    frame = _framed(body, whole, bare=bare)
    if frame is None:
        return
    retracts = frame.may_retract and DENIED.search(folded) is not None
    kind = "fact" if retracts else frame.memory_type or "fact"
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


_FREQUENT: Final = exact(words.FREQUENCY)
_HAPPENED: Final = exact(r"了|过|到|毕业[于自]|骨折|手术|上岸|录取|入选|当选|成功")


def _framed(body: str, whole: str, *, bare: bool) -> Frame | None:
    frames: Sequence[Frame] = (*VETO, *HABITS, *_FRAMES) if OFTEN.match(body) else _FRAMES
    for frame in frames:
        if (bare and not frame.bare) or (frame.within and not frame.within.search(whole)):
            continue
        if not frame.pattern.match(body):
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
