-- Work to be done and answers to be repeated: jobs, webhooks, idempotency keys, receipts.

-- What one key of one caller was answered, until it expires.
CREATE TABLE idempotency_keys (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    key_id varchar(64) COLLATE "C" NOT NULL,
    idempotency_key varchar(255) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    request_hash bytea NOT NULL,
    status smallint NOT NULL,
    answer bytea NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    expires_at timestamptz(6) NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, key_id, idempotency_key)
);

CREATE INDEX idempotency_keys_idx_expires_at ON idempotency_keys (tenant_id, expires_at);
CREATE INDEX idempotency_keys_idx_user_id ON idempotency_keys (tenant_id, user_id);

-- One piece of work. `(kind, key)` is live at most once in a tenant.
CREATE TABLE jobs (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    job_id varchar(64) COLLATE "C" NOT NULL,
    kind varchar(40) NOT NULL,
    key varchar(255) COLLATE "C" NOT NULL,
    status varchar(20) DEFAULT 'pending' NOT NULL,
    priority smallint DEFAULT 0 NOT NULL,
    agent_id varchar(64) COLLATE "C",
    user_id varchar(64) COLLATE "C",
    session_id varchar(64) COLLATE "C",
    signals varchar(40)[] DEFAULT '{}' NOT NULL,
    payload jsonb DEFAULT '{}' NOT NULL,
    creator varchar(64) COLLATE "C",
    due_at timestamptz(6) DEFAULT now() NOT NULL,
    waiting_since timestamptz(6) DEFAULT now() NOT NULL,
    deferred_reason varchar(40),
    run_again boolean DEFAULT false NOT NULL,
    again_due_at timestamptz(6),
    again_since timestamptz(6),
    again_signals varchar(40)[] DEFAULT '{}' NOT NULL,
    again_payload jsonb,
    generation bigint DEFAULT 1 NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    max_attempts smallint DEFAULT 8 NOT NULL,
    lease_token varchar(64) COLLATE "C",
    lease_expires_at timestamptz(6),
    worker varchar(255),
    error_code varchar(50),
    error_detail text,
    result jsonb,
    started_at timestamptz(6),
    finished_at timestamptz(6),
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT jobs_pkey PRIMARY KEY (tenant_id, job_id),
    CONSTRAINT jobs_ck_status CHECK (
        status IN ('pending', 'running', 'succeeded', 'dead', 'cancelled')
    )
);

CREATE INDEX jobs_idx_create_time ON jobs (tenant_id, create_time, job_id);
CREATE INDEX jobs_idx_due ON jobs (tenant_id, priority, due_at) WHERE status = 'pending';
CREATE INDEX jobs_idx_finished_at
    ON jobs (tenant_id, kind, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_idx_running ON jobs (tenant_id, job_id) WHERE status = 'running';
CREATE INDEX jobs_idx_session_id ON jobs (tenant_id, session_id);
CREATE INDEX jobs_idx_user_id ON jobs (tenant_id, user_id);
CREATE UNIQUE INDEX jobs_uk_live
    ON jobs (tenant_id, kind, key) WHERE status IN ('pending', 'running');

-- An address that is told of some kinds of event. The secret signs; it is shown once.
CREATE TABLE webhooks (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    webhook_id varchar(64) COLLATE "C" NOT NULL,
    url text NOT NULL,
    secret text NOT NULL,
    old_secret text,
    old_secret_expires_at timestamptz(6),
    events varchar(40)[] NOT NULL,
    description text,
    enabled boolean DEFAULT true NOT NULL,
    disabled_reason varchar(40),
    failures bigint DEFAULT 0 NOT NULL,
    failing_since timestamptz(6),
    last_failure_at timestamptz(6),
    paused_until timestamptz(6),
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT webhooks_pkey PRIMARY KEY (tenant_id, webhook_id)
);

CREATE INDEX webhooks_idx_create_time ON webhooks (tenant_id, create_time, webhook_id);

-- One event for one webhook, written in the transaction of the change.
CREATE TABLE webhook_deliveries (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    delivery_id varchar(64) COLLATE "C" NOT NULL,
    webhook_id varchar(64) COLLATE "C" NOT NULL,
    event_id varchar(64) COLLATE "C" NOT NULL,
    event_type varchar(40) NOT NULL,
    payload jsonb NOT NULL,
    user_id varchar(64) COLLATE "C",
    status varchar(20) DEFAULT 'pending' NOT NULL,
    attempts smallint DEFAULT 0 NOT NULL,
    next_attempt_at timestamptz(6) DEFAULT now(),
    attempted_at timestamptz(6),
    response_status smallint,
    error_code varchar(50),
    duration_ms bigint,
    delivered_at timestamptz(6),
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant_id, delivery_id),
    CONSTRAINT webhook_deliveries_ck_status CHECK (status IN ('pending', 'delivered', 'dead'))
);

CREATE INDEX webhook_deliveries_idx_due
    ON webhook_deliveries (tenant_id, webhook_id, next_attempt_at, delivery_id)
    WHERE status = 'pending';
CREATE INDEX webhook_deliveries_idx_user_id ON webhook_deliveries (tenant_id, user_id);
CREATE INDEX webhook_deliveries_idx_webhook_id
    ON webhook_deliveries (tenant_id, webhook_id, create_time, delivery_id);

-- The receipt of an erasure: counts, and a hash by which whoever knows the id finds it.
CREATE TABLE erasures (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    erasure_id varchar(64) COLLATE "C" NOT NULL,
    kind varchar(20) NOT NULL,
    subject_hash bytea NOT NULL,
    deleted jsonb DEFAULT '{}' NOT NULL,
    actor varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT erasures_pkey PRIMARY KEY (tenant_id, erasure_id)
);

CREATE INDEX erasures_idx_create_time ON erasures (tenant_id, create_time, erasure_id);
CREATE INDEX erasures_idx_subject ON erasures (tenant_id, subject_hash);
