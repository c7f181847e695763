-- Entities and relations through time, and profiles.

-- Somebody or something that statements speak of, once in its bucket.
CREATE TABLE graph_entities (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    entity_id varchar(64) COLLATE "C" NOT NULL,
    name varchar(255) NOT NULL,
    name_key varchar(255) COLLATE "C" NOT NULL,
    entity_type varchar(50) NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    embedding vector,
    embedding_model varchar(255),
    merged_into varchar(64) COLLATE "C",
    creator varchar(64) COLLATE "C",
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    CONSTRAINT graph_entities_pkey PRIMARY KEY (tenant_id, entity_id),
    CONSTRAINT graph_entities_ck_scope CHECK (scope IN ('user', 'project', 'agent'))
);

CREATE INDEX graph_entities_idx_agent_id ON graph_entities (tenant_id, agent_id);
CREATE INDEX graph_entities_idx_create_time ON graph_entities (tenant_id, create_time, entity_id);
CREATE INDEX graph_entities_idx_merged_into
    ON graph_entities (tenant_id, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX graph_entities_idx_name_key ON graph_entities (tenant_id, name_key);
CREATE INDEX graph_entities_idx_project_id ON graph_entities (tenant_id, project_id);
CREATE INDEX graph_entities_idx_user_id ON graph_entities (tenant_id, user_id);
CREATE UNIQUE INDEX graph_entities_uk_name_key
    ON graph_entities (tenant_id, scope_id, scope, name_key, user_id, agent_id)
    NULLS NOT DISTINCT WHERE merged_into IS NULL;

-- Another name of an entity.
CREATE TABLE graph_aliases (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    entity_id varchar(64) COLLATE "C" NOT NULL,
    alias_key varchar(255) COLLATE "C" NOT NULL,
    alias varchar(255) NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT graph_aliases_pkey PRIMARY KEY (tenant_id, entity_id, alias_key)
);

CREATE INDEX graph_aliases_idx_alias_key ON graph_aliases (tenant_id, alias_key);

-- One version of one relation: what was thought to hold, when, and while we thought so.
CREATE TABLE graph_relations (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    relation_id varchar(64) COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    source_id varchar(64) COLLATE "C" NOT NULL,
    relation varchar(100) NOT NULL,
    destination_id varchar(64) COLLATE "C" NOT NULL,
    confidence double precision NOT NULL,
    evidence varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    memory_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    valid_from timestamptz(6),
    valid_to timestamptz(6),
    known_from timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    known_to timestamptz(6),
    reason text,
    actor varchar(64) COLLATE "C",
    job_id varchar(64) COLLATE "C",
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    CONSTRAINT graph_relations_pkey PRIMARY KEY (tenant_id, relation_id, version),
    CONSTRAINT graph_relations_ck_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT graph_relations_ck_relation CHECK (relation ~ '^[a-z][a-z0-9_]{0,99}$')
);

CREATE INDEX graph_relations_idx_agent_id ON graph_relations (tenant_id, agent_id);
CREATE INDEX graph_relations_idx_destination_id
    ON graph_relations (tenant_id, destination_id, relation) WHERE known_to IS NULL;
CREATE INDEX graph_relations_idx_destination_past
    ON graph_relations (tenant_id, destination_id, known_from);
CREATE INDEX graph_relations_idx_known_from ON graph_relations (tenant_id, known_from, relation_id);
CREATE INDEX graph_relations_idx_project_id ON graph_relations (tenant_id, project_id);
CREATE INDEX graph_relations_idx_source_id
    ON graph_relations (tenant_id, source_id, relation) WHERE known_to IS NULL;
CREATE INDEX graph_relations_idx_source_past ON graph_relations (tenant_id, source_id, known_from);
CREATE INDEX graph_relations_idx_user_id ON graph_relations (tenant_id, user_id);
CREATE UNIQUE INDEX graph_relations_uk_current
    ON graph_relations (tenant_id, source_id, relation, destination_id)
    WHERE known_to IS NULL AND valid_to IS NULL;

-- A memory that speaks of an entity.
CREATE TABLE graph_mentions (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    memory_id varchar(64) COLLATE "C" NOT NULL,
    entity_id varchar(64) COLLATE "C" NOT NULL,
    CONSTRAINT graph_mentions_pkey PRIMARY KEY (tenant_id, memory_id, entity_id)
);

CREATE INDEX graph_mentions_idx_entity_id ON graph_mentions (tenant_id, entity_id, memory_id);

-- A merge or a split by hand: all rows it touched as they were, so that it can be undone.
CREATE TABLE graph_changes (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    change_id varchar(64) COLLATE "C" NOT NULL,
    event varchar(20) NOT NULL,
    entity_ids varchar(64)[] COLLATE "C" NOT NULL,
    before jsonb NOT NULL,
    after jsonb NOT NULL,
    reason text,
    actor varchar(64) COLLATE "C",
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    undone_at timestamptz(6),
    scope varchar(20) NOT NULL,
    scope_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    agent_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    CONSTRAINT graph_changes_pkey PRIMARY KEY (tenant_id, change_id),
    CONSTRAINT graph_changes_ck_event CHECK (event IN ('MERGE', 'SPLIT', 'UPDATE', 'DELETE'))
);

CREATE INDEX graph_changes_idx_agent_id ON graph_changes (tenant_id, agent_id);
CREATE INDEX graph_changes_idx_create_time ON graph_changes (tenant_id, create_time, change_id);
CREATE INDEX graph_changes_idx_project_id ON graph_changes (tenant_id, project_id);
CREATE INDEX graph_changes_idx_user_id ON graph_changes (tenant_id, user_id);

-- The profile of one user, or of one project. `version` rises with every change of a value.
CREATE TABLE profiles (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    profile_id varchar(64) COLLATE "C" NOT NULL,
    user_id varchar(64) COLLATE "C",
    project_id varchar(64) COLLATE "C",
    instructions text,
    derived_until timestamptz(6),
    version bigint DEFAULT 1 NOT NULL,
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT profiles_pkey PRIMARY KEY (tenant_id, profile_id),
    CONSTRAINT profiles_ck_owner CHECK (num_nonnulls(user_id, project_id) = 1)
);

CREATE UNIQUE INDEX profiles_uk_project_id
    ON profiles (tenant_id, project_id) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX profiles_uk_user_id ON profiles (tenant_id, user_id) WHERE user_id IS NOT NULL;

-- One value: `attributes.profession`, `sections.work_context`, `slots.diet.allergies`.
CREATE TABLE profile_values (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    profile_id varchar(64) COLLATE "C" NOT NULL,
    slot varchar(200) COLLATE "C" NOT NULL,
    value jsonb NOT NULL,
    origin varchar(10) NOT NULL,
    memory_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    deriver varchar(255),
    create_time timestamptz(6) DEFAULT now() NOT NULL,
    update_time timestamptz(6) DEFAULT now() NOT NULL,
    CONSTRAINT profile_values_pkey PRIMARY KEY (tenant_id, profile_id, slot),
    CONSTRAINT profile_values_ck_origin CHECK (origin IN ('user', 'derived'))
);

-- One change of one value.
CREATE TABLE profile_history (
    tenant_id varchar(64) COLLATE "C" NOT NULL,
    history_id varchar(64) COLLATE "C" NOT NULL,
    profile_id varchar(64) COLLATE "C" NOT NULL,
    slot varchar(200) COLLATE "C" NOT NULL,
    event varchar(10) NOT NULL,
    before jsonb,
    after jsonb,
    origin varchar(10) NOT NULL,
    memory_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
    reason text,
    actor varchar(64) COLLATE "C",
    job_id varchar(64) COLLATE "C",
    version bigint NOT NULL,
    create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT profile_history_pkey PRIMARY KEY (tenant_id, history_id),
    CONSTRAINT profile_history_ck_event CHECK (event IN ('SET', 'REMOVE'))
);

CREATE INDEX profile_history_idx_profile
    ON profile_history (tenant_id, profile_id, create_time, history_id);
