/** The smaller groups of methods: `memory.blocks`, `memory.projects` and the like. */

import { collect, data, init, Resource } from "./resource.js";
import type { Answer, Body, CallOptions, ChangeOptions, ListLimit, Query, Row } from "./types.js";

/** Texts that are always in the context of the agents they are attached to. */
export class Blocks extends Resource {
  create(
    label: string,
    options: Body<"add_block", "label"> = {},
    call?: CallOptions,
  ): Promise<Answer<"add_block">> {
    return data(this.api.POST("/v1/blocks", { body: { label, ...options }, ...init(call) }));
  }

  listBlocks(
    { limit, ...where }: Query<"list_blocks"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_blocks">[]> {
    return collect((page) => this.api.GET("/v1/blocks", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  attached(
    agentId: string,
    { limit, ...where }: Query<"list_agent_blocks"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_agent_blocks">[]> {
    return collect((page) => this.api.GET("/v1/agents/{agent_id}/blocks", { params: { path: { agent_id: agentId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  get(
    blockId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_block">> {
    return data(this.api.GET("/v1/blocks/{block_id}", { params: { path: { block_id: blockId } }, ...init(call) }));
  }

  update(
    blockId: string,
    changes: Body<"update_block">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_block">> {
    return data(this.api.PATCH("/v1/blocks/{block_id}", { params: { path: { block_id: blockId } }, body: changes, ...init(call) }));
  }

  /** undefined: an earlier attempt, whose answer was lost, deleted it. */
  delete(
    blockId: string,
    query: { confirm?: boolean; dry_run?: boolean } = {},
    call?: CallOptions,
  ): Promise<Answer<"delete_block"> | undefined> {
    return data(this.api.DELETE("/v1/blocks/{block_id}", { params: { path: { block_id: blockId }, query }, ...init(call) }));
  }

  append(
    blockId: string,
    text: string,
    call?: ChangeOptions,
  ): Promise<Answer<"append_to_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/append", { params: { path: { block_id: blockId } }, body: { text }, ...init(call) }));
  }

  /** Replace a text that occurs once. */
  replace(
    blockId: string,
    old: string,
    replacement: string,
    call?: ChangeOptions,
  ): Promise<Answer<"replace_in_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/replace", { params: { path: { block_id: blockId } }, body: { old, new: replacement }, ...init(call) }));
  }

  insert(
    blockId: string,
    text: string,
    options: Body<"insert_into_block", "text"> = {},
    call?: ChangeOptions,
  ): Promise<Answer<"insert_into_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/insert", { params: { path: { block_id: blockId } }, body: { text, ...options }, ...init(call) }));
  }

  rewrite(
    blockId: string,
    value: string,
    call?: ChangeOptions,
  ): Promise<Answer<"rewrite_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/rewrite", { params: { path: { block_id: blockId } }, body: { value }, ...init(call) }));
  }

  undo(
    blockId: string,
    call?: ChangeOptions,
  ): Promise<Answer<"undo_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/undo", { params: { path: { block_id: blockId } }, ...init(call) }));
  }

  redo(
    blockId: string,
    call?: ChangeOptions,
  ): Promise<Answer<"redo_block">> {
    return data(this.api.POST("/v1/blocks/{block_id}/redo", { params: { path: { block_id: blockId } }, ...init(call) }));
  }

  history(
    blockId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_block_history">[]> {
    return collect((page) => this.api.GET("/v1/blocks/{block_id}/history", { params: { path: { block_id: blockId }, query: page }, ...init(call) }), limit);
  }

  attach(
    agentId: string,
    blockId: string,
    call?: CallOptions,
  ): Promise<Answer<"attach_block">> {
    return data(this.api.PUT("/v1/agents/{agent_id}/blocks/{block_id}", { params: { path: { agent_id: agentId, block_id: blockId } }, ...init(call) }));
  }

  async detach(
    agentId: string,
    blockId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/agents/{agent_id}/blocks/{block_id}", { params: { path: { agent_id: agentId, block_id: blockId } }, ...init(call) });
  }
}

