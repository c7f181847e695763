/** Methods about what the model sees: contexts, windows, summaries, and tools. */

import { collect, data, init } from "./resource.js";
import { SessionMethods } from "./sessions.js";
import type { Answer, Body, CallOptions, ListLimit, Query, Row } from "./types.js";

export class ContextMethods extends SessionMethods {
  /** What to send to the model: instructions, memories and the conversation. Nothing is stored. */
  context(
    sessionId: string,
    query?: string,
    options: Body<"build_context", "query"> = {},
    call?: CallOptions,
  ): Promise<Answer<"build_context">> {
    const params = { path: { session_id: sessionId } };
    const body = query === undefined ? options : { query, ...options };
    return data(this.api.POST("/v1/sessions/{session_id}/context", { params, body, ...init(call) }));
  }

  /** Contents that the session's contexts had, newest first. */
  injections(
    sessionId: string,
    { limit, ...where }: Query<"list_injections"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_injections">[]> {
    const path = { session_id: sessionId };
    return collect(
      (page) =>
        this.api.GET("/v1/sessions/{session_id}/injections", {
          params: { path, query: { ...where, ...page } },
          ...init(call),
        }),
      limit,
    );
  }

  /** How full the window of a session is, and the policy in force. */
  window(sessionId: string, call?: CallOptions): Promise<Answer<"get_window">> {
    const params = { path: { session_id: sessionId } };
    return data(this.api.GET("/v1/sessions/{session_id}/window", { params, ...init(call) }));
  }

  /** The newest valid part of the window for one model call. Nothing is stored. */
  trim(
    sessionId: string,
    options: Body<"trim_window"> = {},
    call?: CallOptions,
  ): Promise<Answer<"trim_window">> {
    const params = { path: { session_id: sessionId } };
    return data(
      this.api.POST("/v1/sessions/{session_id}/window/trim", {
        params,
        body: options,
        ...init(call),
      }),
    );
  }

  /** Replace the older messages of the window by a summary; the messages stay stored. */
  summarize(
    sessionId: string,
    options: Body<"compact_session"> = {},
    call?: CallOptions,
  ): Promise<Answer<"compact_session">> {
    const params = { path: { session_id: sessionId } };
    return data(
      this.api.POST("/v1/sessions/{session_id}/compact", { params, body: options, ...init(call) }),
    );
  }

  summaries(
    sessionId: string,
    { limit, ...where }: Query<"list_summaries"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_summaries">[]> {
    const path = { session_id: sessionId };
    return collect(
      (page) =>
        this.api.GET("/v1/sessions/{session_id}/summaries", {
          params: { path, query: { ...where, ...page } },
          ...init(call),
        }),
      limit,
    );
  }

  summary(
    sessionId: string,
    summaryId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_summary">> {
    const params = { path: { session_id: sessionId, summary_id: summaryId } };
    return data(
      this.api.GET("/v1/sessions/{session_id}/summaries/{summary_id}", { params, ...init(call) }),
    );
  }

  /** Memory as functions that a model may call; `format` chooses your provider's schema. */
  tools(query: Query<"list_tools"> = {}, call?: CallOptions): Promise<Answer<"list_tools">> {
    return data(this.api.GET("/v1/tools", { params: { query }, ...init(call) }));
  }

  /** Run a tool that the model called. */
  callTool(
    name: string,
    options: Body<"call_tool">,
    call?: CallOptions,
  ): Promise<Answer<"call_tool">> {
    const params = { path: { name } };
    return data(this.api.POST("/v1/tools/{name}/call", { params, body: options, ...init(call) }));
  }

  /** The processors of the deployment in the order in which they run; takes an admin key. */
  processors(call?: CallOptions): Promise<Answer<"list_processors">> {
    return data(this.api.GET("/v1/processors", init(call)));
  }
}
