-- Who uses the service: tenants, keys, agents, users, projects, and what they used.

-- The owner of data and keys. Every other table begins with its id, every query names it.
CREATE TABLE tenants (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    tenant_name varchar(255) NOT NULL,
    status smallint DEFAULT 1 NOT NULL,
    config jsonb DEFAULT '{}' NOT NULL,
    embedding_models varchar[] DEFAULT '{}' NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT tenants_ck_status CHECK (status IN (0, 1))
);

-- One key. Only its hash is kept; `key_prefix` is public and finds the row.
CREATE TABLE api_keys (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    key_id varchar(64) COLLATE "C" NOT NULL,
    key_prefix varchar(64) COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    key_name varchar(255),
    scopes varchar[] NOT NULL,
    agent_id varchar(64) COLLATE "C",
    user_id varchar(64) COLLATE "C",
    expires_at timestamptz(6),
    revoked_at timestamptz(6),
    last_used_at timestamptz(6),
    creator varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, key_id)
);

CREATE INDEX api_keys_idx_create_time ON api_keys (tenant_id, create_time, key_id);
-- A key is looked up before its tenant is known. The prefix is 64 random bits; the tenant stands
-- in the index because a distributed table can have no unique index without it.
CREATE UNIQUE INDEX api_keys_uk_key_prefix ON api_keys (key_prefix, tenant_id);

-- An application that uses memory. Disabled: it reads, and writes nothing.
CREATE TABLE agents (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    agent_name varchar(255) NOT NULL,
    agent_type varchar(50),
    description text,
    config jsonb DEFAULT '{}' NOT NULL,
    status smallint DEFAULT 1 NOT NULL,
    memory_enabled boolean DEFAULT true NOT NULL,
    injection_enabled boolean DEFAULT true NOT NULL,
    window_policy jsonb,
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, agent_id),
    CONSTRAINT agents_ck_status CHECK (status IN (0, 1))
);

CREATE INDEX agents_idx_create_time ON agents (tenant_id, create_time, agent_id);
CREATE INDEX agents_idx_status ON agents (tenant_id, status);

-- A person or organisation an agent talks to.
CREATE TABLE users (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    user_name varchar(255),
    user_type varchar(50),
    external_id varchar(255),
    profile jsonb DEFAULT '{}' NOT NULL,
    status smallint DEFAULT 1 NOT NULL,
    last_active_time timestamptz(6),
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (tenant_id, user_id),
    CONSTRAINT users_ck_status CHECK (status IN (0, 1))
);

CREATE INDEX users_idx_agent_id ON users (tenant_id, agent_id, create_time, user_id);
CREATE INDEX users_idx_agent_status ON users (tenant_id, agent_id, status);
CREATE INDEX users_idx_create_time ON users (tenant_id, create_time, user_id);
CREATE INDEX users_idx_last_active_time ON users (tenant_id, last_active_time);
CREATE UNIQUE INDEX users_uk_external_id ON users (tenant_id, agent_id, external_id);

-- A group of users who share memories.
CREATE TABLE projects (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    project_id varchar(64) COLLATE "C" NOT NULL,
    project_name varchar(255) NOT NULL,
    description text,
    metadata jsonb DEFAULT '{}' NOT NULL,
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT projects_pkey PRIMARY KEY (tenant_id, project_id)
);

CREATE INDEX projects_idx_create_time ON projects (tenant_id, create_time, project_id);

-- A user in a project, in one of four roles.
CREATE TABLE project_members (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    project_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C" NOT NULL,
    role varchar(20) NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT project_members_pkey PRIMARY KEY (tenant_id, project_id, user_id),
    CONSTRAINT project_members_ck_role CHECK (role IN ('owner', 'admin', 'editor', 'viewer'))
);

CREATE INDEX project_members_idx_user_id ON project_members (tenant_id, user_id);

-- Calls and tokens of one model for one operation on one day (UTC).
CREATE TABLE usage (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    day date NOT NULL,
    operation varchar(40) NOT NULL,
    model varchar(255) NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    failures bigint DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    CONSTRAINT usage_pkey PRIMARY KEY (tenant_id, day, operation, model)
);
