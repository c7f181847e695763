-- What is remembered, what happened to it, where it came from and where it was shown.

-- One remembered statement, with the vector that finds it in the same row.
CREATE TABLE memories (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    memory_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    session_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    content text NOT NULL,
    content_hash bytea NOT NULL,
    memory_type varchar(20) NOT NULL,
    attribute varchar(100),
    tier varchar(10) NOT NULL,
    source varchar(20) NOT NULL,
    source_id varchar(64) COLLATE "C",
    source_deleted_at timestamptz(6),
    source_error text,
    evidence varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    confidence double precision NOT NULL,
    visibility varchar(20) NOT NULL,
    status varchar(20) DEFAULT 'active' NOT NULL,
    superseded_by varchar(64) COLLATE "C",
    valid_from timestamptz(6),
    valid_to timestamptz(6),
    expected_valid_days smallint,
    reviewed_at timestamptz(6),
    expires_at timestamptz(6),
    deleted_at timestamptz(6),
    external_id varchar(255),
    metadata jsonb DEFAULT '{}' NOT NULL,
    embedding vector,
    embedding_model varchar(255) NOT NULL,
    code bit varying,
    creator varchar(64) COLLATE "C",
    use_count bigint DEFAULT 0 NOT NULL,
    last_used_at timestamptz(6),
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    terms sparsevec,
    term_count smallint,
    word_count smallint,
    is_question boolean,
    has_time boolean,
    analyser smallint,
    CONSTRAINT memories_pkey PRIMARY KEY (tenant_id, memory_id),
    CONSTRAINT memories_ck_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT memories_ck_expected_valid_days CHECK (expected_valid_days BETWEEN 1 AND 3650),
    CONSTRAINT memories_ck_memory_type CHECK (
        memory_type IN (
            'preference', 'fact', 'skill', 'habit', 'event', 'context', 'constraint', 'decision',
            'goal', 'correction', 'knowledge', 'experience'
        )
    ),
    CONSTRAINT memories_ck_scope CHECK (
        (scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id)
        OR (scope = 'session')
        OR (scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id)
        OR (scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)
    ),
    CONSTRAINT memories_ck_source CHECK (
        source IN ('user', 'ai', 'knowledge_base', 'project_resource', 'import')
    ),
    CONSTRAINT memories_ck_status CHECK (status IN ('active', 'archived', 'superseded', 'deleted')),
    CONSTRAINT memories_ck_tier CHECK (tier IN ('short', 'long')),
    CONSTRAINT memories_ck_visibility CHECK (visibility IN ('public', 'members', 'owner_only'))
);

CREATE INDEX memories_idx_agent_id ON memories (tenant_id, agent_id, create_time, memory_id);
CREATE INDEX memories_idx_analyser ON memories (tenant_id, analyser);
CREATE INDEX memories_idx_attribute
    ON memories (tenant_id, scope_id, scope, attribute)
    WHERE attribute IS NOT NULL AND status = 'active';
CREATE INDEX memories_idx_bucket ON memories (tenant_id, scope_id, scope) WHERE status = 'active';
CREATE INDEX memories_idx_bucket_past
    ON memories (tenant_id, scope_id, scope) WHERE status IN ('archived', 'superseded');
CREATE INDEX memories_idx_create_time ON memories (tenant_id, create_time, memory_id);
CREATE INDEX memories_idx_deleted_at ON memories (tenant_id, deleted_at) WHERE status = 'deleted';
CREATE INDEX memories_idx_embedding_model ON memories (tenant_id, embedding_model, memory_id);
CREATE INDEX memories_idx_expires_at
    ON memories (tenant_id, expires_at) WHERE expires_at IS NOT NULL AND status = 'active';
CREATE INDEX memories_idx_project_id ON memories (tenant_id, project_id);
CREATE INDEX memories_idx_session_id ON memories (tenant_id, session_id);
CREATE INDEX memories_idx_source_id
    ON memories (tenant_id, source_id) WHERE source = 'knowledge_base';
CREATE INDEX memories_idx_superseded_by
    ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_idx_user_id ON memories (tenant_id, user_id, create_time, memory_id);
CREATE UNIQUE INDEX memories_uk_content_hash
    ON memories (tenant_id, scope_id, scope, content_hash, user_id, agent_id)
    NULLS NOT DISTINCT WHERE status = 'active';

-- One change of one item: what it was, what it became, who did it and why.
CREATE TABLE memory_history (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    history_id varchar(64) COLLATE "C" NOT NULL,
    memory_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    event varchar(20) NOT NULL,
    reason text,
    actor varchar(64) COLLATE "C",
    job_id varchar(64) COLLATE "C",
    before jsonb,
    after jsonb,
    embedding vector,
    embedding_model varchar(255),
    version bigint NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    terms sparsevec,
    term_count smallint,
    word_count smallint,
    is_question boolean,
    has_time boolean,
    analyser smallint,
    CONSTRAINT memory_history_pkey PRIMARY KEY (tenant_id, history_id)
);

