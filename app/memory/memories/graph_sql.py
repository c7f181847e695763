"""The graph as an arm of a search, in the statement that reads the rows.

Entities that the query names bring the memories that speak of them, and those of what is one
relation away. Everything is bounded: an entity that very many memories mention does not
distinguish them.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.language.ranking.records import SearchStatement

MOST_KEYS: Final = 300
"""Pieces of a query that are looked up as names."""

MOST_NAMED: Final = 20
MOST_RELATIONS: Final = 100
MOST_MENTIONS: Final = 200
"""Of one entity; of one with more, none counts."""

_SOURCE_STATUSES: Final = "'active', 'superseded'"
"""Of what was superseded the relations are closed, or hold in other words; then they held."""

A_STEP: Final = 0.5
"""What a relation away counts, of what is named itself; the same however many relations that has.
Where every name of LoCoMo is an entity, recall@10 is 81.7 % so, at a weight of 0.1, and 81.3 %
where it counts less the more there are, which is what it is without the graph."""


@dataclass(frozen=True, slots=True)
class Link:
    """How near a memory is to what the query names, 0 to 1, and by which way."""

    strength: float
    path: str


@dataclass(frozen=True, slots=True)
class NamedMention:
    """What is asked of the graph.

    Args:
        keys: pieces of the query, any of which may be a name.
        places: scope and id of each bucket that is searched.
        agent_id: whose private graph counts besides the shared one; None for everyone's.

    """

    keys: Sequence[str]
    places: Sequence[tuple[str, str]]
    agent_id: str | None
    as_of: datetime | None
    known_at: datetime | None


def linked(named: NamedMention, statement: SearchStatement) -> str:
    """SQL for the links of a search as JSON, or null: `[[memory id, steps, mentions, path], …]`."""
    keys = statement.bind(list(named.keys), "text[]")
    scopes = statement.bind([scope for scope, _ in named.places], "text[]")
    ids = statement.bind([scope_id for _, scope_id in named.places], "text[]")
    within = (
        "entity.tenant_id = tenant.id AND entity.merged_into IS NULL "
        "AND entity.scope_id = place.scope_id AND entity.scope = place.scope"
    )
    if named.agent_id is not None:
        agent = statement.bind(named.agent_id, "text")
        within += f" AND (entity.agent_id IS NULL OR entity.agent_id = {agent})"
    holds = _holds(named, statement)
    place = f"unnest({scopes}, {ids}) AS place(scope, scope_id)"
    steps = " UNION ALL ".join(
        f"(SELECT other.entity_id, 1 AS steps, {path} AS path FROM named "
        f"JOIN graph_relations AS relation ON relation.tenant_id = tenant.id "
        f"AND relation.{here}_id = named.entity_id AND {holds} "
        f"JOIN graph_entities AS other ON other.tenant_id = tenant.id "
        f"AND other.entity_id = relation.{there}_id LIMIT {MOST_RELATIONS})"
        for here, there, path in (
            ("source", "destination", _path("named", "other")),
            ("destination", "source", _path("other", "named")),
        )
    )
    return f"""(SELECT CAST(jsonb_agg(jsonb_build_array(
            found.memory_id, found.steps, found.mentions, found.path)) AS text)
        FROM (
            WITH named AS MATERIALIZED (
                SELECT entity.entity_id, entity.name FROM {place} JOIN graph_entities AS entity
                    ON {within} AND entity.name_key = ANY ({keys})
                UNION
                SELECT entity.entity_id, entity.name FROM graph_aliases AS alias
                JOIN graph_entities AS entity ON entity.entity_id = alias.entity_id
                JOIN {place} ON {within}
                WHERE alias.tenant_id = tenant.id AND alias.alias_key = ANY ({keys})
                LIMIT {MOST_NAMED}
            ), near AS MATERIALIZED (
                SELECT named.entity_id, 0 AS steps, named.name AS path FROM named
                UNION ALL {steps}
            )
            SELECT mention.memory_id, near.steps, near.path,
                count(*) OVER (PARTITION BY near.entity_id, near.path) AS mentions
            FROM near CROSS JOIN LATERAL (
                SELECT graph_mentions.memory_id FROM graph_mentions
                WHERE graph_mentions.tenant_id = tenant.id
                    AND graph_mentions.entity_id = near.entity_id
                LIMIT {MOST_MENTIONS + 1}
            ) AS mention
        ) AS found)"""


def _path(first: str, second: str) -> str:
    return f"{first}.name || ' ' || relation.relation || ' ' || {second}.name"


def _holds(named: NamedMention, statement: SearchStatement) -> str:
    """Whether a relation held at the requested time, by what was known then."""
    known = "relation.known_to IS NULL"
    time = "now()"
    if named.known_at is not None:
        time = statement.bind(named.known_at, "timestamptz")
        known = (
            f"relation.known_from <= {time} "
            f"AND (relation.known_to IS NULL OR relation.known_to > {time})"
        )
    if named.as_of is not None:
        time = statement.bind(named.as_of, "timestamptz")
    # A path shows nothing that is its author's alone or was deleted since.
    said = (
        "(cardinality(relation.memory_ids) = 0 OR EXISTS (SELECT FROM memories AS source "
        "WHERE source.tenant_id = tenant.id AND source.memory_id = ANY (relation.memory_ids) "
        f"AND source.status IN ({_SOURCE_STATUSES}) AND source.scope = relation.scope "
        "AND source.scope_id = relation.scope_id "
        "AND NOT (source.scope = 'project' AND source.visibility = 'owner_only')))"
    )
    return (
        f"{said} AND {known} AND (relation.valid_from IS NULL OR relation.valid_from <= {time}) "
        f"AND (relation.valid_to IS NULL OR relation.valid_to > {time})"
    )


def links_of(found: str | None, rows: int) -> dict[str, Link]:
    """The best link of each memory.

    Args:
        found: what `linked` selects.
        rows: how many memories are searched; an entity that many of them speak of says little.

    """
    links: dict[str, Link] = {}
    for memory_id, steps, mentions, path in json.loads(found) if found else ():
        strength = _rarity(mentions, rows) * A_STEP**steps
        if strength > 0 and (memory_id not in links or links[memory_id].strength < strength):
            links[memory_id] = Link(strength, path)
    return links


def _rarity(mentions: int, rows: int) -> float:
    if mentions > MOST_MENTIONS:
        return 0.0
    return max(0.0, 1.0 - math.log(max(mentions, 1)) / math.log(max(rows, 2) + 1))
