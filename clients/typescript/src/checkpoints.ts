/** Methods about the working state of a session, its checkpoints, forks and approvals. */

import { ContextMethods } from "./context.js";
import { collect, data, init } from "./resource.js";
import type { Answer, Body, CallOptions, ChangeOptions, ListLimit, Query, Row, Schemas } from "./types.js";

/** The working state of a session, checkpoints, forks and approvals. */
export class CheckpointMethods extends ContextMethods {
  /** The working state of a session, a JSON object of yours. */
  state(
    sessionId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_session_state">> {
    return data(this.api.GET("/v1/sessions/{session_id}/state", { params: { path: { session_id: sessionId } }, ...init(call) }));
  }

  /** Replace the working state. */
  setState(
    sessionId: string,
    state: Body<"put_session_state">,
    call?: ChangeOptions,
  ): Promise<Answer<"put_session_state">> {
    return data(this.api.PUT("/v1/sessions/{session_id}/state", { params: { path: { session_id: sessionId } }, body: state, ...init(call) }));
  }

  /** Merge a patch into the working state; null removes a member. */
  updateState(
    sessionId: string,
    patch: Body<"update_session_state">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_session_state">> {
    return data(this.api.PATCH("/v1/sessions/{session_id}/state", { params: { path: { session_id: sessionId } }, body: patch, ...init(call) }));
  }

  /** Keep a copy of the working state. */
  snapshot(
    sessionId: string,
    call?: CallOptions,
  ): Promise<Answer<"add_snapshot">> {
    return data(this.api.POST("/v1/sessions/{session_id}/state/snapshots", { params: { path: { session_id: sessionId } }, ...init(call) }));
  }

  snapshots(
    sessionId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_snapshots">[]> {
    return collect((page) => this.api.GET("/v1/sessions/{session_id}/state/snapshots", { params: { path: { session_id: sessionId }, query: page }, ...init(call) }), limit);
  }

  getSnapshot(
    sessionId: string,
    snapshotId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_snapshot">> {
    return data(this.api.GET("/v1/sessions/{session_id}/state/snapshots/{snapshot_id}", { params: { path: { session_id: sessionId, snapshot_id: snapshotId } }, ...init(call) }));
  }

  /** Set the working state to a copy, as a new version. */
  restoreSnapshot(
    sessionId: string,
    snapshotId: string,
    call?: ChangeOptions,
  ): Promise<Answer<"restore_snapshot">> {
    return data(this.api.POST("/v1/sessions/{session_id}/state/snapshots/{snapshot_id}/restore", { params: { path: { session_id: sessionId, snapshot_id: snapshotId } }, ...init(call) }));
  }

  /** Keep the state of a session, to restore it or fork from it. */
  checkpoint(
    sessionId: string,
    options: Body<"add_checkpoint"> = {},
    call?: CallOptions,
  ): Promise<Answer<"add_checkpoint">> {
    return data(this.api.POST("/v1/sessions/{session_id}/checkpoints", { params: { path: { session_id: sessionId } }, body: options, ...init(call) }));
  }

  checkpoints(
    sessionId: string,
    { limit, ...where }: Query<"list_checkpoints"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_checkpoints">[]> {
    return collect((page) => this.api.GET("/v1/sessions/{session_id}/checkpoints", { params: { path: { session_id: sessionId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  getCheckpoint(
    sessionId: string,
    checkpointId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_checkpoint">> {
    return data(this.api.GET("/v1/sessions/{session_id}/checkpoints/{checkpoint_id}", { params: { path: { session_id: sessionId, checkpoint_id: checkpointId } }, ...init(call) }));
  }

  /** Set state and window back to a checkpoint; messages stay stored. */
  restoreCheckpoint(
    sessionId: string,
    checkpointId: string,
    call?: CallOptions,
  ): Promise<Answer<"restore_checkpoint">> {
    return data(this.api.POST("/v1/sessions/{session_id}/checkpoints/{checkpoint_id}/restore", { params: { path: { session_id: sessionId, checkpoint_id: checkpointId } }, ...init(call) }));
  }

  async deleteCheckpoint(
    sessionId: string,
    checkpointId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/sessions/{session_id}/checkpoints/{checkpoint_id}", { params: { path: { session_id: sessionId, checkpoint_id: checkpointId } }, ...init(call) });
  }

  /** A new session that begins as this one was at a message or a checkpoint. */
  fork(
    sessionId: string,
    options: Body<"fork_session"> = {},
    call?: CallOptions,
  ): Promise<Answer<"fork_session">> {
    return data(this.api.POST("/v1/sessions/{session_id}/fork", { params: { path: { session_id: sessionId } }, body: options, ...init(call) }));
  }

  /** Tool calls that need a human decision, newest first. */
  approvals(
    sessionId: string,
    { limit, ...where }: Query<"list_approvals"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_approvals">[]> {
    return collect((page) => this.api.GET("/v1/sessions/{session_id}/approvals", { params: { path: { session_id: sessionId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  approval(
    sessionId: string,
    toolCallId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_approval">> {
    return data(this.api.GET("/v1/sessions/{session_id}/approvals/{tool_call_id}", { params: { path: { session_id: sessionId, tool_call_id: toolCallId } }, ...init(call) }));
  }

  /** Decide about a pending tool call; your agent then runs it or answers it. */
  decide(
    sessionId: string,
    toolCallId: string,
    decision: Schemas["ApprovalDecision"]["decision"],
    options: Body<"decide_approval", "decision"> = {},
    call?: CallOptions,
  ): Promise<Answer<"decide_approval">> {
    return data(this.api.POST("/v1/sessions/{session_id}/approvals/{tool_call_id}", { params: { path: { session_id: sessionId, tool_call_id: toolCallId } }, body: { decision, ...options }, ...init(call) }));
  }
}
