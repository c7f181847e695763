"""Which rows an export holds (all, or those of one user, agent or project, and their anchors), of
which tables, under which names, in an order in which they can be written again.

A row belongs to the owner in its own column; a row without such a column goes with its parent.
Agents, users and projects that are only referred to are exported as stubs.

Everything else about a table, its columns, keys and references, is read from its metadata, so
that a new column needs no line here, and a new table one (`tests/exports` misses it).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    Select,
    Table,
    and_,
    false,
    or_,
    select,
    true,
)

from app.governance.tables import metadata

Kind = Literal["tenant", "user", "agent", "project"]


@dataclass(frozen=True, slots=True)
class ExportScope:
    """Whose rows; `owner_id` is the id of the user, agent or project, empty for a tenant."""

    tenant_id: str
    kind: Kind
    owner_id: str = ""

    def shown(self) -> dict[str, str]:
        """As the manifest says it; the tenant is not named, since an import may change it."""
        return {"kind": self.kind} | ({f"{self.kind}_id": self.owner_id} if self.owner_id else {})

    def rows(self, table: Table) -> ColumnElement[bool]:
        """Condition for the rows of a table that are exported whole."""
        return and_(table.c[TENANT] == self.tenant_id, self._own(table))

    def stubs(self, table: Table) -> ColumnElement[bool]:
        """Condition for the rows that are exported only because exported rows refer to them."""
        if self.kind == "tenant" or table.name not in ANCHORS:
            return false()
        named: list[ColumnElement[bool]] = []
        for child in TABLES.values():
            for key in references_of(child):
                if key.referred_table is table:
                    named += self._named_by(child, key, table)
        return and_(table.c[TENANT] == self.tenant_id, or_(*named), ~self._own(table))

    def _named_by(
        self, child: Table, key: ForeignKeyConstraint, table: Table
    ) -> list[ColumnElement[bool]]:
        [(name, target)] = reference_columns(key).items()
        found = [self._within(table, target, child, name, self.rows(child))]
        if child.name in ANCHORS:
            # A user that is a stub has a home agent too.
            found.append(self._within(table, target, child, name, self.stubs(child)))
        return found

    def holds(self, key: ForeignKeyConstraint) -> ColumnElement[bool]:
        """Condition that the row a foreign key refers to is exported too."""
        target = key.referred_table
        if self.kind == "tenant" or target.name in ANCHORS:
            return true()
        return and_(
            *(
                self._within(key.table, name, target, there, self.rows(target))
                for name, there in reference_columns(key).items()
            )
        )

    def _own(self, table: Table) -> ColumnElement[bool]:
        match self.kind:
            case "tenant":
                return true()
            case "user":
                return self._of_user(table)
            case "agent":
                return self._of_agent(table)
            case "project":
                return self._of_project(table)

    def _of_user(self, table: Table) -> ColumnElement[bool]:
        if table.name in ("agents", "projects"):
            return false()
        if table.name == "memory_history":
            return or_(table.c.user_id == self.owner_id, self._by_parent(table))
        if "user_id" not in table.c:
            return self._by_parent(table)
        if table.name == "memory_feedback":
            return and_(table.c.user_id == self.owner_id, self._by_parent(table))
        return table.c.user_id == self.owner_id

    def _of_agent(self, table: Table) -> ColumnElement[bool]:
        if table.name in ("users", "projects", "project_members", "profiles"):
            return false()
        if table.name == "blocks":
            attached = TABLES["agent_blocks"]
            sessions = TABLES["sessions"]
            return or_(
                self._within(
                    table, "block_id", attached, "block_id", attached.c.agent_id == self.owner_id
                ),
                self._within(table, "session_id", sessions, "session_id", self._of_agent(sessions)),
            )
        if "agent_id" not in table.c:
            return self._by_parent(table)
        if table.name == "agent_folders":
            return and_(table.c.agent_id == self.owner_id, self._by_parent(table))
        return table.c.agent_id == self.owner_id

    def _of_project(self, table: Table) -> ColumnElement[bool]:
        """Rows shared in the project; conversations belong to their users."""
        if table.name in ("agents", "users", "sessions", "blocks", "agent_blocks"):
            return false()
        if "project_id" not in table.c:
            return self._by_parent(table)
        own = table.c.project_id == self.owner_id
        return and_(own, table.c.scope == "project") if "scope" in table.c else own

    def _by_parent(self, table: Table) -> ColumnElement[bool]:
        """Rows all of whose parents are exported."""
        kept = [
            self.holds(key)
            for key in references_of(table)
            if key.referred_table.name not in ANCHORS and key.referred_table is not table
            if all(not table.c[name].nullable for name in reference_columns(key))
        ]
        if table.name in BELONGS:
            name, parent = BELONGS[table.name]
            kept.append(self._within(table, name, TABLES[parent], name, self.rows(TABLES[parent])))
        return and_(*kept) if kept else false()

    def _within(
        self, table: Table, name: str, target: Table, there: str, rows: ColumnElement[bool]
    ) -> ColumnElement[bool]:
        found: Select[tuple[object]] = select(target.c[there]).where(
            target.c[TENANT] == self.tenant_id, target.c[there].is_not(None), rows
        )
        # Selects from the table again, not from the row of the outer query.
        return table.c[name].in_(found.correlate(None))


TENANT: Final = "tenant_id"

NOUNS: Final[Mapping[str, str]] = {
    "agents": "agent",
    "users": "user",
    "projects": "project",
    "project_members": "member",
    "sessions": "session",
    "messages": "message",
    "memories": "memory",
    "memory_history": "history",
    "extraction_runs": "run",
    "gate_decisions": "decision",
    "memory_feedback": "feedback",
    "context_injections": "injection",
    "injected_contexts": "injected_context",
    "session_states": "state",
    "session_state_snapshot": "snapshot",
    "session_summaries": "summary",
    "checkpoints": "checkpoint",
    "checkpoint_archive": "archived_checkpoint",
    "approvals": "approval",
    "saver_checkpoints": "saver_checkpoint",
    "saver_chunks": "saver_chunk",
    "saver_values": "saver_value",
    "saver_writes": "saver_write",
    "blocks": "block",
    "agent_blocks": "attached_block",
    "block_history": "block_history",
    "graph_entities": "entity",
    "graph_aliases": "alias",
    "graph_relations": "relation",
    "graph_mentions": "mention",
    "graph_changes": "graph_change",
    "profiles": "profile",
    "profile_values": "profile_value",
    "profile_history": "profile_history",
    "store_items": "store_item",
    "store_texts": "store_text",
    "folders": "folder",
    "agent_folders": "attached_folder",
    "files": "file",
    "file_chunks": "file_chunk",
    "passages": "passage",
}
"""Name of a table's row in a line; parents come before the rows that refer to them."""

