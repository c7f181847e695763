-- What a model is shown: summaries, blocks, checkpoints and LangGraph's threads.

-- The text that stands for evicted messages; never changed and only deleted with its session.
CREATE TABLE session_summaries (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    summary_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    level smallint NOT NULL,
    parent_id varchar(64) COLLATE "C",
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    content text NOT NULL,
    tokens bigint NOT NULL,
    evicted_messages bigint NOT NULL,
    evicted_tokens bigint NOT NULL,
    model varchar(255) NOT NULL,
    shortened boolean DEFAULT false NOT NULL,
    reason varchar(20) NOT NULL,
    creator varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT session_summaries_pkey PRIMARY KEY (tenant_id, summary_id),
    CONSTRAINT session_summaries_ck_level CHECK (level >= 0),
    CONSTRAINT session_summaries_ck_range CHECK (from_seq <= to_seq)
);

CREATE INDEX session_summaries_idx_session
    ON session_summaries (tenant_id, session_id, create_time, summary_id);

-- A text of limited length that its agents always see.
CREATE TABLE blocks (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    block_id varchar(64) COLLATE "C" NOT NULL,
    label varchar(50) NOT NULL,
    value text DEFAULT '' NOT NULL,
    value_limit bigint DEFAULT 5000 NOT NULL,
    description text,
    tags varchar(50)[] DEFAULT '{}' NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    read_only boolean DEFAULT false NOT NULL,
    hidden boolean DEFAULT false NOT NULL,
    user_id varchar(64) COLLATE "C",
    per_user boolean DEFAULT false NOT NULL,
    template_id varchar(64) COLLATE "C",
    history_no bigint DEFAULT 1 NOT NULL,
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT blocks_pkey PRIMARY KEY (tenant_id, block_id),
    CONSTRAINT blocks_ck_per_user CHECK (user_id IS NULL OR NOT per_user),
    CONSTRAINT blocks_ck_template_id CHECK (template_id IS NULL OR user_id IS NOT NULL),
    CONSTRAINT blocks_ck_value_limit CHECK (char_length(value) <= value_limit)
);

CREATE INDEX blocks_idx_create_time ON blocks (tenant_id, create_time, block_id);
CREATE INDEX blocks_idx_label ON blocks (tenant_id, label);
CREATE INDEX blocks_idx_user_id ON blocks (tenant_id, user_id);
CREATE UNIQUE INDEX blocks_uk_template_user
    ON blocks (tenant_id, template_id, user_id) WHERE template_id IS NOT NULL;

-- A block in the context of an agent; an agent has each label once, and each user too.
CREATE TABLE agent_blocks (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    block_id varchar(64) COLLATE "C" NOT NULL,
    label varchar(50) NOT NULL,
    user_id varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT agent_blocks_pkey PRIMARY KEY (tenant_id, agent_id, block_id)
);

CREATE INDEX agent_blocks_idx_block_id ON agent_blocks (tenant_id, block_id);
CREATE UNIQUE INDEX agent_blocks_uk_label
    ON agent_blocks (tenant_id, agent_id, label, coalesce(user_id, ''));

-- What a block said after one change, and who made it; read for undo and redo.
CREATE TABLE block_history (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    block_id varchar(64) COLLATE "C" NOT NULL,
    history_no bigint NOT NULL,
    event varchar(20) NOT NULL,
    value text NOT NULL,
    description text,
    actor varchar(64) COLLATE "C",
    session_id varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT block_history_pkey PRIMARY KEY (tenant_id, block_id, history_no)
);

-- A full image of a session at one point, which it can be put back to.
CREATE TABLE checkpoints (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    contents jsonb NOT NULL,
    state jsonb NOT NULL,
    state_version bigint NOT NULL,
    checkpoint_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    namespace varchar(255) DEFAULT '' NOT NULL,
    parent_id varchar(64) COLLATE "C",
    step bigint,
    source varchar(50),
    reason varchar(20) DEFAULT 'manual' NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    message_seq bigint NOT NULL,
    set_aside int8multirange DEFAULT '{}' NOT NULL,
    in_context_from bigint NOT NULL,
    summary_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    size_bytes bigint NOT NULL,
    creator varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT checkpoints_pkey PRIMARY KEY (tenant_id, checkpoint_id),
    CONSTRAINT checkpoints_ck_reason CHECK (
        reason IN ('manual', 'periodic', 'end', 'before_compact', 'before_restore')
    )
);

