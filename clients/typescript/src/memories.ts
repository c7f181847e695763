/** Methods about memories: add, search, read, change and delete them. */

import { collect, data, init, iterate, Resource } from "./resource.js";
import type {
  Answer, Body, CallOptions, ChangeOptions, ListLimit, Query, Row, Schemas,
} from "./types.js";

type Filters = Record<string, unknown>;
type Where = Query<"list_memories", "filters"> & { filters?: Filters };

export class MemoryMethods extends Resource {
  /**
   * Extract memories from messages and store them; with `infer: false` each is stored unchanged.
   * The messages themselves are not stored; use `append` for that.
   * `async: true` returns a job at once, which does the work; `wait` takes it.
   */
  add(
    messages: Schemas["MemoryCreate"]["messages"],
    options: Body<"add_memory", "messages"> & { async: true },
    call?: CallOptions,
  ): Promise<Schemas["AddAccepted"]>;
  add(
    messages: Schemas["MemoryCreate"]["messages"],
    options?: Body<"add_memory", "messages"> & { async?: false },
    call?: CallOptions,
  ): Promise<Schemas["MemoryAdded"]>;
  add(
    messages: Schemas["MemoryCreate"]["messages"],
    { async: ordered, ...options }: Body<"add_memory", "messages"> & { async?: boolean } = {},
    call?: CallOptions,
  ): Promise<Answer<"add_memory">> {
    return data<Answer<"add_memory">>(
      this.api.POST("/v1/memories", {
        params: { query: ordered ? { async: true } : {} },
        body: { messages, ...options },
        ...init(call),
      }),
    );
  }

  /** Search by meaning and words, best first; at least one id is required. */
  search(
    query: string,
    options: Body<"search_memories", "query"> = {},
    call?: CallOptions,
  ): Promise<Answer<"search_memories">> {
    return data(this.api.POST("/v1/memories/search", { body: { query, ...options }, ...init(call) }));
  }

  get(memoryId: string, call?: CallOptions): Promise<Answer<"get_memory">> {
    const params = { path: { memory_id: memoryId } };
    return data(this.api.GET("/v1/memories/{memory_id}", { params, ...init(call) }));
  }

  /** Up to `limit` memories, newest first; pages are fetched as needed. */
  getAll(
    { limit, ...where }: Where & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_memories">[]> {
    return collect(this.#page(where, call), limit);
  }

  /** All memories, newest first, one page in memory at a time. */
  iterate(where: Where = {}, call?: CallOptions): AsyncGenerator<Row<"list_memories">, void> {
    return iterate(this.#page(where, call));
  }

  #page({ filters, ...where }: Where, call?: CallOptions) {
    const chosen = filters ? { ...where, filters: JSON.stringify(filters) } : where;
    return (page: { limit: number; cursor?: string }) =>
      this.api.GET("/v1/memories", { params: { query: { ...chosen, ...page } }, ...init(call) });
  }

  /** Change a memory; null clears a field. `history` has the versions before. */
  update(
    memoryId: string,
    changes: Body<"update_memory">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_memory">> {
    const params = { path: { memory_id: memoryId } };
    return data(
      this.api.PATCH("/v1/memories/{memory_id}", { params, body: changes, ...init(call) }),
    );
  }

  /** Add a newer statement and end the validity of an old memory, which keeps its content. */
  supersede(
    memoryId: string,
    content: string,
    options: Body<"supersede_memory", "content"> = {},
    call?: CallOptions,
  ): Promise<Answer<"supersede_memory">> {
    const params = { path: { memory_id: memoryId } };
    const body = { content, ...options };
    return data(this.api.POST("/v1/memories/{memory_id}/supersede", { params, body, ...init(call) }));
  }

  /** Restore a memory to its state after a history entry, as a new version. */
  restore(
    memoryId: string,
    historyId: string,
    options: Body<"restore_memory", "history_id"> = {},
    call?: ChangeOptions,
  ): Promise<Answer<"restore_memory">> {
    const params = { path: { memory_id: memoryId } };
    const body = { history_id: historyId, ...options };
    return data(this.api.POST("/v1/memories/{memory_id}/restore", { params, body, ...init(call) }));
  }

  /** Changes of a memory, oldest first. */
  history(
    memoryId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_memory_history">[]> {
    const path = { memory_id: memoryId };
    return collect(
      (query) =>
        this.api.GET("/v1/memories/{memory_id}/history", { params: { path, query }, ...init(call) }),
      limit,
    );
  }

  /** Record that a memory is helpful, wrong or outdated; the memory is not changed. */
  feedback(
    memoryId: string,
    rating: Schemas["FeedbackCreate"]["rating"],
    comment?: string,
    call?: CallOptions,
  ): Promise<Answer<"add_feedback">> {
    const params = { path: { memory_id: memoryId } };
    const body = comment === undefined ? { rating } : { rating, comment };
    return data(this.api.POST("/v1/memories/{memory_id}/feedback", { params, body, ...init(call) }));
  }

  /** Store a text that the gate refused, past the rules of its verdict; takes an admin key. */
  storeRefused(
    decisionId: string,
    options: Body<"store_refused"> = {},
    call?: CallOptions,
  ): Promise<Answer<"store_refused">> {
    const params = { path: { decision_id: decisionId } };
    return data(
      this.api.POST("/v1/memories/decisions/{decision_id}/store", {
        params,
        body: options,
        ...init(call),
      }),
    );
  }

  /** Record which memories of a session's contexts an answer drew on, for statistics. */
  reportUse(
    sessionId: string,
    memoryIds: string[],
    call?: CallOptions,
  ): Promise<Answer<"report_use">> {
    const body = { session_id: sessionId, memory_ids: memoryIds };
    return data(this.api.POST("/v1/feedback/used", { body, ...init(call) }));
  }

  /** Delete one memory; `hard` removes it at once, not after some days. */
  async delete(
    memoryId: string,
    query: { hard?: boolean } = {},
    call?: CallOptions,
  ): Promise<void> {
    const params = { path: { memory_id: memoryId }, query };
    await this.api.DELETE("/v1/memories/{memory_id}", { params, ...init(call) });
  }

  /** Delete all memories that match every given field; `confirm` or `dry_run` must be true. */
  deleteAll(
    options: Body<"delete_memories_by_filter">,
    call?: CallOptions,
  ): Promise<Answer<"delete_memories_by_filter">> {
    return data(this.api.POST("/v1/memories/delete", { body: options, ...init(call) }));
  }
}
