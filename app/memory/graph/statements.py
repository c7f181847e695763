"""What is stated of whom before it is in the graph (names, relations, periods), from what was said
to triples, and whether there is to be a graph. Pure.

A name is compared by its key (`text/names.py`), which depends on no language. A relation is lower
snake_case in ASCII, whatever the language of the names it joins. Whether two similar names are one
entity is decided by `same_name`: to make one entity of two people is worse than to keep two of one,
which a merge repairs.

A relation belongs to the statement that it came with: a refused statement makes none, and owner,
evidence, confidence and time are the statement's.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from unicodedata import combining, normalize

from app.language.llm.extractor import Proposed, ProposedRelation
from app.language.text.distinctions import differs
from app.language.text.names import name_key
from app.language.text.normal_forms import has_cjk
from app.memory.memories.owner import MemoryOwner

LONGEST_NAME: Final = 255
LONGEST_RELATION: Final = 100
MOST_DEPTH: Final = 3
LARGEST_LIMIT: Final = 500
THING: Final = "thing"
"""Type of an entity when no statement gives one."""

_RELATION = re.compile(r"[a-z][a-z0-9_]*\Z")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[\s_./-]+")
_TOKEN = re.compile(r"[^\s,;:!?()\[\]{}<>\"“”「」『』《》，。；：！？、（）]+")
_ENDING = re.compile(r"(?:['’]s)?[.'’]*\Z")
_WORDS_OF_NAME: Final = 6
_CHARACTERS_OF_NAME: Final = 12
MOST_KEYS: Final = 1000


@dataclass(frozen=True, slots=True)
class GraphOwner:
    """Whose graph it is: the bucket of a memory, but never a session's.

    `scope` is user, project or agent. `project_id` counts in a project's alone. In a project
    `user_id` is the user who said it; it is deleted with that user.
    """

    scope: str
    scope_id: str
    user_id: str | None
    agent_id: str | None
    project_id: str | None


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A person or thing, as a statement names it."""

    name: str
    entity_type: str = THING


@dataclass(frozen=True, slots=True)
class RelationStatement:
    """One triple, with its period and its evidence.

    `single`: the subject has one value of this relation at a time, so that another ends.
    `retracts`: it holds no longer, and no other value replaces it. `evidence` are ids of messages.
    `said_at`: where nothing else is said, it holds or ends from then on; None from when it is
    written on.
    """

    source: NamedEntity
    relation: str
    destination: NamedEntity
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    single: bool = False
    retracts: bool = False
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RelationPeriod:
    """When something holds: from `begins` to just before `ends`; None is open."""

    begins: datetime | None
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many entities and relations a write made, matched, closed or confirmed."""

    entities_created: int = 0
    entities_matched: int = 0
    relations_added: int = 0
    relations_closed: int = 0
    relations_confirmed: int = 0


def fits(name: str) -> bool:
    """Whether a name can be kept: some letter, digit or character, and at most 255 characters."""
    key = name_key(name)
    return 0 < len(key) <= LONGEST_NAME and len(name.strip()) <= LONGEST_NAME and "\x00" not in name


def relation_name(text: str) -> str | None:
    """A relation in lower snake_case, or None when it cannot be one.

    "studies at", "StudiesAt" and "studies-at" are `studies_at`; accents are dropped. A relation
    that is no Latin text, such as 就读于, is none: the caller must map or refuse it, since
    dropping its characters would change its meaning.
    """
    plain = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
    snake = _BETWEEN.sub("_", _HUMP.sub("_", plain.strip())).strip("_").lower()
    if len(snake) > LONGEST_RELATION or not _RELATION.match(snake):
        return None
    return snake


def cut_by(new: RelationPeriod, others: Collection[RelationPeriod]) -> datetime | None:
    """Where a new value of a single-valued relation ends, given the later values already known.

    Late knowledge of the past must not end what holds today.
    """
    begins = new.begins
    if begins is None:
        return new.ends
    later = [other.begins for other in others if other.begins is not None and other.begins > begins]
    return min((end for end in (*later, new.ends) if end is not None), default=None)


def ends_where(old: RelationPeriod, new: RelationPeriod, now: datetime) -> datetime | None:
    """Where the old value of a relation ends when a new one replaces it, or None.

    It ends where the new one begins. It does not end when it had ended by then, when it only
    began later, or when the new one itself is over before it (a winter in another town).
    """
    begins = new.begins or now
    if old.ends is not None and old.ends <= begins:
        return None
    if old.begins is not None and old.begins > begins:
        return None
    if new.ends is not None and (old.ends is None or old.ends > new.ends):
        return None
    return begins


def keys_in(text: str) -> list[str]:
    """Keys (`name_key`) of all that may be a name in a text, the longest first, at most 1,000.

    Every run of words and of Chinese characters is one; only the graph knows which are names.
    """
    found: dict[str, None] = {}
    plain = name_key(text)
    words = [match.span() for match in _TOKEN.finditer(plain)]
    for first, (start, _) in enumerate(words):
        for _, end in words[first : first + _WORDS_OF_NAME]:
            found[plain[start:end]] = None
            found[_ENDING.sub("", plain[start:end])] = None
    for start, end in words:
        if has_cjk(plain[start:end]):
            for left in range(start, end):
                for right in range(left + 1, min(left + _CHARACTERS_OF_NAME, end) + 1):
                    found[plain[left:right]] = None
    # Of too many the longest are left out: names are short.
    keys = sorted((key for key in found if 0 < len(key) <= LONGEST_NAME), key=len)[:MOST_KEYS]
    return sorted(keys, key=len, reverse=True)


NEAR: Final = 0.25
"""Largest cosine distance at which two names are looked at. Of the 25 labelled pairs in
`tests/unit/graph/test_graph_likeness.py` wordllama has nine of ten spellings of one name within it
(0.007 to 0.219), and eight of fifteen others too ("Boeing 737" and "Boeing 747" at 0.048): no
threshold parts them, so that the checks below decide."""

_WORD = re.compile(r"[^\W_]+")


def same_name(a: str, b: str) -> bool:
    """Whether two near names differ in nothing but spelling: the order of words, punctuation, an
    ending. In Chinese nothing may differ but punctuation and spaces.
    """
    words_a, words_b = (_WORD.findall(name_key(name)) for name in (a, b))
    if not words_a or not words_b:
        return False
    if has_cjk(a) or has_cjk(b):
        return "".join(words_a) == "".join(words_b)
    if sorted(_digits(words_a)) != sorted(_digits(words_b)):
        return False
    if sorted(map(_stem, words_a)) != sorted(map(_stem, words_b)):
        return "".join(words_a) == "".join(words_b)
    # Words in another order may be another thing: "House of Cards", "Cards of House".
    return sorted(words_a) == sorted(words_b) or differs(a, b) is None


def _digits(words: list[str]) -> list[str]:
    return [word for word in words if any(sign.isdigit() for sign in word)]


def _stem(word: str) -> str:
    """A word without the ending of its plural, where it is long enough to have one."""
    if len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


PERSON: Final = "person"

GRAPH: Final = "graph"
"""The switch of the graph in the settings of an agent or a tenant."""

SPEAKERS: Final = frozenset(
    {"user", "the user", "i", "me", "myself", "speaker", "the speaker"}
    | {"用户", "本用户", "使用者", "我", "本人", "用戶", "使用者本人", "用户本人"}
)
"""Names by which models call the user, in their normal form."""

_ATTRIBUTE_OF: Final[Mapping[str, frozenset[str]]] = {
    "residence": frozenset({"lives_in", "resides_in", "located_in"}),
    "employer": frozenset({"works_at", "works_for", "employed_by", "employed_at"}),
    "workplace": frozenset({"works_at"}),
    "school": frozenset({"studies_at"}),
    "partner": frozenset({"married_to", "partner_of", "engaged_to", "in_relationship_with"}),
    "origin": frozenset({"from", "comes_from", "born_in"}),
    "occupation": frozenset({"works_as", "occupation"}),
    **dict.fromkeys(("name", "age", "birthday", "diet", "budget", "timezone"), frozenset()),
}
"""Which relations an attribute gives the value of; of another attribute it is all of them."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The user of a run as an entity: `name` is theirs where it is known, else their id."""

    user_id: str
    name: str

    @property
    def named(self) -> NamedEntity:
        return NamedEntity(self.name, PERSON)

    def has_name(self, name: str) -> bool:
        """Whether a name is one of the user's."""
        return name_key(name) in {*SPEAKERS, name_key(self.user_id), name_key(self.name)}


