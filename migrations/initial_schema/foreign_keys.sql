-- They come after all tables, so that the tables can be distributed over several servers in
-- between. Each is a statement of its own, because a distributed table takes one constraint at a
-- time. Where nothing is said of ON DELETE, the service changes or deletes the referring rows.

ALTER TABLE api_keys
    ADD CONSTRAINT api_keys_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE agents
    ADD CONSTRAINT agents_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE users
    ADD CONSTRAINT users_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id);

ALTER TABLE projects
    ADD CONSTRAINT projects_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE project_members
    ADD CONSTRAINT project_members_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE project_members
    ADD CONSTRAINT project_members_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE usage
    ADD CONSTRAINT usage_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE sessions
    ADD CONSTRAINT sessions_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id);
ALTER TABLE sessions
    ADD CONSTRAINT sessions_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id);
ALTER TABLE sessions
    ADD CONSTRAINT sessions_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE session_states
    ADD CONSTRAINT session_states_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE session_state_snapshot
    ADD CONSTRAINT session_state_snapshot_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE messages
    ADD CONSTRAINT messages_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id);
ALTER TABLE messages
    ADD CONSTRAINT messages_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;
ALTER TABLE messages
    ADD CONSTRAINT messages_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE memories
    ADD CONSTRAINT memories_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id);
ALTER TABLE memories
    ADD CONSTRAINT memories_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id);
ALTER TABLE memories
    ADD CONSTRAINT memories_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id);
ALTER TABLE memories
    ADD CONSTRAINT memories_fk_superseded_by FOREIGN KEY (tenant_id, superseded_by)
        REFERENCES memories (tenant_id, memory_id);
ALTER TABLE memories
    ADD CONSTRAINT memories_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE memory_history
    ADD CONSTRAINT memory_history_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
ALTER TABLE memory_history
    ADD CONSTRAINT memory_history_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE memory_buckets
    ADD CONSTRAINT memory_buckets_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE gate_decisions
    ADD CONSTRAINT gate_decisions_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE memory_feedback
    ADD CONSTRAINT memory_feedback_fk_memories FOREIGN KEY (tenant_id, memory_id)
        REFERENCES memories (tenant_id, memory_id) ON DELETE CASCADE;
ALTER TABLE memory_feedback
    ADD CONSTRAINT memory_feedback_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE context_injections
    ADD CONSTRAINT context_injections_fk_memories FOREIGN KEY (tenant_id, memory_id)
        REFERENCES memories (tenant_id, memory_id) ON DELETE CASCADE;
ALTER TABLE context_injections
    ADD CONSTRAINT context_injections_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE extraction_runs
    ADD CONSTRAINT extraction_runs_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;
ALTER TABLE extraction_runs
    ADD CONSTRAINT extraction_runs_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
ALTER TABLE extraction_runs
    ADD CONSTRAINT extraction_runs_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE graph_entities
    ADD CONSTRAINT graph_entities_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE graph_entities
    ADD CONSTRAINT graph_entities_fk_merged_into FOREIGN KEY (tenant_id, merged_into)
        REFERENCES graph_entities (tenant_id, entity_id);
ALTER TABLE graph_entities
    ADD CONSTRAINT graph_entities_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE graph_entities
    ADD CONSTRAINT graph_entities_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE graph_aliases
    ADD CONSTRAINT graph_aliases_fk_graph_entities FOREIGN KEY (tenant_id, entity_id)
        REFERENCES graph_entities (tenant_id, entity_id) ON DELETE CASCADE;

ALTER TABLE graph_relations
    ADD CONSTRAINT graph_relations_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE graph_relations
    ADD CONSTRAINT graph_relations_fk_destination_id FOREIGN KEY (tenant_id, destination_id)
        REFERENCES graph_entities (tenant_id, entity_id) ON DELETE CASCADE;
ALTER TABLE graph_relations
    ADD CONSTRAINT graph_relations_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE graph_relations
    ADD CONSTRAINT graph_relations_fk_source_id FOREIGN KEY (tenant_id, source_id)
        REFERENCES graph_entities (tenant_id, entity_id) ON DELETE CASCADE;
ALTER TABLE graph_relations
    ADD CONSTRAINT graph_relations_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE graph_mentions
    ADD CONSTRAINT graph_mentions_fk_graph_entities FOREIGN KEY (tenant_id, entity_id)
        REFERENCES graph_entities (tenant_id, entity_id) ON DELETE CASCADE;
ALTER TABLE graph_mentions
    ADD CONSTRAINT graph_mentions_fk_memories FOREIGN KEY (tenant_id, memory_id)
        REFERENCES memories (tenant_id, memory_id) ON DELETE CASCADE;

