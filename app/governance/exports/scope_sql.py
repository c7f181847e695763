"""Which rows an export holds: all, or those of one user, agent or project, and their anchors.

A row belongs to the owner in its own column; a row without such a column goes with its parent.
Agents, users and projects that are only referred to are exported as stubs.
"""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import (
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

from app.governance.exports.exported_tables import (
    ANCHORS,
    BELONGS,
    TABLES,
    TENANT,
    reference_columns,
    references_of,
)

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