CREATE INDEX checkpoints_idx_create_time ON checkpoints (tenant_id, create_time);
CREATE INDEX checkpoints_idx_session
    ON checkpoints (tenant_id, session_id, create_time, checkpoint_id);

-- A checkpoint past its time, compressed.
CREATE TABLE checkpoint_archive (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    compressed bytea NOT NULL,
    archived_at timestamptz(6) DEFAULT now() NOT NULL,
    checkpoint_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    namespace varchar(255) DEFAULT '' NOT NULL,
    parent_id varchar(64) COLLATE "C",
    step bigint,
    source varchar(50),
    reason varchar(20) DEFAULT 'manual' NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    message_seq bigint NOT NULL,
    set_aside int8multirange DEFAULT '{}' NOT NULL,
    in_context_from bigint NOT NULL,
    summary_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    size_bytes bigint NOT NULL,
    creator varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT checkpoint_archive_pkey PRIMARY KEY (tenant_id, checkpoint_id)
);

CREATE INDEX checkpoint_archive_idx_session
    ON checkpoint_archive (tenant_id, session_id, create_time, checkpoint_id);

-- A call of a tool that waits for a human, and what they said.
CREATE TABLE approvals (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    approval_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    tool_call_id varchar(255) NOT NULL,
    message_id varchar(64) COLLATE "C",
    sequence_no bigint NOT NULL,
    status varchar(20) DEFAULT 'pending' NOT NULL,
    call jsonb NOT NULL,
    arguments jsonb,
    comment text,
    actor varchar(64) COLLATE "C",
    expires_at timestamptz(6) NOT NULL,
    decided_at timestamptz(6),
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT approvals_pkey PRIMARY KEY (tenant_id, approval_id),
    CONSTRAINT approvals_ck_status CHECK (
        status IN ('pending', 'approved', 'rejected', 'modified', 'timeout')
    )
);

CREATE INDEX approvals_idx_expires_at ON approvals (tenant_id, expires_at) WHERE status = 'pending';
CREATE INDEX approvals_idx_session ON approvals (tenant_id, session_id, create_time, approval_id);
CREATE UNIQUE INDEX approvals_uk_call
    ON approvals (tenant_id, session_id, tool_call_id, sequence_no);

-- One step of a graph: the checkpoint without the values of its channels.
CREATE TABLE saver_checkpoints (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    namespace varchar(255) COLLATE "C" NOT NULL,
    checkpoint_id varchar(64) COLLATE "C" NOT NULL,
    parent_id varchar(64) COLLATE "C",
    run_id varchar(255) COLLATE "C",
    metadata jsonb NOT NULL,
    channels jsonb NOT NULL,
    type varchar(100) NOT NULL,
    checkpoint bytea NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT saver_checkpoints_pkey PRIMARY KEY (tenant_id, session_id, namespace, checkpoint_id)
);

CREATE INDEX saver_checkpoints_idx_checkpoint_id
    ON saver_checkpoints (tenant_id, checkpoint_id, session_id, namespace);
CREATE INDEX saver_checkpoints_idx_run_id
    ON saver_checkpoints (tenant_id, run_id) WHERE run_id IS NOT NULL;

-- What a channel held, by the digest of its type and its chunks.
CREATE TABLE saver_values (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    type varchar(100) NOT NULL,
    chunks bytea[] NOT NULL,
    CONSTRAINT saver_values_pkey PRIMARY KEY (tenant_id, session_id, digest)
);

-- A piece of values, compressed, by the digest of what it says; gone with its last value.
CREATE TABLE saver_chunks (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    content bytea NOT NULL,
    CONSTRAINT saver_chunks_pkey PRIMARY KEY (tenant_id, session_id, digest)
);

-- What a task has written before its step was over; never without its checkpoint.
CREATE TABLE saver_writes (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    session_id varchar(64) COLLATE "C" NOT NULL,
    namespace varchar(255) COLLATE "C" NOT NULL,
    checkpoint_id varchar(64) COLLATE "C" NOT NULL,
    task_id varchar(255) COLLATE "C" NOT NULL,
    idx bigint NOT NULL,
    task_path text NOT NULL,
    channel varchar(255) COLLATE "C" NOT NULL,
    type varchar(100) NOT NULL,
    value bytea NOT NULL,
    CONSTRAINT saver_writes_pkey
        PRIMARY KEY (tenant_id, session_id, namespace, checkpoint_id, task_id, idx)
);
