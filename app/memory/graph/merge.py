"""What a merge or a split makes of the rows around entities. Pure: rows in, rows out.

Rows are as PostgreSQL writes them in JSON, without the tenant; those that stay as they are, are
left out.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

Row = dict[str, Any]
Rows = dict[str, list[Row]]

MERGED: Final = "merged"


@dataclass
class GraphMerge:
    """Rows as they were and as they become."""

    before: Rows = field(default_factory=dict)
    after: Rows = field(default_factory=dict)

    def put(self, table: str, old: Sequence[Row], new: Sequence[Row]) -> None:
        """Replace `old` rows by `new` ones."""
        self.before.setdefault(table, []).extend(old)
        self.after.setdefault(table, []).extend(new)

    @property
    def rows(self) -> dict[str, int]:
        """How many rows are touched, by table without its prefix."""
        return {
            table.removeprefix("graph_"): max(len(old), len(self.after.get(table, ())))
            for table, old in self.before.items()
        }


def merged(rows: Rows, target: Row, sources: Sequence[Row], *, now: datetime) -> GraphMerge:
    """Everything of `sources` becomes that of `target`; duplicates are merged.

    Args:
        rows: aliases, mentions and relations around all of them.
        target: the entity that stays; it has a name_key.
        sources: entities that go, with name, name_key and version.
        now: since when it is known.

    """
    made = GraphMerge()
    ids = {source["entity_id"] for source in sources}
    stays = target["entity_id"]
    for source in sources:
        old = {"entity_id": source["entity_id"], "version": source["version"], "merged_into": None}
        made.put("graph_entities", [old], [old | {"merged_into": stays}])
    _merge_aliases(made, rows["graph_aliases"], target, sources, now)
    _merge_mentions(made, rows["graph_mentions"], stays, ids)
    _merge_relations(made, rows["graph_relations"], stays, ids, now)
    return made


def _merge_aliases(
    made: GraphMerge, rows: Sequence[Row], target: Row, sources: Sequence[Row], now: datetime
) -> None:
    stays = target["entity_id"]
    taken = {row["alias_key"] for row in rows if row["entity_id"] == stays} | {target["name_key"]}
    moved = [row for row in rows if row["entity_id"] != stays]
    names = [
        {
            "alias_key": source["name_key"],
            "alias": source["name"],
            "create_time": now.isoformat(),
        }
        for source in sources
    ]
    new = []
    for row in (*moved, *names):
        if row["alias_key"] not in taken:
            taken.add(row["alias_key"])
            new.append(row | {"entity_id": stays})
    made.put("graph_aliases", moved, new)


def _merge_mentions(
    made: GraphMerge, rows: Sequence[Row], stays: str, ids: Collection[str]
) -> None:
    there = {row["memory_id"] for row in rows if row["entity_id"] == stays}
    moved = [row for row in rows if row["entity_id"] in ids]
    new = {row["memory_id"]: row | {"entity_id": stays} for row in moved}
    made.put("graph_mentions", moved, [row for key, row in new.items() if key not in there])


def _merge_relations(
    made: GraphMerge, rows: Sequence[Row], stays: str, ids: Collection[str], now: datetime
) -> None:
    turned = [(old, _turned(old, stays, ids)) for old in rows]
    known = [new for _, new in turned if new["known_to"] is None]
    current: dict[tuple[str, str, str], list[Row]] = {}
    for new in known:
        if new["source_id"] == new["destination_id"]:
            # Both sides are one entity now: "Bob is called Robert" states nothing any more.
            _close(new, now)
        elif new["valid_to"] is None:
            triple = (new["source_id"], new["relation"], new["destination_id"])
            current.setdefault(triple, []).append(new)
    added = [
        row
        for duplicates in current.values()
        if len(duplicates) > 1
        for row in _merge_versions(duplicates, now)
    ]
    changed = [(old, new) for old, new in turned if old != new]
    made.put(
        "graph_relations",
        [old for old, _ in changed],
        [new for _, new in changed] + added,
    )


def _turned(row: Row, stays: str, ids: Collection[str]) -> Row:
    """The row with the ids that go replaced by the one that stays."""
    sides = ("source_id", "destination_id")
    return row | {side: stays for side in sides if row[side] in ids}


def _merge_versions(duplicates: list[Row], now: datetime) -> list[Row]:
    """The version that states what several relations stated; they are closed, except one that
    states all of it already.
    """
    duplicates.sort(key=lambda row: (_time(row["known_from"]), row["relation_id"]))
    kept = duplicates[0]
    said = {
        "confidence": max(row["confidence"] for row in duplicates),
        "evidence": _united(row["evidence"] for row in duplicates),
        "memory_ids": _united(row["memory_ids"] for row in duplicates),
        "valid_from": _earliest([row["valid_from"] for row in duplicates]),
    }
    for row in duplicates[1:]:
        _close(row, now)
    if all(kept[name] == value for name, value in said.items()):
        return []
    _close(kept, now)
    return [
        kept
        | said
        | {
            "version": kept["version"] + 1,
            "known_from": kept["known_to"],
            "known_to": None,
            "reason": MERGED,
        }
    ]


def split(
    rows: Rows,
    old_id: str,
    new: Row,
    *,
    aliases: Collection[str],
    relation_ids: Collection[str],
    memory_ids: Collection[str],
) -> GraphMerge:
    """Move some of the rows of one entity to another, `new`, which was just made.

    Args:
        rows: aliases, mentions and relations around the old one.
        old_id: the entity that is split.
        new: the new entity, with its id and version.
        aliases: keys of aliases that go with it; that of its own name goes in any case.
        relation_ids: relations that go with it, in all their versions.
        memory_ids: memories that speak of it, and not of the old one.

    """
    made = GraphMerge()
    new_id = new["entity_id"]
    made.put(
        "graph_entities",
        [],
        [{"entity_id": new_id, "version": new["version"], "merged_into": None}],
    )
    gone = [
        row
        for row in rows["graph_aliases"]
        if row["alias_key"] in aliases or row["alias_key"] == new["name_key"]
    ]
    kept = [row | {"entity_id": new_id} for row in gone if row["alias_key"] != new["name_key"]]
    made.put("graph_aliases", gone, kept)
    moved = [row for row in rows["graph_mentions"] if row["memory_id"] in memory_ids]
    made.put("graph_mentions", moved, [row | {"entity_id": new_id} for row in moved])
    chosen = [row for row in rows["graph_relations"] if row["relation_id"] in relation_ids]
    turned = [
        row
        | {
            side: new_id
            for side in ("source_id", "destination_id")
            if row[side] == old_id and not (side != "source_id" and row["source_id"] == old_id)
        }
        for row in chosen
    ]
    made.put("graph_relations", chosen, turned)
    return made


def _close(row: Row, now: datetime) -> None:
    row["known_to"] = max(now, _time(row["known_from"])).isoformat()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _earliest(times: Sequence[str | None]) -> str | None:
    """The earliest time; None, unknown, if one of them is."""
    given = [time for time in times if time is not None]
    return min(given, key=_time) if len(given) == len(times) else None


def _united(lists: Any) -> list[str]:
    return list(dict.fromkeys(item for each in lists for item in each))