/** Groups of users who share memories, and their members. */
export class Projects extends Resource {
  create(
    projectName: string,
    options: Body<"add_project", "project_name"> = {},
    call?: CallOptions,
  ): Promise<Answer<"add_project">> {
    return data(this.api.POST("/v1/projects", { body: { project_name: projectName, ...options }, ...init(call) }));
  }

  listProjects(
    { limit, ...where }: Query<"list_projects"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_projects">[]> {
    return collect((page) => this.api.GET("/v1/projects", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  get(
    projectId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_project">> {
    return data(this.api.GET("/v1/projects/{project_id}", { params: { path: { project_id: projectId } }, ...init(call) }));
  }

  update(
    projectId: string,
    changes: Body<"update_project">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_project">> {
    return data(this.api.PATCH("/v1/projects/{project_id}", { params: { path: { project_id: projectId } }, body: changes, ...init(call) }));
  }

  /** undefined: an earlier attempt, whose answer was lost, deleted it. */
  delete(
    projectId: string,
    query: { confirm?: boolean; dry_run?: boolean } = {},
    call?: CallOptions,
  ): Promise<Answer<"delete_project"> | undefined> {
    return data(this.api.DELETE("/v1/projects/{project_id}", { params: { path: { project_id: projectId }, query }, ...init(call) }));
  }

  members(
    projectId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_project_members">[]> {
    return collect((page) => this.api.GET("/v1/projects/{project_id}/members", { params: { path: { project_id: projectId }, query: page }, ...init(call) }), limit);
  }

  putMember(
    projectId: string,
    userId: string,
    options: Body<"put_project_member">,
    call?: CallOptions,
  ): Promise<Answer<"put_project_member">> {
    return data(this.api.PUT("/v1/projects/{project_id}/members/{user_id}", { params: { path: { project_id: projectId, user_id: userId } }, body: options, ...init(call) }));
  }

  async removeMember(
    projectId: string,
    userId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/projects/{project_id}/members/{user_id}", { params: { path: { project_id: projectId, user_id: userId } }, ...init(call) });
  }

  /** Make a member the owner. */
  transfer(
    projectId: string,
    toUserId: string,
    call?: CallOptions,
  ): Promise<Answer<"transfer_project">> {
    return data(this.api.POST("/v1/projects/{project_id}/transfer", { params: { path: { project_id: projectId } }, body: { to_user_id: toUserId }, ...init(call) }));
  }

  /** The memories that are shared in a project. */
  items(
    projectId: string,
    { limit, ...where }: Query<"list_project_memories"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_project_memories">[]> {
    return collect((page) => this.api.GET("/v1/projects/{project_id}/memories", { params: { path: { project_id: projectId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }
}

/** Automatic deletion: policies, a preview, and runs on request. */
export class Forgetting extends Resource {
  policy(
    call?: CallOptions,
  ): Promise<Answer<"get_forgetting">> {
    return data(this.api.GET("/v1/forgetting", { ...init(call) }));
  }

  /** What would be deleted now; nothing is changed. */
  preview(
    options: Body<"run_forgetting", "dry_run"> = {},
    call?: CallOptions,
  ): Promise<Answer<"run_forgetting">> {
    return data(this.api.POST("/v1/forgetting/run", { body: { ...options, dry_run: true }, ...init(call) }));
  }

  /** Start a job that deletes now; `wait` of `Memory` takes the answer. */
  run(
    options: Body<"run_forgetting", "dry_run" | "eviction"> = {},
    call?: CallOptions,
  ): Promise<Answer<"run_forgetting">> {
    return data(this.api.POST("/v1/forgetting/run", { body: { ...options, dry_run: false }, ...init(call) }));
  }
}

/** Receipts of erasures; takes an admin key. */
export class Erasures extends Resource {
  listErasures(
    { limit, ...where }: Query<"list_erasures"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_erasures">[]> {
    return collect((page) => this.api.GET("/v1/erasures", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }
}

/** Whether what is remembered is found, and used. */
export class Statistics extends Resource {
  effect(
    query: Query<"get_effect"> = {},
    call?: CallOptions,
  ): Promise<Answer<"get_effect">> {
    return data(this.api.GET("/v1/stats/effect", { params: { query }, ...init(call) }));
  }

  refusals(
    query: Query<"get_refusals"> = {},
    call?: CallOptions,
  ): Promise<Answer<"get_refusals">> {
    return data(this.api.GET("/v1/stats/refusals", { params: { query }, ...init(call) }));
  }

  extraction(
    query: Query<"get_extraction"> = {},
    call?: CallOptions,
  ): Promise<Answer<"get_extraction">> {
    return data(this.api.GET("/v1/stats/extraction", { params: { query }, ...init(call) }));
  }

  memories(
    query: Query<"get_memory_statistics"> = {},
    call?: CallOptions,
  ): Promise<Answer<"get_memory_statistics">> {
    return data(this.api.GET("/v1/stats/memories", { params: { query }, ...init(call) }));
  }

  keepEvaluation(
    options: Body<"add_evaluation">,
    call?: CallOptions,
  ): Promise<Answer<"add_evaluation">> {
    return data(this.api.POST("/v1/evaluations", { body: options, ...init(call) }));
  }

  evaluations(
    { limit, ...where }: Query<"list_evaluations"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_evaluations">[]> {
    return collect((page) => this.api.GET("/v1/evaluations", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  evaluation(
    evaluationId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_evaluation">> {
    return data(this.api.GET("/v1/evaluations/{evaluation_id}", { params: { path: { evaluation_id: evaluationId } }, ...init(call) }));
  }

  async deleteEvaluation(
    evaluationId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/evaluations/{evaluation_id}", { params: { path: { evaluation_id: evaluationId } }, ...init(call) });
  }
}

/** What is known about users and projects, value by value. */
export class Profiles extends Resource {
  get(
    userId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_user_profile">> {
    return data(this.api.GET("/v1/users/{user_id}/profile", { params: { path: { user_id: userId } }, ...init(call) }));
  }

  /** Write values, which jobs will not change any more. */
  update(
    userId: string,
    changes: Body<"update_user_profile">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_user_profile">> {
    return data(this.api.PATCH("/v1/users/{user_id}/profile", { params: { path: { user_id: userId } }, body: changes, ...init(call) }));
  }

  history(
    userId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_user_profile_history">[]> {
    return collect((page) => this.api.GET("/v1/users/{user_id}/profile/history", { params: { path: { user_id: userId }, query: page }, ...init(call) }), limit);
  }

  /** Start a job that derives the profile from memories; `wait` of `Memory` takes the answer. */
  derive(
    userId: string,
    call?: CallOptions,
  ): Promise<Answer<"derive_user_profile">> {
    return data(this.api.POST("/v1/users/{user_id}/profile/derive", { params: { path: { user_id: userId } }, ...init(call) }));
  }

  getProject(
    projectId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_project_profile">> {
    return data(this.api.GET("/v1/projects/{project_id}/profile", { params: { path: { project_id: projectId } }, ...init(call) }));
  }

  updateProject(
    projectId: string,
    changes: Body<"update_project_profile">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_project_profile">> {
    return data(this.api.PATCH("/v1/projects/{project_id}/profile", { params: { path: { project_id: projectId } }, body: changes, ...init(call) }));
  }

  projectHistory(
    projectId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_project_profile_history">[]> {
    return collect((page) => this.api.GET("/v1/projects/{project_id}/profile/history", { params: { path: { project_id: projectId }, query: page }, ...init(call) }), limit);
  }

  deriveProject(
    projectId: string,
    call?: CallOptions,
  ): Promise<Answer<"derive_project_profile">> {
    return data(this.api.POST("/v1/projects/{project_id}/profile/derive", { params: { path: { project_id: projectId } }, ...init(call) }));
  }

  /** The memory of a user as a document in DeerFlow's format. */
  document(
    userId: string,
    query: Query<"get_memory_document"> = {},
    call?: CallOptions,
  ): Promise<Answer<"get_memory_document">> {
    return data(this.api.GET("/v1/users/{user_id}/memory-document", { params: { path: { user_id: userId }, query }, ...init(call) }));
  }

  importDocument(
    userId: string,
    document: Body<"import_memory_document">,
    query: Query<"import_memory_document"> = {},
    call?: CallOptions,
  ): Promise<Answer<"import_memory_document">> {
    return data(this.api.POST("/v1/users/{user_id}/memory-document", { params: { path: { user_id: userId }, query }, body: document, ...init(call) }));
  }
}
