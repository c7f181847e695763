"""From what was said to triples of the graph, and whether there is to be a graph. Pure.

A relation belongs to the statement that it came with: a refused statement makes none, and owner,
evidence, confidence and time are the statement's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.language.llm.extractor import Proposed, ProposedRelation
from app.language.text.names import name_key
from app.memory.graph.statements import GraphOwner, NamedEntity, RelationStatement, fits
from app.memory.memories.owner import MemoryOwner

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
