-- Folders, files and their passages.

-- Documents of a user, of a project, or of what an agent knows.
CREATE TABLE folders (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    folder_id varchar(64) COLLATE "C" NOT NULL,
    folder_name varchar(255) NOT NULL,
    description text,
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    metadata jsonb DEFAULT '{}' NOT NULL,
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT folders_pkey PRIMARY KEY (tenant_id, folder_id),
    CONSTRAINT folders_ck_scope CHECK (
        (scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id)
        OR (scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id)
        OR (scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)
    )
);

CREATE INDEX folders_idx_agent_id ON folders (tenant_id, agent_id);
CREATE INDEX folders_idx_create_time ON folders (tenant_id, create_time, folder_id);
CREATE INDEX folders_idx_project_id ON folders (tenant_id, project_id);
CREATE INDEX folders_idx_scope ON folders (tenant_id, scope_id, scope);
CREATE INDEX folders_idx_user_id ON folders (tenant_id, user_id);

-- A folder that a further agent reads too.
CREATE TABLE agent_folders (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    agent_id varchar(64) COLLATE "C" NOT NULL,
    folder_id varchar(64) COLLATE "C" NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT agent_folders_pkey PRIMARY KEY (tenant_id, agent_id, folder_id)
);

CREATE INDEX agent_folders_idx_folder_id ON agent_folders (tenant_id, folder_id);

-- One uploaded document and how far its ingestion is.
CREATE TABLE files (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    file_id varchar(64) COLLATE "C" NOT NULL,
    folder_id varchar(64) COLLATE "C" NOT NULL,
    file_name varchar(255) NOT NULL,
    content_type varchar(255) NOT NULL,
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    state varchar(20) DEFAULT 'pending' NOT NULL,
    error_code varchar(50),
    error_detail text,
    parser varchar(100),
    pages bigint,
    passage_count bigint DEFAULT 0 NOT NULL,
    passages_expected bigint,
    job_id varchar(64) COLLATE "C",
    tags varchar(50)[] DEFAULT '{}' NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT files_pkey PRIMARY KEY (tenant_id, file_id),
    CONSTRAINT files_ck_state CHECK (
        state IN ('pending', 'parsing', 'embedding', 'completed', 'error')
    )
);

CREATE INDEX files_idx_create_time ON files (tenant_id, folder_id, create_time, file_id);
CREATE UNIQUE INDEX files_uk_name ON files (tenant_id, folder_id, file_name);

-- A mebibyte of an uploaded file as it came, so that it can be read again.
CREATE TABLE file_chunks (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    file_id varchar(64) COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    content bytea NOT NULL,
    CONSTRAINT file_chunks_pkey PRIMARY KEY (tenant_id, file_id, number)
);

-- A piece of a file, or a text added to a folder without a file, with the vector that finds it.
CREATE TABLE passages (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    passage_id varchar(64) COLLATE "C" NOT NULL,
    folder_id varchar(64) COLLATE "C" NOT NULL,
    file_id varchar(64) COLLATE "C",
    ordinal bigint DEFAULT 0 NOT NULL,
    start_char bigint,
    end_char bigint,
    page bigint,
    content text NOT NULL,
    tags varchar(50)[] DEFAULT '{}' NOT NULL,
    embedding vector,
    embedding_model varchar(255),
    creator varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    terms sparsevec,
    term_count smallint,
    word_count smallint,
    is_question boolean,
    has_time boolean,
    analyser smallint,
    CONSTRAINT passages_pkey PRIMARY KEY (tenant_id, passage_id)
);

CREATE INDEX passages_idx_analyser ON passages (tenant_id, analyser);
CREATE INDEX passages_idx_embedding_model ON passages (tenant_id, embedding_model, passage_id);
CREATE INDEX passages_idx_folder ON passages (tenant_id, folder_id, create_time, passage_id);
CREATE UNIQUE INDEX passages_uk_file ON passages (tenant_id, file_id, ordinal);
