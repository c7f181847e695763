"""What an export holds and for whom, in one snapshot and in constant memory."""

from sqlalchemy import LargeBinary

from app.governance.exports.scope_sql import (
    BELONGS,
    NOT_EXPORTED,
    NOUNS,
    TABLES,
    columns_of,
    key_of,
    reference_columns,
    references_of,
)
from app.governance.tables import TABLES as REGISTERED


class TestTables:
    def test_every_table_is_exported_or_left_out_for_a_reason(self) -> None:
        registered = {table.__tablename__ for table in REGISTERED}

        assert registered == NOUNS.keys() | NOT_EXPORTED.keys()
        assert not NOUNS.keys() & NOT_EXPORTED.keys()
        assert len(set(NOUNS.values())) == len(NOUNS)

    def test_parents_stand_before_what_refers_to_them(self) -> None:
        order = list(NOUNS)
        for table in TABLES.values():
            for key in table.foreign_key_constraints:
                parent = key.referred_table.name
                assert parent == "tenants" or order.index(parent) <= order.index(table.name)
        for name, (_, parent) in BELONGS.items():
            assert order.index(parent) < order.index(name)

    def test_a_table_refers_to_itself_by_one_column_that_may_be_null(self) -> None:
        for table in TABLES.values():
            own = [key for key in references_of(table) if key.referred_table is table]
            for key in own:
                [name] = reference_columns(key)
                assert table.c[name].nullable
                assert len(key_of(table)) == len(own) == 1

    def test_every_column_but_the_tenant_is_shown(self) -> None:
        for table in TABLES.values():
            shown = {column.name for column in columns_of(table)}
            assert shown == {column.name for column in table.columns} - {"tenant_id"}
            # Else a line could not say which it is.
            assert all(column.name in shown for column in key_of(table))

    def test_bytes_in_keys_are_digests(self) -> None:
        for table in TABLES.values():
            for column in key_of(table):
                assert not isinstance(column.type, LargeBinary) or column.name == "digest"
