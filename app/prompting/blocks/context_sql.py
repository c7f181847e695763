"""Which blocks stand in a context: one statement, for a transaction and for the hot read.

A second definition somewhere else would be a leak waiting to happen.
"""

IN_CONTEXT = """
SELECT shown.block_id, shown.label, shown.value, shown.value_limit, shown.description,
    shown.read_only, shown.version, shown.user_id, shown.per_user
FROM (
    -- A user's own block stands in the place of one that all share.
    SELECT DISTINCT ON (attached.label) coalesce(own.block_id, attached.block_id) AS block_id
    FROM agent_blocks attached
    LEFT JOIN blocks own ON own.tenant_id = {tenant}
        AND own.template_id = attached.block_id AND own.user_id = CAST({user} AS text)
    WHERE attached.tenant_id = {tenant} AND attached.agent_id = CAST({agent} AS text)
        AND (attached.user_id IS NULL OR attached.user_id = CAST({user} AS text))
    ORDER BY attached.label, attached.user_id IS NULL
) seen
JOIN blocks shown ON shown.tenant_id = {tenant} AND shown.block_id = seen.block_id
WHERE NOT shown.hidden
ORDER BY shown.label <> 'persona', shown.label <> 'human', shown.label COLLATE "C"
"""
"""Columns as `ShownBlock` has them. `{tenant}`, `{agent}` and `{user}` are the caller's words for
its parameters; without a user, what all users share. That the caller may see the session, or the
agent and the user, is asked before.
"""
