"""What Chinese says about the speaker: sentences, their clauses, and the frames those fit.

Patterns are matched on simplified signs; what is kept is the text as it was written.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.language.keyless.chinese_conditions import with_condition
from app.language.keyless.chinese_cutting import (
    ME,
    WE,
    clauses,
    clean,
    is_about_others,
    is_acquaintance,
    is_subject_only,
    is_time,
    kin_predicate,
    names_acquaintance,
    subject_end,
)
from app.language.keyless.chinese_doubts import is_doubtful, is_loose
from app.language.keyless.chinese_echoes import NICKNAME, without_echoes
from app.language.keyless.chinese_events import GIVEN_UP
from app.language.keyless.chinese_exclusions import (
    is_excluded,
    is_not_meant,
    is_question,
    is_task,
    is_writing,
    opens_text,
    supposes,
)
from app.language.keyless.chinese_family import FAMILY
from app.language.keyless.chinese_frames import PAST_TIME
from app.language.keyless.chinese_matching import framed, in_passing, stated, topic_of
from app.language.keyless.chinese_project import of_project
from app.language.keyless.chinese_subjects import (
    asks_of_others,
    brings_others,
    introduces,
    is_of_another,
    mentions_people,
    names_nobody,
)
from app.language.keyless.chinese_telling import third_person, wanted
from app.language.keyless.chinese_turns import (
    AIMS,
    ANNOUNCED,
    AS,
    ASKS,
    AT_HAND,
    COMMENT,
    DOCTOR,
    LET_US,
    WEATHER,
)
from app.language.keyless.chinese_wishes import (
    CALLED,
    POLITE,
    asked_after,
    asked_before,
    order_end,
    ordered,
    parted,
)
from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import exact
from app.language.keyless.sentences import sentences, without_foreign_words
from app.language.keyless.statements import ASKED, IMPLIED, Statement
from app.language.text.lazy_pattern import lazy_pattern

__all__ = ["clean", "read", "remembered"]

_ME: Final = "我"
_DATED: Final = lazy_pattern(r"[0-9]{2,4}年|月[0-9一二三四五六七八九十]|去年|前年|昨|上个?月")
_HAPPENED_TO_KIN: Final = exact(
    r"(?:刚刚?|已经|终于|前两天)?(?:出生|去世|过世|走了|没了|死了|结婚|离婚|毕业|生了|做了\S*(?:手术|支架|搭桥|移植)|骨折|确诊|考上|入职|退休了|领证|订婚)"
)
# These say by their verb that it is the speaker who settles or is bound.
_STANDS_ALONE: Final = {"constraint", "decision", "event"}
_SETTLED_WITH: Final = lazy_pattern(r"[他她它]|计较|走下去")
_PASSING_OF_KIN: Final = exact(
    r"不(?:吃饭|吃东西|睡|听话|说话|理|回)|(?:也|都|老|总|一直|非|硬)?(?:想(?!家)|不想|非[要让得]|[要让劝叫催逼]我|(?:天天|又|整天|成天)?(?:催|骂|说|管|嫌|怪|问)我)"
)


def read(text: str, question: str = "", *, answered: bool = False) -> list[Statement]:
    """Statements of one message, in order; never raises, linear in the length of the text.

    What answers a `question` after somebody else is not said of the speaker. What stands behind
    a yes, `answered`, only dwells on what was confirmed, until it says "I".
    """
    found: dict[str, Statement] = {}
    about: str | None = None if answered else _ME
    asked = asks_of_others(simplified(question))
    later, follows = False, True
    for each in sentences(without_foreign_words(text), chinese=True):
        folded = simplified(each.text)
        if opens_text(folded):
            break
        aside, asked = asked and names_nobody(folded), False
        reading = _Reading(None if aside else about, later=later, follows=follows)
        for statement in reading.sentence(each.text, question=each.question):
            found.setdefault(statement.content, statement)
        about = _ME if aside or reading.about == _ME else None
        later, follows = True, reading.follows
        if reading.stopped:
            break
    return without_echoes(list(found.values()))


def remembered(said: str, *, separated: bool) -> Iterator[Statement]:
    """What somebody asks to be remembered: read as ever, else kept as it was said."""
    yield from _Reading(_ME).remembered(said, separated=separated)


class _Reading:
    """One sentence, read clause by clause; `about` is whom a clause without subject is about.

    Such a clause behind others counts only if it `follows` one about the speaker and nobody else.
    """

    def __init__(self, about: str | None, *, later: bool = False, follows: bool = True) -> None:
        self.about = about
        self.follows = follows
        self.stopped = False
        self._opening = ""
        self._settled = False
        self._aimed = False
        self._continues = later
        self._named = False
        self._later = later

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
        order = None if POLITE.search(folded) else ordered(folded)
        if order and not question and not is_question(folded):
            told, own = parted(said[: order_end(said, order.end())])
            yield wanted(clean(told))
            yield from self._clauses(clauses(own), question=False)
            return
        yield from self._clauses(clauses(said), question=question)

    def remembered(self, said: str, *, separated: bool) -> Iterator[Statement]:
        said = said.strip(" ，,：:")
        folded = simplified(said)
        if len(said) < 3 or is_question(folded):
            return
        order = ordered(folded)
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
                told, own = parted(said)
                yield wanted(clean(told), confidence=ASKED)
                yield from self._clauses(clauses(own), question=False)
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
            supposed = supposed or supposes(folded) or is_not_meant(folded)
            if supposed:
                continue
            yield from in_passing(folded)
            if is_task(folded) and not LET_US.match(folded):
                self.about = None if mentions_people(folded) else self.about
                if is_writing(folded):
                    self.stopped = True
                    return
            elif asks:
                yield from self._before_question(clause, folded)
            elif last or not self._prepares(clause, folded):
                following = "" if last else pieces[number + 1]
                for each in self._said(clause, folded, first=not number):
                    whole = with_condition(each, following)
                    if whole is not None:
                        yield whole

    def _prepares(self, clause: str, folded: str) -> bool:
        """Take note of a clause that only says how the next one is meant."""
        if is_subject_only(folded):
            self.about, self._named = _ME, True
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
        self._later = not self._named and (self._continues or not first)
        self._named = False
        if _DATED.search(folded):
            self._opening = ""
        order = None if first or POLITE.search(folded) else ordered(folded)
        if order and not re.match(ME, folded):
            yield wanted(clean(clause[: order_end(clause, order.end())]))
            return
        kept = False
        for each in self._one(clause, folded):
            kept = True
            yield each
        self.follows = (kept or subject_end(folded) is not None) and not brings_others(folded)
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
        if self._settled or self._aimed:
            yield from self._announced(clause)
            return
        if is_excluded(folded) and not DOCTOR.match(folded):
            if self._brings_up(folded):
                self.about = None
            elif re.match(ME, folded) or re.search(r"现在|今", folded):
                self.about = _ME
            return
        for attempt in (
            self._called,
            self._of_people,
            self._of_project,
            self._settling,
            self._given_up,
        ):
            found = attempt(clause, folded)
            if found is not None:
                # "叫我可欣就好" hangs on nothing.
                called = attempt == self._called
                yield from (
                    each
                    for each in found
                    if called or not is_doubtful(folded, each.memory_type, bare=False)
                )
                return
        bare = subject_end(folded) is None
        for each in self._of_me(clause, folded):
            strays = not self.follows and each.memory_type not in _STANDS_ALONE
            if bare and self._later and (strays or is_loose(folded, each.memory_type)):
                continue
            if not is_doubtful(folded, each.memory_type, bare=bare):
                yield each

    def _announced(self, clause: str) -> Iterator[Statement]:
        """What the clause before announced: 商量好了，就去三亚."""
        if not self._settled:
            self._aimed = False
            yield Statement(third_person(f"我的目标是{clause}"), "goal", past=False)
            return
        self._settled = False
        plain = re.sub(r"^(?:我们|我|咱们?|就|还是|决定)+", "", clause)
        if not _SETTLED_WITH.search(simplified(plain)):
            yield Statement(third_person(f"{self._opening}决定{plain}"), "decision")

    def _brings_up(self, folded: str) -> bool:
        """Tell a clause of which nothing is kept, and yet the next one may be about its subject."""
        kin = kin_predicate(folded, bare=self.about == _ME) is not None
        named = not re.match(ME, folded) and mentions_people(folded)
        told = introduces(folded) or is_about_others(folded) or is_of_another(folded)
        return kin or named or told

    def _called(self, clause: str, folded: str) -> list[Statement] | None:
        match = CALLED.match(folded)
        if not match:
            return None
        name = clause[match.start("name") : match.end("name")]
        return [Statement(f"{NICKNAME}{name}", "fact")]

    def _of_people(self, clause: str, folded: str) -> list[Statement] | None:
        predicate = kin_predicate(folded, bare=self.about == _ME)
        if predicate is not None:
            # "我和男朋友" is about the user, and 我姐姐 about the sister.
            self.about = None
            if (
                _PASSING_OF_KIN.match(predicate)
                or AT_HAND.search(folded)
                or not (FAMILY.match(predicate) or framed(predicate, folded, bare=True))
            ):
                return []
            dated = PAST_TIME.search(folded) and _HAPPENED_TO_KIN.match(predicate)
            return [Statement(third_person(clause), "event" if dated else "fact")]
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
        self.about = None
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

    def _given_up(self, clause: str, folded: str) -> list[Statement] | None:
        bare = re.sub(r"^(?:我的?|咱|俺)", "", folded)
        if (bare == folded and self.about != _ME) or not GIVEN_UP.match(bare):
            return None
        if is_about_others(re.sub(r"^[那这]个?", "", bare)):
            return None
        return [Statement(third_person(clause), "fact", retracts=True)]

    def _of_me(self, clause: str, folded: str) -> Iterator[Statement]:
        if AT_HAND.search(folded):
            other = is_about_others(folded) or introduces(folded)
            self.about = None if other else self.about
            return
        if folded.startswith((_ME, "咱", "俺")) and (
            is_about_others(folded) or names_acquaintance(folded)
        ):
            self.about = None
            return
        subject = subject_end(folded)
        topic = topic_of(clause, folded) if not subject or subject[0] >= 1 else None
        if topic is not None and (subject or self.about == _ME):
            yield topic
            return
        if subject:
            start, end = subject
            opening = self._opening + clause[:start]
            self.about = None if introduces(folded) else _ME
            yield from stated(clause[start:], folded[start:], end - start, opening)
            return
        if is_about_others(folded) or is_of_another(folded):
            self.about = None
            return
        if self.about == _ME and not POLITE.search(folded) and not WEATHER.search(folded):
            if COMMENT.match(folded):
                return
            if introduces(folded):
                self.about = None
            yield from stated(f"我{clause}", f"我{folded}", 1, self._opening, bare=True)
