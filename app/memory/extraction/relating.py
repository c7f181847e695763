"""From the statements of a run to triples of the graph. Pure.

A relation stands and falls with the statement that it came with: what was refused makes none,
and place, evidence, confidence and time are the statement's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.language.llm.extractor import Proposed, ProposedRelation
from app.language.text.names import name_key
from app.memory.extraction.drafts import Draft
from app.memory.graph.statements import GraphOwner, NamedEntity, RelationStatement, fits
from app.memory.memories.owner import MemoryOwner

PERSON: Final = "person"

SPEAKERS: Final = frozenset(
    {"user", "the user", "i", "me", "myself", "speaker", "the speaker"}
    | {"用户", "本用户", "使用者", "我", "本人", "用戶", "使用者本人", "用户本人"}
)
"""Names by which models call the user, in their normal form."""

KEPT: Final = frozenset({"ADD", "UPDATE", "SUPERSEDE", "MERGE", "NONE"})
"""Events after which a memory says what the draft said."""

ENDING: Final = frozenset({"SUPERSEDE", "DELETE"})
"""Events whose targets hold no longer."""

_ATTRIBUTE_OF: Final[Mapping[str, frozenset[str]]] = {
    "residence": frozenset({"lives_in", "resides_in", "located_in"}),
    "employer": frozenset({"works_at", "works_for", "employed_by", "employed_at"}),
    "partner": frozenset({"married_to", "partner_of", "engaged_to", "in_relationship_with"}),
    "origin": frozenset({"from", "comes_from", "born_in"}),
    "occupation": frozenset({"works_as", "occupation"}),
    "name": frozenset(),
}
"""Which relations an attribute gives the value of; of another attribute it is all of them."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The user of a run in the graph: `name` is theirs where it is known, else their id."""

    user_id: str
    name: str

    @property
    def named(self) -> NamedEntity:
        return NamedEntity(self.name, PERSON)

    def is_meant(self, name: str) -> bool:
        """Whether a name is one of the user's."""
        return name_key(name) in {*SPEAKERS, name_key(self.user_id), name_key(self.name)}


def graph_place(place: MemoryOwner) -> GraphOwner | None:
    """The graph of a bucket; what counts in one conversation only has none."""
    if place.scope == "session":
        return None
    return GraphOwner(
        place.scope,
        place.scope_id,
        place.user_id,
        place.agent_id,
        place.project_id if place.scope == "project" else None,
    )


def names_in(drafts: Sequence[Draft]) -> list[str]:
    """Names of a run that are not the user's, by which what is near may be found, each once."""
    found: dict[str, str] = {}
    for draft in drafts:
        if draft.open and draft.place.scope != "session":
            for one in draft.proposed.relations:
                for name in (one.source, one.destination):
                    if fits(name) and name_key(name) not in SPEAKERS:
                        found.setdefault(name_key(name), name)
    return list(found.values())


def statements_of(draft: Draft, speaker: Speaker | None, said: str) -> list[RelationStatement]:
    """The triples of a stored draft, in order; none whose names nobody said.

    Args:
        speaker: who "user" is; None where nobody in particular spoke.
        said: everything that was read, in normal form. A model that translates a name, or
            brings one of its own, makes no relation.

    """
    proposed = draft.proposed
    memory_ids = () if draft.memory_id is None or proposed.retracts else (draft.memory_id,)
    said = f"{said} {name_key(proposed.content)}"
    return triples_of(proposed, speaker, said, evidence=draft.evidence, memory_ids=memory_ids)


def triples_of(
    proposed: Proposed,
    speaker: Speaker | None,
    said: str,
    *,
    evidence: Sequence[str],
    memory_ids: Sequence[str],
) -> list[RelationStatement]:
    """The triples of a statement; see `statements_of`."""
    return [
        RelationStatement(
            source,
            one.relation,
            destination,
            confidence=proposed.confidence,
            evidence=tuple(evidence),
            memory_ids=tuple(memory_ids),
            valid_from=proposed.valid_from,
            valid_to=proposed.valid_to,
            single=_single(proposed, one),
            retracts=proposed.retracts,
        )
        for one, source, destination in _named(proposed.relations, speaker, said)
    ]


def _named(
    relations: Sequence[ProposedRelation], speaker: Speaker | None, said: str
) -> Iterator[tuple[ProposedRelation, NamedEntity, NamedEntity]]:
    for one in relations:
        source = _entity(one.source, one.source_type, speaker, said)
        destination = _entity(one.destination, one.destination_type, speaker, said)
        if source is not None and destination is not None and source != destination:
            yield one, source, destination


def _entity(name: str, entity_type: str, speaker: Speaker | None, said: str) -> NamedEntity | None:
    if speaker is not None and speaker.is_meant(name):
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
        one
        for one in proposed.relations
        if (one.source, one.relation) == (relation.source, relation.relation)
    ]
    return len(same) == 1
