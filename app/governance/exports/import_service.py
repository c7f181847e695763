"""Use cases of an import. A part is written in one transaction: all of its rows, or none.

Rows that exist are compared with the lines; see `is_same` and `is_other_row`.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from pydantic import JsonValue
from sqlalchemy import ForeignKeyConstraint, Table

from app.governance.exports.parts import ExportedLine, ImportPart, groups, read_part
from app.governance.exports.repository import ImportRepository, RefusedRowsError
from app.governance.exports.schemas import (
    MOST_LISTED,
    AnotherRowError,
    ErasedError,
    ImportConflictError,
    ImportReport,
    InvalidImportError,
    RowImportQuery,
)
from app.governance.exports.scope_sql import (
    BELONGS,
    DERIVED,
    NOUNS,
    TABLES,
    key_of,
    reference_columns,
    references_of,
)
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.repository import TenantRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

Row = Mapping[str, Any]

# Callers choose the ids of agents and users, so the same id means the same agent or user.
_PARENTS: Final = frozenset(
    {key.referred_table.name for table in TABLES.values() for key in references_of(table)}
    | {parent for _, parent in BELONGS.values()}
) - {"agents", "users"}

# Fixed for the life of a row, and kept by an import.
_FIXED: Final = ("create_time", "user_id", "scope", "scope_id")


def is_same(line: Row, row: Row) -> bool:
    """Whether a stored row has the content of a line; a line need not have every column."""
    return not _differing(line, row)


def difference(table: Table, line: Row, row: Row) -> str:
    """How a stored row differs from a line: names of columns, never their values."""
    detail = f"differs in {', '.join(_differing(line, row))}"
    return f"is another row of this id: {detail}" if is_other_row(table, line, row) else detail


def is_other_row(table: Table, line: Row, row: Row) -> bool:
    """Whether a stored row is not a version of the line, but a different row with the same id.

    It was created at another time, or for another owner, and other rows may refer to it: those
    that refer to the line must not be attached to it.
    """
    return table.name in _PARENTS and any(
        line.get(name) is not None and row.get(name) is not None and line[name] != row[name]
        for name in _FIXED
    )


def _differing(line: Row, row: Row) -> list[str]:
    return sorted(
        name for name, value in line.items() if name not in DERIVED and row[name] != value
    )


class ImportService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def add(
        self,
        principal: Principal,
        body: bytes,
        query: RowImportQuery,
        *,
        key: IdempotencyKey | None = None,
    ) -> ImportReport:
        """Write the rows of a part as they were, with their times, versions and numbers.

        Safe to repeat: rows that exist are not changed. A dry run writes nothing.

        Raises:
            InvalidImportError: a line is not valid, or refers to a row that does not exist.
            ImportConflictError: rows exist with other content, and none may be skipped.
            AnotherRowError: an id that other rows refer to belongs to a different row here.
            ErasedError: users of the part were erased since the export.
            KeyRestrictedError: the key is restricted to an agent or a user.
            MemoryDisabledError: writing is switched off.

        """
        if principal.access.restricted:
            raise KeyRestrictedError
        self._work.refuse_disabled()
        part = await asyncio.to_thread(read_part, body)
        async with self._work.write(principal, key) as unit:
            repository = ImportRepository(unit.db, principal.tenant_id)
            if not query.restore_erased:
                await _refuse_erased(repository, part)
            writing = _Writing(repository, query)
            for group in groups(part.lines):
                await writing.write(group)
            if not query.restore_erased:
                # An erasure may have ended while a line waited for it.
                await _refuse_erased(repository, part)
            writing.refuse_conflicts()
            if not query.dry_run:
                await repository.raise_counters(_sessions(part.lines))
                # A search asks for the vectors of models that are listed.
                for model in sorted(_models(part.lines)):
                    await TenantRepository(unit.db, principal.tenant_id).note_model(model)
            report = unit.answer(writing.report(), 200)
        log.info("rows_imported", rows=sum(report.inserted.values()), dry_run=query.dry_run)
        return report


class _Writing:
    """Writes groups of lines and counts what was done with them."""

    def __init__(self, repository: ImportRepository, query: RowImportQuery) -> None:
        self._repository = repository
        self._dry_run = query.dry_run
        self._skipping = query.on_conflict == "skip"
        self._inserted: Counter[str] = Counter()
        self._unchanged: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._conflicts: list[dict[str, JsonValue]] = []
        self._others: list[dict[str, JsonValue]] = []

    def report(self) -> ImportReport:
        return ImportReport(
            inserted=dict(self._inserted),
            unchanged=dict(self._unchanged),
            skipped=dict(self._skipped),
            conflicts=self._conflicts[:MOST_LISTED],
            dry_run=self._dry_run,
        )

    def refuse_conflicts(self) -> None:
        """Raises ImportConflictError or AnotherRowError when the part cannot be written."""
        if self._conflicts and not self._skipping:
            raise ImportConflictError(self._conflicts)
        if self._others:
            raise AnotherRowError(self._others)

    async def write(self, group: Sequence[ExportedLine]) -> None:
        """Write one group of lines; compare those whose keys are taken.

        Raises InvalidImportError.
        """
        if self._dry_run:
            await self._compare(group, new_is_fine=True)
            return
        left = await self._with_parents(group)
        if not left:
            return
        try:
            names = sorted(left[0].row)
            new = await self._repository.insert(left[0].table, names, [line.json for line in left])
        except RefusedRowsError as error:
            if len(group) == 1:
                detail = f"this {group[0].noun} {error}"
                raise InvalidImportError([group[0].fault("row", detail=detail)]) from error
            # Find the refused line; or a line refers to another of the group, which is skipped.
            for line in left:
                await self.write([line])
            return
        taken = []
        for line in left:
            if line.key in new:
                new.remove(line.key)
                self._inserted[line.noun] += 1
            else:
                taken.append(line)
        await self._compare(taken, new_is_fine=False)

    async def _compare(self, lines: Sequence[ExportedLine], *, new_is_fine: bool) -> None:
        if not lines:
            return
        table = lines[0].table
        there = await self._repository.existing(table, [line.row for line in lines])
        for line in lines:
            row = there.get(line.key)
            if row is None and new_is_fine:
                self._inserted[line.noun] += 1
            elif row is None:
                self._skip(line, "another row holds a value that only one may have")
            elif line.stub or is_same(line.row, row):
                self._unchanged[line.noun] += 1
            else:
                conflict = self._skip(line, difference(table, line.row, row))
                if is_other_row(table, line.row, row):
                    self._others.append(conflict)

    def _skip(self, line: ExportedLine, detail: str) -> dict[str, JsonValue]:
        conflict: dict[str, JsonValue] = {
            "line": line.number,
            "type": line.noun,
            "key": {column.name: line.row[column.name] for column in key_of(line.table)},
            "detail": detail,
        }
        self._skipped[line.noun] += 1
        self._conflicts.append(conflict)
        return conflict

    async def _with_parents(self, group: Sequence[ExportedLine]) -> list[ExportedLine]:
        """The lines without those that refer to a row that is neither stored nor in the group.

        Raises:
            InvalidImportError: there are such lines, and none may be skipped.
            ImportConflictError: the same, because lines before were skipped.

        """
        found: list[tuple[ExportedLine, str, str]] = []
        for key in references_of(group[0].table):
            found += await self._missing(key, group)
        if found and not self._skipping:
            self.refuse_conflicts()
            raise InvalidImportError(
                [
                    line.fault("row", name, detail=f"{detail}: import the lines before it first")
                    for line, name, detail in found
                ]
            )
        orphans = {line.number: (line, detail) for line, _, detail in reversed(found)}
        for _, (line, detail) in sorted(orphans.items()):
            self._skip(line, detail)
        return [line for line in group if line.number not in orphans]

    async def _missing(
        self, key: ForeignKeyConstraint, group: Sequence[ExportedLine]
    ) -> list[tuple[ExportedLine, str, str]]:
        """Lines whose reference has no row, each with its column and what is missing."""
        pairs = reference_columns(key)
        target = key.referred_table
        wanted: dict[tuple[Any, ...], list[ExportedLine]] = {}
        for line in group:
            value = tuple(line.row.get(name) for name in pairs)
            if None not in value:
                wanted.setdefault(value, []).append(line)
        if target is group[0].table:
            for line in group:
                wanted.pop(line.key, None)
        if not wanted:
            return []
        names = list(pairs.values())
        rows = [dict(zip(names, value, strict=True)) for value in wanted]
        there = await self._repository.present(target, names, rows)
        return [
            (line, next(iter(pairs)), _names_nothing(NOUNS[target.name], value))
            for value, lines in wanted.items()
            if value not in there
            for line in lines
        ]


async def _refuse_erased(repository: ImportRepository, part: ImportPart) -> None:
    """Raises ErasedError."""
    erased = await repository.erased(part.user_ids(), part.created_at)
    if erased:
        raise ErasedError(erased)


def _names_nothing(noun: str, value: Sequence[Any]) -> str:
    named = ", ".join(str(part)[:64] for part in value)
    return f"there is no {noun} {named}"


def _sessions(lines: Sequence[ExportedLine]) -> set[str]:
    return {line.row["session_id"] for line in lines if line.noun == "message"}


def _models(lines: Sequence[ExportedLine]) -> set[str]:
    return {
        line.row["embedding_model"] for line in lines if line.row.get("embedding") is not None
    } - {None}
