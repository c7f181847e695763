"""A statement as it is compared with another: its attributes, words, numbers, people and times."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, Self

from app.language.keyless.attribute_frames import CHINESE_KIN
from app.language.keyless.attributes import Attribute, attributes_of, gives
from app.language.keyless.endings import Ending, endings_in
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour
from app.language.text.distinctions import Wording, counts_moved, names_in
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import normalise, simplify

_OTHERS: Final = lazy_pattern(
    rf"(?<=\bmy )[a-z]+|(?<=\bour )[a-z]+|(?<=\buser's )[a-z]+|{CHINESE_KIN}|老[板师]"
)
_WISHED: Final = lazy_pattern(
    r"\b(?:wants?|hopes?|plans?|would|might|(?<![0-9] )may(?! [0-9])|could|should|will|wish|"
    r"going to|considering|thinking|if|maybe|trying)\b|'ll\b"
    r"|想|打算|准备|计划|希望|可能|也许|考虑|如果"
)
_PAST: Final = lazy_pattern(
    r"^(?:i|we|the user|user|(?:my|the user's) \w+) (?:\w+ly )?(?:\w+ed|was|were|had|did|went)\b"
    r"|曾|以前|之前"
)

_SWITCHED: Final = lazy_pattern(
    r"(?:switched|moved|migrated|changed) (?:over )?from (?P<v>.+?) to\b"
    r"|从(?P<v2>[^，。]{1,12}?)(?:转|换|改)[到成用]"
)
_GONE: Final = lazy_pattern(
    r"\b(?:died|passed away|sold|gave away|got rid of|was put down)\b"
    r"|去世了?|没了|走丢了?|卖掉?了?|送人了?"
)
# What something was given away for, or when: "sold my car to buy a boat".
_BESIDES_GONE: Final = lazy_pattern(
    r"\b(?:to|for|because|so|since|when|after|before|and|but|last|yesterday|today|in|on)\b.*"
    r"|(?:[,;]|[来去]?[买换]).*"
)
# A machine that died may run again, and what was sold may have been bought back.
_PERHAPS_BACK: Final = lazy_pattern(
    r"\bdied\b|\b(?:but|again|back|though|although|however)\b|但|不过|可是|又|回来"
)
_ONE_THING: Final = lazy_pattern(
    r"(?:i|we|the user|user)(?: (?:have|has|own|owns|have got|has got)|'ve got) "
    r"(?!.*(?:,|\b(?:and|or|but|with)\b)).+"
    r"|(?:my|our|the user's|user's) (?!.*(?:,|\b(?:and|or|but)\b))[\w' -]+? (?:is|are)\b.*"
    r"|(?:我们?|用户)(?:家|还|现在)*[有养](?!.*[，、和跟与还]).+"
    r"|(?:我们?|用户)的[^，、和跟与]{1,12}是[^，、和跟与]+"
)
RECENT: Final = timedelta(days=92)
"""So long what began is told as news: "I moved to Hamburg last month"."""


@dataclass(frozen=True)
class Comparand:
    """One of the two; what its words give is read when asked for, and once.

    Args:
        noted: the attribute that was noted beside it.
        said: when; None for a new one of which nothing is known, which is the newest.
        since: from when it holds; None if nothing tells.
        nearness: of an old statement to the new one, 0 to 1.

    """

    content: str
    memory_type: str
    noted: str | None
    said: datetime | None
    since: datetime | None
    nearness: float = 0.0

    @classmethod
    def of_proposed(cls, new: Proposed) -> Self:
        return cls(new.content, new.memory_type, new.attribute, new.said_at, new.valid_from)

    @classmethod
    def of_neighbour(cls, old: Neighbour) -> Self:
        nearness = 1.0 if old.possible_duplicate else old.similarity
        return cls(old.content, old.memory_type, old.attribute, old.said, old.valid_from, nearness)

    @cached_property
    def form(self) -> str:
        return normalise(self.content.replace("’", "'")).rstrip(" .!。！")

    @cached_property
    def given(self) -> Mapping[str, Attribute]:
        """Its attributes by name; none where its words give others than was noted beside it."""
        found = {each.name: each for each in attributes_of(self.content)}
        if self.noted is not None and self.noted not in found:
            return {}
        return {name: each for name, each in found.items() if gives(self.memory_type, name)}

    @cached_property
    def endings(self) -> tuple[Ending, ...]:
        return endings_in(self.content)

    @cached_property
    def wording(self) -> Wording:
        return Wording(self.content)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(self.wording.content)

    @cached_property
    def people(self) -> frozenset[str]:
        """Whom, or what of theirs, a statement is about besides the user."""
        return frozenset(_OTHERS.findall(simplify(self.form)))

    @cached_property
    def spared(self) -> set[str]:
        """Names, and whom it is about: a verb may follow them."""
        return names_in(self.content) | self.people.intersection(self.wording.content[:1])

    @cached_property
    def gone(self) -> frozenset[str]:
        """The words for what it says is there, or is used, no longer: "sold my car"."""
        switched = _SWITCHED.search(self.form)
        if switched:
            return frozenset(Wording(switched["v"] or switched["v2"]).content)
        found = _GONE.search(self.form)
        if found is None:
            return frozenset()
        left = _BESIDES_GONE.sub("", self.form[found.end() :])
        return frozenset(Wording(f"{self.form[: found.start()]} {left}").content)

    @property
    def is_switch(self) -> bool:
        """Whether it tells of one thing that took the place of another."""
        return _SWITCHED.search(self.form) is not None

    @property
    def is_surely_gone(self) -> bool:
        """Whether nothing in it tells that what is gone may have come back."""
        return _PERHAPS_BACK.search(self.form) is None

    @property
    def is_of_one_thing(self) -> bool:
        """Whether it says of one thing that it is there, and not what is thought of it."""
        return _ONE_THING.fullmatch(self.form) is not None

    @cached_property
    def mode(self) -> tuple[bool, bool]:
        """Whether it says what is wished or may be, and whether it says what was."""
        wished = _WISHED.search(self.form) is not None
        return wished, _PAST.search(self.form) is not None

    def holds_at(self, attribute: str | None = None) -> datetime | None:
        """A moment at which it holds: what began does from then on, what is so when it is said."""
        return (self.tells_beginning(attribute) and self.since) or self.said

    def tells_beginning(self, attribute: str | None) -> bool:
        """Tell whether it says that a value began: no later than it was said, but not when."""
        given = self.given.get(attribute or "")
        return given is not None and given.began

    def is_news(self, attribute: str | None) -> bool:
        """Tell whether it says that a value began shortly before it was said."""
        if not (self.tells_beginning(attribute) and self.since and self.said):
            return False
        return self.said - self.since <= RECENT

    def counts_all_of(self, other: Self) -> bool:
        """Tell whether it states every number, date and time of another; a unit may be left out."""
        mine = self.wording.counts
        return not counts_moved(self.wording, other.wording) and all(
            (value, unit) in mine
            or (value, "") in mine
            or (not unit and any(value == each for each, _ in mine))
            for value, unit in other.wording.counts
        )

    def counts_otherwise(self, other: Self, *, near: bool = False) -> bool:
        """Tell whether one number, date or time of it has another value, or unit, in another.

        Args:
            near: the two are so near that another value in another unit is the same thing, too.

        """
        mine, others = self._by_unit(), other._by_unit()
        apart = {unit for unit in mine | others if mine.get(unit) != others.get(unit)}
        if len(apart) == 1:
            return apart <= mine.keys() & others.keys()
        left, right = apart & mine.keys(), apart & others.keys()
        if len(left) != 1 or len(right) != 1 or left == right:
            return False
        values = mine[left.pop()], others[right.pop()]
        return near or "" in apart or values[0] == values[1]

    def _by_unit(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for value, unit in self.wording.counts:
            found.setdefault(unit, set()).add(value)
        if "date" in found:
            # Its day and month are counted besides.
            found.pop("", None)
        return found

    def is_of_same(self, other: Self) -> bool:
        """Tell whether both are about the same people and things of the user's."""
        apart = self.people ^ other.people
        words = self.words & other.words
        return all(any(word.startswith(each[:4]) for word in words) for each in apart)

    def alike(self, other: Self) -> float:
        """The share of the words of the shorter one that both have, 0 to 1."""
        shorter = min(len(self.words), len(other.words))
        return len(self.words & other.words) / max(shorter, 1)

    def has(self, words: frozenset[str]) -> bool:
        """Tell whether all of these words stand in it."""
        form = simplify(self.form)
        return all(word in form for word in words)
