"""Which passages wait for a vector of the embedder in force."""

from app.identity.agents.repository import VectorRepository


class PassageVectorRepository(VectorRepository):
    """Vectors of one tenant's passages."""

    # The choice of `Embedders.for_writing`, for many rows at once: the folder's agent's, else the
    # tenant's. `in_force` holds only what this deployment can resolve, so the rest stays as it is.
    WAITING = """
FROM passages p
JOIN folders f ON f.tenant_id = CAST(:tenant_id AS text) AND f.folder_id = p.folder_id
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = f.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.embedding_model IS DISTINCT FROM in_force.model
"""
    KEY = "p.passage_id"
    # A passage's text never changes.
    COLUMNS = (
        "p.passage_id AS id, p.content, '' AS version, "
        "p.embedding_model AS old, in_force.model AS new"
    )
    # One that is being deleted is left to whoever does.
    REPLACE = """
WITH locked AS MATERIALIZED (
    SELECT passage_id FROM passages
    WHERE tenant_id = CAST(:tenant_id AS text) AND passage_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE passages p SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:old AS text[]), CAST(:new AS text[]), CAST(:vectors AS text[])
) AS v(passage_id, old, new, vector), locked
WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.passage_id = v.passage_id
  AND locked.passage_id = v.passage_id AND p.embedding_model IS NOT DISTINCT FROM v.old
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM passages p
    WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.embedding_model = listed.model
)
"""