CREATE INDEX memory_history_idx_analyser
    ON memory_history (tenant_id, analyser) WHERE embedding IS NOT NULL;
CREATE INDEX memory_history_idx_memory_id
    ON memory_history (tenant_id, memory_id, create_time, history_id);
CREATE INDEX memory_history_idx_user_id ON memory_history (tenant_id, user_id);

-- A bucket of vectors of one model that has quantised codes, or was found unfit for them.
CREATE TABLE memory_buckets (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    embedding_model varchar(255) NOT NULL,
    rows bigint NOT NULL,
    coded_at timestamptz(6),
    sampled_recall double precision,
    sampled_at timestamptz(6),
    CONSTRAINT memory_buckets_pkey PRIMARY KEY (tenant_id, scope, scope_id, embedding_model)
);

-- One verdict of the gate, a refusal too; sensitive content is never in it.
CREATE TABLE gate_decisions (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    decision_id varchar(64) COLLATE "C" NOT NULL,
    verdict varchar(20) NOT NULL,
    codes varchar[] DEFAULT '{}' NOT NULL,
    reasons jsonb DEFAULT '[]' NOT NULL,
    content text,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    session_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    scope varchar(20) NOT NULL,
    memory_id varchar(64) COLLATE "C",
    source varchar(20) NOT NULL,
    event varchar(20),
    evidence varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    job_id varchar(64) COLLATE "C",
    run_id varchar(64) COLLATE "C",
    actor varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT gate_decisions_pkey PRIMARY KEY (tenant_id, decision_id)
);

CREATE INDEX gate_decisions_idx_create_time ON gate_decisions (tenant_id, create_time, decision_id);
CREATE INDEX gate_decisions_idx_job_id
    ON gate_decisions (tenant_id, job_id) WHERE job_id IS NOT NULL;
CREATE INDEX gate_decisions_idx_memory_id
    ON gate_decisions (tenant_id, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX gate_decisions_idx_user_id
    ON gate_decisions (tenant_id, user_id, create_time, decision_id);

-- What somebody thought of one memory, once.
CREATE TABLE memory_feedback (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    feedback_id varchar(64) COLLATE "C" NOT NULL,
    memory_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    author_id varchar(64) COLLATE "C",
    rating varchar(20) NOT NULL,
    comment text,
    version bigint NOT NULL,
    actor varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT memory_feedback_pkey PRIMARY KEY (tenant_id, feedback_id),
    CONSTRAINT memory_feedback_ck_rating CHECK (rating IN ('helpful', 'wrong', 'outdated'))
);

CREATE INDEX memory_feedback_idx_author_id
    ON memory_feedback (tenant_id, author_id) WHERE author_id IS NOT NULL;
CREATE INDEX memory_feedback_idx_memory_id
    ON memory_feedback (tenant_id, memory_id, create_time, feedback_id);
CREATE INDEX memory_feedback_idx_user_id ON memory_feedback (tenant_id, user_id);

-- A memory that stood in a session's context, so that saying it back is no news.
CREATE TABLE context_injections (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    memory_id varchar(64) COLLATE "C" NOT NULL,
    first_at timestamptz(6) DEFAULT now() NOT NULL,
    last_at timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT context_injections_pkey PRIMARY KEY (tenant_id, session_id, memory_id)
);

CREATE INDEX context_injections_idx_memory ON context_injections (tenant_id, memory_id);

-- One reading of some messages. Written right after the extractor answered, apart from the results,
-- so that tokens spent are counted whatever happens next.
CREATE TABLE extraction_runs (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    run_id varchar(64) COLLATE "C" NOT NULL,
    job_id varchar(64) COLLATE "C",
    trigger varchar(20) NOT NULL,
    status varchar(20) NOT NULL,
    error_code varchar(50),
    agent_id varchar(64) COLLATE "C",
    user_id varchar(64) COLLATE "C",
    session_id varchar(64) COLLATE "C",
    first_sequence_no bigint,
    last_sequence_no bigint,
    messages bigint DEFAULT 0 NOT NULL,
    extractor varchar(255) NOT NULL,
    model varchar(255),
    prompt_version varchar(40),
    reached_model boolean DEFAULT false NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    latency_ms bigint DEFAULT 0 NOT NULL,
    proposals bigint DEFAULT 0 NOT NULL,
    outcomes jsonb DEFAULT '{}' NOT NULL,
    upkeep jsonb DEFAULT '{}' NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    finish_time timestamptz(6),
    CONSTRAINT extraction_runs_pkey PRIMARY KEY (tenant_id, run_id),
    CONSTRAINT extraction_runs_ck_status CHECK (status IN ('extracted', 'committed', 'failed'))
);

CREATE INDEX extraction_runs_idx_create_time ON extraction_runs (tenant_id, create_time, run_id);
CREATE INDEX extraction_runs_idx_job_id ON extraction_runs (tenant_id, job_id);
CREATE INDEX extraction_runs_idx_session_id ON extraction_runs (tenant_id, session_id, create_time);
CREATE INDEX extraction_runs_idx_user_id ON extraction_runs (tenant_id, user_id);
