"""Constraint names: those of a distributed table's shards are the table's with a number."""

import pytest
from sqlalchemy.exc import IntegrityError

from app.errors import IdTakenError
from app.governance.tables import metadata
from app.platform.database.failures import conflicts, violated_constraint

SHARD_SUFFIX = 11
"""Characters of `_` and a shard's number."""
MOST_CHARACTERS = 63
"""Of a name; PostgreSQL cuts what is longer."""


class DriverError(Exception):
    def __init__(self, constraint_name: str | None) -> None:
        super().__init__("violated")
        self.constraint_name = constraint_name


def violation(constraint_name: str | None) -> IntegrityError:
    original = Exception("as SQLAlchemy wraps it")
    original.__cause__ = DriverError(constraint_name)
    return IntegrityError("INSERT", None, original)


@pytest.mark.parametrize("name", ["sessions_pkey", "sessions_pkey_102008"])
def test_conflict_is_named_on_one_server_and_on_many(name: str) -> None:
    taken = IdTakenError("session_id", "s")

    with pytest.raises(IdTakenError), conflicts({"sessions_pkey": taken}):
        raise violation(name)


@pytest.mark.parametrize("name", ["sessions_pkey_extra", "other_sessions_pkey", None])
def test_other_constraint_stays_what_it_is(name: str | None) -> None:
    with (
        pytest.raises(IntegrityError),
        conflicts({"sessions_pkey": IdTakenError("session_id", "s")}),
    ):
        raise violation(name)


def test_name_is_the_one_of_the_schema() -> None:
    assert violated_constraint(violation("jobs_uk_live_102044")) == "jobs_uk_live"
    assert violated_constraint(violation(None)) is None


def test_every_name_of_the_schema_can_carry_a_shard_number() -> None:
    names = {
        str(item.name)
        for table in metadata.tables.values()
        for item in (*table.constraints, *table.indexes)
    }

    assert len(names) > 100
    assert not {name for name in names if name[-1].isdigit()}
    assert max(map(len, names)) <= MOST_CHARACTERS - SHARD_SUFFIX


def test_every_key_holds_the_tenant_so_that_tables_can_be_distributed_by_it() -> None:
    for table in metadata.tables.values():
        assert table.primary_key.columns.keys()[0] == "tenant_id"
        unique = [index for index in table.indexes if index.unique]
        assert all("tenant_id" in index.columns for index in unique), table.name
        for key in table.foreign_key_constraints:
            first = key.elements[0]
            assert (first.parent.name, first.column.name) == ("tenant_id", "tenant_id"), key.name
            assert not key.deferrable, key.name