ALTER TABLE graph_changes
    ADD CONSTRAINT graph_changes_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE graph_changes
    ADD CONSTRAINT graph_changes_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE graph_changes
    ADD CONSTRAINT graph_changes_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE profiles
    ADD CONSTRAINT profiles_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE profiles
    ADD CONSTRAINT profiles_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE profile_values
    ADD CONSTRAINT profile_values_fk_profiles FOREIGN KEY (tenant_id, profile_id)
        REFERENCES profiles (tenant_id, profile_id) ON DELETE CASCADE;

ALTER TABLE profile_history
    ADD CONSTRAINT profile_history_fk_profiles FOREIGN KEY (tenant_id, profile_id)
        REFERENCES profiles (tenant_id, profile_id) ON DELETE CASCADE;

ALTER TABLE session_summaries
    ADD CONSTRAINT session_summaries_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE blocks
    ADD CONSTRAINT blocks_fk_blocks FOREIGN KEY (tenant_id, template_id)
        REFERENCES blocks (tenant_id, block_id) ON DELETE CASCADE;
ALTER TABLE blocks
    ADD CONSTRAINT blocks_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
ALTER TABLE blocks
    ADD CONSTRAINT blocks_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE agent_blocks
    ADD CONSTRAINT agent_blocks_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE agent_blocks
    ADD CONSTRAINT agent_blocks_fk_blocks FOREIGN KEY (tenant_id, block_id)
        REFERENCES blocks (tenant_id, block_id) ON DELETE CASCADE;

ALTER TABLE block_history
    ADD CONSTRAINT block_history_fk_blocks FOREIGN KEY (tenant_id, block_id)
        REFERENCES blocks (tenant_id, block_id) ON DELETE CASCADE;

ALTER TABLE checkpoints
    ADD CONSTRAINT checkpoints_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE checkpoint_archive
    ADD CONSTRAINT checkpoint_archive_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE approvals
    ADD CONSTRAINT approvals_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE saver_checkpoints
    ADD CONSTRAINT saver_checkpoints_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE saver_values
    ADD CONSTRAINT saver_values_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE saver_chunks
    ADD CONSTRAINT saver_chunks_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;

ALTER TABLE saver_writes
    ADD CONSTRAINT saver_writes_fk_saver_checkpoints
        FOREIGN KEY (tenant_id, session_id, namespace, checkpoint_id)
        REFERENCES saver_checkpoints (tenant_id, session_id, namespace, checkpoint_id)
        ON DELETE CASCADE;

ALTER TABLE folders
    ADD CONSTRAINT folders_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE folders
    ADD CONSTRAINT folders_fk_projects FOREIGN KEY (tenant_id, project_id)
        REFERENCES projects (tenant_id, project_id) ON DELETE CASCADE;
ALTER TABLE folders
    ADD CONSTRAINT folders_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE agent_folders
    ADD CONSTRAINT agent_folders_fk_agents FOREIGN KEY (tenant_id, agent_id)
        REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE;
ALTER TABLE agent_folders
    ADD CONSTRAINT agent_folders_fk_folders FOREIGN KEY (tenant_id, folder_id)
        REFERENCES folders (tenant_id, folder_id) ON DELETE CASCADE;

ALTER TABLE files
    ADD CONSTRAINT files_fk_folders FOREIGN KEY (tenant_id, folder_id)
        REFERENCES folders (tenant_id, folder_id) ON DELETE CASCADE;

ALTER TABLE file_chunks
    ADD CONSTRAINT file_chunks_fk_files FOREIGN KEY (tenant_id, file_id)
        REFERENCES files (tenant_id, file_id) ON DELETE CASCADE;

ALTER TABLE passages
    ADD CONSTRAINT passages_fk_files FOREIGN KEY (tenant_id, file_id)
        REFERENCES files (tenant_id, file_id) ON DELETE CASCADE;
ALTER TABLE passages
    ADD CONSTRAINT passages_fk_folders FOREIGN KEY (tenant_id, folder_id)
        REFERENCES folders (tenant_id, folder_id) ON DELETE CASCADE;

ALTER TABLE idempotency_keys
    ADD CONSTRAINT idempotency_keys_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE jobs
    ADD CONSTRAINT jobs_fk_sessions FOREIGN KEY (tenant_id, session_id)
        REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE;
ALTER TABLE jobs
    ADD CONSTRAINT jobs_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
ALTER TABLE jobs
    ADD CONSTRAINT jobs_fk_users FOREIGN KEY (tenant_id, user_id)
        REFERENCES users (tenant_id, user_id) ON DELETE CASCADE;

ALTER TABLE webhooks
    ADD CONSTRAINT webhooks_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);

ALTER TABLE webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
ALTER TABLE webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_fk_webhooks FOREIGN KEY (tenant_id, webhook_id)
        REFERENCES webhooks (tenant_id, webhook_id) ON DELETE CASCADE;

ALTER TABLE erasures
    ADD CONSTRAINT erasures_fk_tenants FOREIGN KEY (tenant_id)
        REFERENCES tenants (tenant_id);
