-- What kemem_dispatch sees of all tenants: keys before their tenant is known, the list of tenants,
-- and what scheduling needs of jobs and webhooks, but neither their contents nor their results.

GRANT SELECT ON tenants TO kemem_dispatch;
CREATE POLICY tenants_dispatch ON tenants FOR SELECT TO kemem_dispatch USING (true);

GRANT SELECT (
    tenant_id, key_id, key_prefix, key_hash, scopes, agent_id, user_id, expires_at, revoked_at
), UPDATE (last_used_at) ON api_keys TO kemem_dispatch;
CREATE POLICY api_keys_dispatch ON api_keys TO kemem_dispatch USING (true);

GRANT SELECT (
    tenant_id, job_id, kind, key,
    status, priority, due_at, waiting_since, deferred_reason, run_again, again_due_at, again_since,
    generation, attempts, max_attempts, lease_token, lease_expires_at, worker, error_code,
    error_detail, started_at, finished_at, update_time
), INSERT (
    tenant_id, job_id, kind, key,
    status, priority, due_at, waiting_since, deferred_reason, run_again, again_due_at, again_since,
    generation, attempts, max_attempts, lease_token, lease_expires_at, worker, error_code,
    error_detail, started_at, finished_at, update_time
), UPDATE (
    status, priority, due_at, waiting_since, deferred_reason, run_again, again_due_at, again_since,
    generation, attempts, max_attempts, lease_token, lease_expires_at, worker, error_code,
    error_detail, started_at, finished_at, update_time,
    -- Ending a job empties the one and writes the other, which this role cannot read.
    payload, result
) ON jobs TO kemem_dispatch;
CREATE POLICY jobs_dispatch ON jobs TO kemem_dispatch USING (true) WITH CHECK (true);

GRANT SELECT (tenant_id, webhook_id, enabled, paused_until) ON webhooks TO kemem_dispatch;
CREATE POLICY webhooks_dispatch ON webhooks FOR SELECT TO kemem_dispatch USING (true);

GRANT SELECT (tenant_id, webhook_id, status, next_attempt_at)
ON webhook_deliveries TO kemem_dispatch;
CREATE POLICY webhook_deliveries_dispatch ON webhook_deliveries
FOR SELECT TO kemem_dispatch USING (true);