NOT_EXPORTED: Final[Mapping[str, str]] = {
    "tenants": "an import goes into a tenant that is there, with its own settings",
    "sign_in_codes": "secrets, good for minutes",
    "api_keys": "secrets: new keys are made where they are used",
    "idempotency_keys": "answers kept for a day, for keys that are not exported",
    "jobs": "work of this service; unread messages are found again automatically",
    "usage": "the ledger of what models of this deployment cost",
    "evaluation_results": "what was measured on this service",
    "daily_counts": "what this service did by day, in numbers",
    "model_answers": "answers of models kept for a day, for work of this service",
    "webhooks": "secrets, and addresses that a copy must not begin to call",
    "webhook_deliveries": "what was sent to those addresses",
    "memory_buckets": "measured here: codes are made again where they help",
    "erasures": "receipts of this service about people who are gone from it",
}

# Owners of other rows; a narrower export has those it only refers to as stubs.
ANCHORS: Final = ("agents", "users", "projects")

# Parents of tables that have no foreign key to them.
BELONGS: Final[Mapping[str, tuple[str, str]]] = {"memory_history": ("memory_id", "memories")}

# Computed in the background: they may have changed since an import, which is no conflict.
DERIVED: Final = frozenset(
    {
        "embedding", "embedding_model", "code", "terms", "term_count", "word_count",
        "is_question", "has_time", "analyser", "use_count", "last_used_at", "last_active_time",
        "beside_tokens", "memory_tokens", "last_at",
        "states_wish", "piece_ends", "piece_terms", "piece_term_counts", "piece_embeddings",
        "searched_text",
    }
)  # fmt: skip

VECTORS: Final = frozenset({"embedding", "embedding_model", "code", "piece_embeddings"})

NO_MODEL: Final = ""
"""Model of a memory without a vector: no embedder's name, so `kemem reembed` makes a vector."""

RECEIPTS: Final = metadata.tables["erasures"]
"""Read, never written: hashes of erased ids."""

TABLES: Final[Mapping[str, Table]] = {name: metadata.tables[name] for name in NOUNS}
TABLE_OF: Final[Mapping[str, Table]] = {noun: TABLES[name] for name, noun in NOUNS.items()}


def columns_of(table: Table, *, vectors: bool = True) -> list[Column[object]]:
    """Columns that a line holds, sorted by name."""
    return sorted(
        (
            column
            for column in table.columns
            if column.name != TENANT and (vectors or column.name not in VECTORS)
        ),
        key=lambda column: column.name,
    )


def key_of(table: Table) -> list[Column[object]]:
    """The primary key within a tenant."""
    return [column for column in table.primary_key if column.name != TENANT]


def stub_columns(table: Table) -> list[Column[object]]:
    """The columns without which a row cannot exist."""
    return [
        column
        for column in columns_of(table)
        if column.primary_key or not (column.nullable or column.server_default)
    ]


def references_of(table: Table) -> list[ForeignKeyConstraint]:
    """Its foreign keys to exported tables, by their columns."""
    found = [key for key in table.foreign_key_constraints if key.referred_table.name in NOUNS]
    return sorted(found, key=lambda key: tuple(key.column_keys))


def reference_columns(key: ForeignKeyConstraint) -> dict[str, str]:
    """Columns of a foreign key and the columns they refer to, without the tenant."""
    return {
        element.parent.name: element.column.name
        for element in key.elements
        if element.parent.name != TENANT
    }


def self_reference(table: Table) -> Column[object] | None:
    """The column by which a row refers to a row of the same table; None without one."""
    for key in references_of(table):
        if key.referred_table is table:
            [name] = reference_columns(key)
            return table.c[name]
    return None


def may_be_left_out(column: Column[object]) -> bool:
    """Whether a line without this column can be written."""
    return bool(
        column.nullable or column.server_default is not None or column.name == "embedding_model"
    )
