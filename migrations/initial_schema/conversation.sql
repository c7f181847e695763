-- What was said: sessions, their working state, messages.

-- One conversation of one user with one agent.
CREATE TABLE sessions (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C" NOT NULL,
    project_id varchar(64) COLLATE "C",
    session_name varchar(255),
    session_type varchar(50),
    context jsonb DEFAULT '{}' NOT NULL,
    status smallint DEFAULT 1 NOT NULL,
    end_time timestamptz(6),
    memory_enabled boolean DEFAULT true NOT NULL,
    injection_enabled boolean DEFAULT true NOT NULL,
    last_sequence_no bigint DEFAULT 0 NOT NULL,
    last_message_time timestamptz(6),
    last_extracted_seq bigint DEFAULT 0 NOT NULL,
    in_context_from bigint DEFAULT 0 NOT NULL,
    set_aside int8multirange DEFAULT '{}' NOT NULL,
    window_tokens bigint DEFAULT 0 NOT NULL,
    window_messages bigint DEFAULT 0 NOT NULL,
    window_seq bigint DEFAULT 0 NOT NULL,
    last_user_seq bigint DEFAULT 0 NOT NULL,
    token_scale double precision DEFAULT 1 NOT NULL,
    summary_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    summary_tokens bigint DEFAULT 0 NOT NULL,
    window_policy jsonb,
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, session_id),
    CONSTRAINT sessions_ck_status CHECK (status IN (0, 1))
);

CREATE INDEX sessions_idx_agent_user ON sessions (tenant_id, agent_id, user_id);
CREATE INDEX sessions_idx_create_time ON sessions (tenant_id, create_time, session_id);
CREATE INDEX sessions_idx_project_id ON sessions (tenant_id, project_id);
CREATE INDEX sessions_idx_status_create_time ON sessions (tenant_id, status, create_time);
CREATE INDEX sessions_idx_user_id ON sessions (tenant_id, user_id, create_time, session_id);

-- The working state of a running session: small key-value data, dropped at its end.
CREATE TABLE session_states (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    state jsonb DEFAULT '{}' NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT session_states_pkey PRIMARY KEY (tenant_id, session_id)
);

-- A stored copy of the working state alone, and why it was made.
CREATE TABLE session_state_snapshot (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    snapshot_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    state jsonb NOT NULL,
    state_version bigint NOT NULL,
    reason varchar(20) NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT session_state_snapshot_pkey PRIMARY KEY (tenant_id, snapshot_id),
    CONSTRAINT session_state_snapshot_ck_reason CHECK (
        reason IN ('manual', 'periodic', 'end', 'before_compact', 'before_restore')
    )
);

CREATE INDEX session_state_snapshot_idx_session
    ON session_state_snapshot (tenant_id, session_id, create_time, snapshot_id);

-- One entry of a session, ordered by `sequence_no`.
CREATE TABLE messages (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    message_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    role varchar(20) NOT NULL,
    content text NOT NULL,
    content_type varchar(50) DEFAULT 'text' NOT NULL,
    content_parts jsonb,
    tool_calls jsonb,
    tool_call_id varchar(255),
    name varchar(255),
    metadata jsonb DEFAULT '{}' NOT NULL,
    captured boolean DEFAULT true NOT NULL,
    parent_message_id varchar(64) COLLATE "C",
    input_hash bytea,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    sequence_no bigint NOT NULL,
    token_count bigint,
    said_at timestamptz(6),
    embedding vector,
    embedding_model varchar(255),
    terms sparsevec,
    term_count smallint,
    word_count smallint,
    is_question boolean,
    has_time boolean,
    analyser smallint,
    CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, message_id),
    CONSTRAINT messages_ck_role CHECK (role IN ('user', 'assistant', 'system', 'tool'))
);

CREATE INDEX messages_idx_agent_create_time ON messages (tenant_id, agent_id, create_time);
CREATE INDEX messages_idx_analyser ON messages (tenant_id, analyser);
CREATE INDEX messages_idx_calls
    ON messages (tenant_id, session_id, sequence_no) WHERE tool_calls IS NOT NULL;
CREATE INDEX messages_idx_create_time ON messages (tenant_id, create_time);
CREATE INDEX messages_idx_instructions
    ON messages (tenant_id, session_id, sequence_no)
    WHERE role = 'system' AND (metadata ->> 'event_type') IS NULL;
CREATE INDEX messages_idx_parent
    ON messages (tenant_id, parent_message_id) WHERE parent_message_id IS NOT NULL;
CREATE INDEX messages_idx_results
    ON messages (tenant_id, session_id, tool_call_id, sequence_no) WHERE tool_call_id IS NOT NULL;
CREATE INDEX messages_idx_session_create_time ON messages (tenant_id, session_id, create_time);
CREATE UNIQUE INDEX messages_idx_session_sequence ON messages (tenant_id, session_id, sequence_no);
CREATE INDEX messages_idx_user_create_time ON messages (tenant_id, user_id, create_time);
CREATE INDEX messages_idx_waiting
    ON messages (tenant_id, session_id, sequence_no)
    WHERE analyser IS NULL OR (terms IS NOT NULL AND embedding_model IS NULL);
CREATE UNIQUE INDEX messages_uk_agent_user_session_time
    ON messages (tenant_id, agent_id, user_id, session_id, create_time);
