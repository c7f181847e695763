"""Databases as version 0.1 left them."""

import asyncpg

from app.platform.database.roles import OWNER

# What version 0.1 had differently, at the end of its seven revisions.
AS_IN_FIRST_VERSION = """
ALTER TABLE sessions DROP CONSTRAINT sessions_fk_projects,
    ADD CONSTRAINT sessions_fk_projects FOREIGN KEY (tenant_id, project_id)
    REFERENCES projects (tenant_id, project_id) ON DELETE SET NULL (project_id);
ALTER TABLE memories DROP CONSTRAINT memories_fk_projects,
    ADD CONSTRAINT memories_fk_projects FOREIGN KEY (tenant_id, project_id)
    REFERENCES projects (tenant_id, project_id) ON DELETE SET NULL (project_id);
ALTER TABLE memories DROP CONSTRAINT memories_fk_sessions,
    ADD CONSTRAINT memories_fk_sessions FOREIGN KEY (tenant_id, session_id)
    REFERENCES sessions (tenant_id, session_id) ON DELETE SET NULL (session_id);
ALTER TABLE memories DROP CONSTRAINT memories_fk_superseded_by,
    ADD CONSTRAINT memories_fk_superseded_by FOREIGN KEY (tenant_id, superseded_by)
    REFERENCES memories (tenant_id, memory_id) ON DELETE SET NULL (superseded_by);
ALTER TABLE graph_entities DROP CONSTRAINT graph_entities_fk_merged_into,
    ADD CONSTRAINT graph_entities_fk_merged_into FOREIGN KEY (tenant_id, merged_into)
    REFERENCES graph_entities (tenant_id, entity_id) ON DELETE SET NULL (merged_into);
ALTER TABLE messages DROP COLUMN states_wish, DROP COLUMN piece_ends, DROP COLUMN piece_terms,
    DROP COLUMN piece_term_counts, DROP COLUMN piece_embeddings;
DROP TRIGGER sessions_update_time ON sessions;
CREATE TRIGGER sessions_update_time BEFORE UPDATE ON sessions
    FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time();
ALTER TABLE sessions DROP COLUMN taught, DROP COLUMN forked_from, DROP COLUMN opening_seq,
    DROP COLUMN beside_tokens, DROP COLUMN memory_tokens;
ALTER TABLE blocks DROP COLUMN session_id;
ALTER TABLE messages DROP COLUMN copied_from, DROP COLUMN searched_text;
ALTER TABLE saver_checkpoints DROP COLUMN thread_id;
ALTER TABLE gate_decisions DROP COLUMN request;
DROP TABLE sign_in_codes;
DROP TABLE injected_contexts, model_answers, daily_counts, evaluation_results;
ALTER TABLE context_injections DROP COLUMN used_at, DROP COLUMN used_estimated_at;
DROP INDEX context_injections_idx_first_at;
DROP TRIGGER memories_code_moved ON memories;
ALTER TABLE memory_buckets DROP COLUMN version;
DROP TABLE store_texts;
DROP TABLE store_items;
DROP INDEX api_keys_uk_key_prefix;
CREATE UNIQUE INDEX api_keys_uk_key_prefix ON api_keys (key_prefix);
DO $$
DECLARE found record;
BEGIN
    FOR found IN SELECT conrelid::regclass::text AS name, conname FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND contype = 'c'
    LOOP
        EXECUTE format('ALTER TABLE %I RENAME CONSTRAINT %I TO %I', found.name, found.conname,
            found.name || '_ck_' || found.conname);
    END LOOP;
END $$;
"""


async def as_in_first_version(dsn: str, revision: str, statements: str = "") -> None:
    """Let a migrated database say that it is at `revision`, after `statements`."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(f"SET ROLE {OWNER}")
    if statements:
        await connection.execute(statements)
    await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
    await connection.close()
