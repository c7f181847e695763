/** Methods about sessions (conversations), their messages, jobs and the use of models. */

import { JobFailedError, TimedOutError } from "./errors.js";
import { MemoryMethods } from "./memories.js";
import { collect, data, init } from "./resource.js";
import { sleep } from "./sender.js";
import type { Answer, Body, CallOptions, ListLimit, Query, Row, Schemas } from "./types.js";

type Message = Schemas["MessageCreate"];

const WAIT_SECONDS = 300;
const FIRST_PAUSE_SECONDS = 0.1;
const LONGEST_PAUSE_SECONDS = 2;

export class SessionMethods extends MemoryMethods {
  /**
   * Store messages of a conversation, all or none; memories are extracted from them later.
   * A new session is created on first use.
   */
  append(
    sessionId: string,
    messages: string | Message | Message[],
    options: Body<"append_messages", "messages"> = {},
    call?: CallOptions,
  ): Promise<Answer<"append_messages">> {
    const list: Message[] =
      typeof messages === "string"
        ? [{ role: "user", content: messages }]
        : Array.isArray(messages) ? messages : [messages];
    const params = { path: { session_id: sessionId } };
    const body = { messages: list, ...options };
    return data(this.api.POST("/v1/sessions/{session_id}/messages", { params, body, ...init(call) }));
  }

  /** Messages in order; `order: "desc"` starts with the latest. */
  messages(
    sessionId: string,
    { limit, ...where }: Query<"list_messages"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_messages">[]> {
    const path = { session_id: sessionId };
    return collect(
      (page) =>
        this.api.GET("/v1/sessions/{session_id}/messages", {
          params: { path, query: { ...where, ...page } },
          ...init(call),
        }),
      limit,
    );
  }

  /** One message, or `limit` characters of its text from `offset` on. */
  message(
    sessionId: string,
    messageId: string,
    query: { offset?: number; limit?: number } = {},
    call?: CallOptions,
  ): Promise<Answer<"get_message">> {
    const params = { path: { session_id: sessionId, message_id: messageId }, query };
    return data(
      this.api.GET("/v1/sessions/{session_id}/messages/{message_id}", { params, ...init(call) }),
    );
  }

  /** Search what was said, best first. */
  searchMessages(
    query: string,
    options: Body<"search_messages", "query"> = {},
    call?: CallOptions,
  ): Promise<Answer<"search_messages">> {
    return data(this.api.POST("/v1/messages/search", { body: { query, ...options }, ...init(call) }));
  }

  /** Extract memories from the messages of a session now. */
  extract(
    sessionId: string,
    options: Body<"extract_session"> = {},
    call?: CallOptions,
  ): Promise<Answer<"extract_session">> {
    const params = { path: { session_id: sessionId } };
    return data(
      this.api.POST("/v1/sessions/{session_id}/extract", { params, body: options, ...init(call) }),
    );
  }

  end(sessionId: string, call?: CallOptions): Promise<Answer<"end_session">> {
    const params = { path: { session_id: sessionId } };
    return data(this.api.POST("/v1/sessions/{session_id}/end", { params, ...init(call) }));
  }

  reopen(sessionId: string, call?: CallOptions): Promise<Answer<"reopen_session">> {
    const params = { path: { session_id: sessionId } };
    return data(this.api.POST("/v1/sessions/{session_id}/reopen", { params, ...init(call) }));
  }

  job(jobId: string, call?: CallOptions): Promise<Answer<"get_job">> {
    return data(this.api.GET("/v1/jobs/{job_id}", { params: { path: { job_id: jobId } }, ...init(call) }));
  }

  /**
   * Wait until a job has succeeded.
   *
   * @param job its id, or an answer with a `job_id`
   * @throws JobFailedError it failed for good or was cancelled
   * @throws TimedOutError it goes on after `timeout` seconds
   */
  async wait(
    job: string | { job_id?: string | null },
    { timeout = WAIT_SECONDS, ...call }: CallOptions & { timeout?: number } = {},
  ): Promise<Answer<"get_job">> {
    const id = typeof job === "string" ? job : job.job_id;
    if (!id) throw new TypeError("there is no job to wait for: nothing was scheduled");
    const end = Date.now() + timeout * 1000;
    for (let pause = FIRST_PAUSE_SECONDS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_SECONDS)) {
      const { status, error_code, error_detail, ...rest } = await this.job(id, call);
      if (status === "succeeded") return { status, error_code, error_detail, ...rest };
      if (status === "dead" || status === "cancelled") {
        throw new JobFailedError(id, status, error_code, error_detail);
      }
      if (Date.now() >= end) {
        throw new TimedOutError(`The job ${id} is ${status} after ${timeout} s. It goes on.`);
      }
      await sleep(Math.min(pause, (end - Date.now()) / 1000), call.signal);
    }
  }

  /** Use of models by day, and what is left of today's quota. */
  usage(query: Query<"get_usage"> = {}, call?: CallOptions): Promise<Answer<"get_usage">> {
    return data(this.api.GET("/v1/usage", { params: { query }, ...init(call) }));
  }
}