def graph_owner(owner: MemoryOwner) -> GraphOwner | None:
    """The owner of a bucket's graph; None for a session's, which has no graph."""
    if owner.scope == "session":
        return None
    return GraphOwner(
        owner.scope,
        owner.scope_id,
        owner.user_id,
        owner.agent_id,
        owner.project_id if owner.scope == "project" else None,
    )


def draws_graph(*configs: Mapping[str, Any]) -> bool:
    """Whether statements go into the graph: not if the agent, else the tenant, says so."""
    given = (config.get(GRAPH) for config in configs)
    return next((switch for switch in given if isinstance(switch, bool)), True)


def triples_of(
    proposed: Proposed,
    speaker: Speaker | None,
    said: str,
    *,
    evidence: Sequence[str],
    memory_ids: Sequence[str],
) -> list[RelationStatement]:
    """The triples of a statement, in order; without those whose names do not occur in `said`.

    Args:
        speaker: who "user" is; None without a certain speaker.
        said: everything that was read, in normal form. A model that translates a name, or
            brings one of its own, makes no relation.

    """
    return [
        RelationStatement(
            source,
            relation.relation,
            destination,
            confidence=proposed.confidence,
            evidence=tuple(evidence),
            memory_ids=tuple(memory_ids),
            valid_from=proposed.valid_from,
            valid_to=proposed.valid_to,
            single=_single(proposed, relation),
            retracts=proposed.retracts,
            said_at=proposed.said_at,
        )
        for relation, source, destination in _named(proposed.relations, speaker, said)
    ]


def _named(
    relations: Sequence[ProposedRelation], speaker: Speaker | None, said: str
) -> Iterator[tuple[ProposedRelation, NamedEntity, NamedEntity]]:
    for relation in relations:
        source = _entity(relation.source, relation.source_type, speaker, said)
        destination = _entity(relation.destination, relation.destination_type, speaker, said)
        if source is not None and destination is not None and source != destination:
            yield relation, source, destination


def _entity(name: str, entity_type: str, speaker: Speaker | None, said: str) -> NamedEntity | None:
    if speaker is not None and speaker.has_name(name):
        return speaker.named
    key = name_key(name)
    if key in SPEAKERS or not fits(name) or key not in said:
        return None
    return NamedEntity(name, entity_type)


def _single(proposed: Proposed, relation: ProposedRelation) -> bool:
    """Whether the subject has one value of this relation at a time, so that another ends.

    A statement that names two values of a relation says itself that there may be several.
    """
    if proposed.attribute is None:
        return False
    given = _ATTRIBUTE_OF.get(proposed.attribute.rsplit(".", 1)[-1])
    if given is not None and relation.relation not in given:
        return False
    same = [
        other
        for other in proposed.relations
        if (other.source, other.relation) == (relation.source, relation.relation)
    ]
    return len(same) == 1
