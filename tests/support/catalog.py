"""Everything PostgreSQL knows of a schema but its rows, to compare two databases."""

import asyncpg

_ACL = "coalesce((SELECT string_agg(acl::text, ' ' ORDER BY acl::text) FROM unnest({}) acl), '')"

QUERIES = {
    "tables": "SELECT concat_ws(' ', relname, relkind, relpersistence, relrowsecurity, "
    "relforcerowsecurity, relreplident, pg_get_userbyid(relowner), reloptions, "
    f"{_ACL.format('relacl')}) FROM pg_class WHERE relnamespace = 'public'::regnamespace "
    "AND relkind <> 'i' AND relname <> 'alembic_version'",
    "columns": "SELECT concat_ws(' ', attrelid::regclass, attname, "
    "format_type(atttypid, atttypmod), attnotnull, collname, attidentity, attgenerated, "
    "attstorage, attcompression, attstattarget, attoptions, pg_get_expr(adbin, adrelid), "
    f"{_ACL.format('attacl')}) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
    "LEFT JOIN pg_collation ON pg_collation.oid = attcollation "
    "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
    "WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i' AND attnum > 0 "
    "AND NOT attisdropped",
    "indexes": "SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid, indisclustered, "
    "c.reloptions) FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
    "WHERE c.relnamespace = 'public'::regnamespace",
    "constraints": "SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid), "
    "condeferrable, convalidated) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
    "policies": "SELECT concat_ws(' ', tablename, policyname, permissive, roles, cmd, qual, "
    "with_check) FROM pg_policies",
    "functions": "SELECT concat_ws(' ', pg_get_functiondef(pg_proc.oid), "
    f"pg_get_userbyid(proowner), {_ACL.format('proacl')}) FROM pg_proc "
    "WHERE pronamespace = 'public'::regnamespace AND NOT EXISTS (SELECT FROM pg_depend "
    "WHERE objid = pg_proc.oid AND deptype = 'e')",
    "triggers": "SELECT concat_ws(' ', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger "
    "WHERE NOT tgisinternal",
    "statistics": "SELECT pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "rights": f"SELECT concat_ws(' ', defaclobjtype, {_ACL.format('defaclacl')}) "
    "FROM pg_default_acl",
}


async def catalog(connection: asyncpg.Connection) -> dict[str, set[str]]:
    """What is there, by kind; the order of columns is left out."""
    return {
        name: {row[0] for row in await connection.fetch(query)} for name, query in QUERIES.items()
    }
