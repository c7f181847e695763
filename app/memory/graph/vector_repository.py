"""Which entities of the graph have a name that no embedder in force has read."""

from app.identity.agents.repository import VectorRepository


class EntityVectorRepository(VectorRepository):
    """Vectors of the names of one tenant's entities."""

    # An entity that users share is named by runs of several agents, so that any model in force for
    # one of them may be right, and only what none of them made is brought over. What has no vector
    # was named by hand, and is found by its name.
    WAITING = """
FROM graph_entities e
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = e.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.embedding_model IS NOT NULL
  AND e.embedding_model <> ALL (CAST(:models AS text[]))
"""
    KEY = "e.entity_id"
    # Its name is all that its vector was made of.
    COLUMNS = (
        "e.entity_id AS id, e.name AS content, e.name AS version, "
        "e.embedding_model AS old, in_force.model AS new"
    )
    # Whoever renamed it meanwhile is looked at again in the next round.
    REPLACE = """
WITH locked AS MATERIALIZED (
    SELECT entity_id FROM graph_entities
    WHERE tenant_id = CAST(:tenant_id AS text) AND entity_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE graph_entities e SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:versions AS text[]), CAST(:old AS text[]), CAST(:new AS text[]),
    CAST(:vectors AS text[])
) AS v(entity_id, name, old, new, vector), locked
WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.entity_id = v.entity_id
  AND locked.entity_id = v.entity_id AND e.embedding_model = v.old AND e.name = v.name
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM graph_entities e
    WHERE e.tenant_id = CAST(:tenant_id AS text) AND e.embedding_model = listed.model
)
"""
