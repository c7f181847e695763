"""Rows that a world lacks: of packages that need a model, and the odd ones an export trips over."""

import asyncpg

ODD = 'Zürich "quoted" \\ back\u2028line\u0001 \U0001f41d 搬到慕尼黑\r\nend'

# One of each per owner: a user, a project, an agent. `$1` is the tenant, `$2` the kind, `$3` the
# id of the owner, `$4` a memory.
_OWNED = """
WITH whose AS (
    SELECT given.*, CASE WHEN scope = 'user' THEN scope_id END AS user_id,
        CASE WHEN scope = 'agent' THEN scope_id END AS agent_id,
        CASE WHEN scope = 'project' THEN scope_id END AS project_id
    FROM (VALUES (CAST($1 AS text), CAST($2 AS text), CAST($3 AS text)))
        AS given (tenant_id, scope, scope_id)
), entities AS (
    INSERT INTO graph_entities (tenant_id, scope, scope_id, user_id, agent_id, project_id,
        entity_id, name, name_key, entity_type, merged_into, embedding, embedding_model, version)
    SELECT whose.*, entity_id || scope, entity_id || CAST($5 AS text), entity_id, 'place',
        into_id || scope, '[0.1,-2.5e-05,3]', 'stand-in', 7
    FROM whose, (VALUES ('a', 'm'), ('m', 'b'), ('b', NULL), ('z', 'm'))
        AS given (entity_id, into_id)
    RETURNING *
), aliases AS (
    INSERT INTO graph_aliases (tenant_id, entity_id, alias_key, alias)
    SELECT tenant_id, entity_id, 'muc', 'MUC' FROM entities
), relations AS (
    INSERT INTO graph_relations (tenant_id, scope, scope_id, user_id, agent_id, project_id,
        relation_id, version, source_id, relation, destination_id, confidence, evidence, valid_from)
    SELECT whose.*, 'r' || scope, 2, 'a' || scope, 'lives_in', 'b' || scope, 0.1, '{one,two}',
        '2020-02-29 00:00:00.120001+05:30' FROM whose
), mentions AS (
    INSERT INTO graph_mentions (tenant_id, memory_id, entity_id)
    SELECT tenant_id, CAST($4 AS text), 'a' || scope FROM whose
), changes AS (
    INSERT INTO graph_changes (tenant_id, scope, scope_id, user_id, agent_id, project_id,
        change_id, event, entity_ids, before, after)
    SELECT whose.*, 'c' || scope, 'MERGE', '{a,b}', '{"n": [1.50, 1e3, null, {"b": 1, "aa": 2}]}',
        'null' FROM whose
), profile AS (
    -- A world has one of each already.
    SELECT profiles.* FROM profiles JOIN whose USING (tenant_id)
    WHERE profiles.user_id = whose.user_id OR profiles.project_id = whose.project_id
), profile_value AS (
    INSERT INTO profile_values (tenant_id, profile_id, slot, value, origin)
    SELECT tenant_id, profile_id, slot, CAST(value AS jsonb), 'user'
    FROM profile, (VALUES ('name', '"Ana"'), ('nothing', 'null')) AS given (slot, value)
), profile_history AS (
    INSERT INTO profile_history (tenant_id, history_id, profile_id, slot, event, origin, version)
    SELECT tenant_id, 'h' || profile_id, profile_id, 'name', 'SET', 'user', 1 FROM profile
), item AS (
    INSERT INTO store_items (tenant_id, item_id, space, path, key, user_id, agent_id, value,
        ttl_minutes, expires_at)
    SELECT tenant_id, 'i' || scope, coalesce(agent_id, '') || '/', 'a.b', CAST($5 AS text),
        user_id, agent_id, '{"n": [1.50, 1e3, null], "枫": {"aa": 2, "b": 1}}', 0.1,
        '2090-02-28 00:00:00.120001+05:30'
    FROM whose RETURNING *
), texts AS (
    INSERT INTO store_texts (tenant_id, text_id, item_id, content, embedding, embedding_model)
    SELECT tenant_id, item_id || '_0', item_id, CAST($5 AS text), '[1,2]', 'other' FROM item
), folder AS (
    INSERT INTO folders (tenant_id, scope, scope_id, user_id, agent_id, project_id, folder_id,
        folder_name)
    SELECT whose.*, 'f' || scope, CAST($5 AS text) FROM whose RETURNING *
), file AS (
    INSERT INTO files (tenant_id, file_id, folder_id, file_name, content_type, size, sha256, state)
    SELECT tenant_id, 'd' || scope, folder_id, 'a.txt', 'text/plain', 3, '\\x00ff0a', 'completed'
    FROM folder RETURNING *
), chunks AS (
    INSERT INTO file_chunks (tenant_id, file_id, number, content)
    SELECT tenant_id, file_id, 0, decode(repeat('00ff0a5c', 4000), 'hex') FROM file
)
INSERT INTO passages (tenant_id, passage_id, folder_id, file_id, content, terms, embedding,
    embedding_model)
SELECT tenant_id, 'g' || file_id, folder_id, file_id, CAST($5 AS text), '{3:0.5,1:1}/1000000000',
    '[1,2]', 'other'
FROM file
"""

# A chain, the newest of which is the oldest: what it refers to was written after it.
_CHAIN = """
WITH given AS (
    SELECT memory_id, row_number() OVER (ORDER BY memory_id DESC) AS n
    FROM memories WHERE tenant_id = $1 AND user_id = 'ana' AND status = 'active'
)
UPDATE memories SET status = 'superseded', superseded_by = after.memory_id
FROM given JOIN given after ON after.n = given.n + 1
WHERE memories.tenant_id = $1 AND memories.memory_id = given.memory_id
"""

_ODD = """
UPDATE messages SET content = $2, metadata = '{"z": 1, "aa": [0.1, 12345678901234567890]}',
    create_time = '1999-12-31 23:59:59.9+00' WHERE tenant_id = $1 AND message_id LIKE '%said-1'
"""

_ATTACHED = """
INSERT INTO agent_folders (tenant_id, agent_id, folder_id)
SELECT tenant_id, 'rival', folder_id FROM folders WHERE tenant_id = $1
"""

_CODES = """
UPDATE memories SET code = binary_quantize(embedding), use_count = 3, last_used_at = now()
WHERE tenant_id = $1
"""


async def add_further_rows(dsn: str, tenant_id: str, memory_id: str) -> None:
    """Rows beside those of a world, for ana, apollo and helper."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        async with connection.transaction():
            for kind, one in (("user", "ana"), ("project", "apollo"), ("agent", "helper")):
                await connection.execute(_OWNED, tenant_id, kind, one, memory_id, ODD)
            for statement in (_CHAIN, _ATTACHED, _CODES):
                await connection.execute(statement, tenant_id)
            await connection.execute(_ODD, tenant_id, ODD)
    finally:
        await connection.close()
