"""Which memories wait for a vector of the embedder in force."""

from app.identity.agents.repository import VectorRepository


class MemoryVectorRepository(VectorRepository):
    """Vectors of one tenant's memories; messages have theirs read with them."""

    # The same choice as in `embedding.py`, for many rows at once: the agent's embedder, else the
    # tenant's. `in_force` holds only what this deployment can resolve, so the rest stays as it is.
    WAITING = """
FROM memories m
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = m.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.status <> 'deleted'
  AND m.embedding_model <> in_force.model
"""
    KEY = "m.memory_id"
    COLUMNS = (
        "m.memory_id AS id, m.content, CAST(m.version AS text) AS version, "
        "m.embedding_model AS old, in_force.model AS new"
    )
    # Whoever changed the row meanwhile has embedded it anew, or it waits for the next round.
    REPLACE = """
UPDATE memories m SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:versions AS text[]), CAST(:old AS text[]),
    CAST(:new AS text[]), CAST(:vectors AS text[])
) AS v(memory_id, version, old, new, vector)
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.memory_id = v.memory_id
  AND m.version = CAST(v.version AS bigint) AND m.embedding_model = v.old AND m.status <> 'deleted'
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM memories m WHERE m.tenant_id = CAST(:tenant_id AS text)
      AND m.embedding_model = listed.model AND m.status <> 'deleted'
) OR EXISTS (
    SELECT 1 FROM messages m WHERE m.tenant_id = CAST(:tenant_id AS text)
      AND m.embedding_model = listed.model
)
"""
