"""What of a profile stands in a context: one expression, for the hot read.

A value stands there while every memory it stands on does, and the session's agent may know it: what
another agent was told in confidence is not told on by way of the profile, nor what a member of a
project keeps to themselves.
"""

SHOWN = """
SELECT jsonb_build_object('instructions', profile.instructions, 'values', (
    SELECT jsonb_object_agg(
        told.slot, jsonb_build_object('value', told.value, 'memory_ids', told.memory_ids)
    )
    FROM profile_values AS told
    WHERE told.tenant_id = {tenant} AND told.profile_id = profile.profile_id
        AND cardinality(told.memory_ids) = (
            SELECT count(*) FROM memories AS ground
            WHERE ground.tenant_id = {tenant} AND ground.memory_id = ANY(told.memory_ids)
                AND ground.status <> 'deleted'
                AND (ground.agent_id IS NULL OR ground.agent_id = {agent})
                AND NOT (ground.scope = 'project' AND ground.visibility = 'owner_only')
        )
))
FROM profiles AS profile
WHERE profile.tenant_id = {tenant} AND profile.{column} = {owner}
"""
"""`{tenant}`, `{agent}` and `{owner}` are the caller's words for its values; `{column}` is
`user_id` or `project_id`. That the caller may see whose it is, is asked before.
"""
