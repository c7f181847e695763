/** `memory.folders`: files, and the passages that they are split into. */

import { collect, data, init, Resource } from "./resource.js";
import type { Answer, Body, CallOptions, ChangeOptions, ListLimit, Query, Row } from "./types.js";

/** Documents, and the passages that they are split into. */
export class Folders extends Resource {
  create(
    options: Body<"add_folder">,
    call?: CallOptions,
  ): Promise<Answer<"add_folder">> {
    return data(this.api.POST("/v1/folders", { body: options, ...init(call) }));
  }

  listFolders(
    { limit, ...where }: Query<"list_folders"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_folders">[]> {
    return collect((page) => this.api.GET("/v1/folders", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  get(
    folderId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_folder">> {
    return data(this.api.GET("/v1/folders/{folder_id}", { params: { path: { folder_id: folderId } }, ...init(call) }));
  }

  update(
    folderId: string,
    changes: Body<"update_folder">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_folder">> {
    return data(this.api.PATCH("/v1/folders/{folder_id}", { params: { path: { folder_id: folderId } }, body: changes, ...init(call) }));
  }

  /** undefined: an earlier attempt, whose answer was lost, deleted it. */
  delete(
    folderId: string,
    query: { confirm?: boolean; dry_run?: boolean } = {},
    call?: CallOptions,
  ): Promise<Answer<"delete_folder"> | undefined> {
    return data(this.api.DELETE("/v1/folders/{folder_id}", { params: { path: { folder_id: folderId }, query }, ...init(call) }));
  }

  attach(
    folderId: string,
    agentId: string,
    call?: CallOptions,
  ): Promise<Answer<"attach_folder">> {
    return data(this.api.PUT("/v1/folders/{folder_id}/agents/{agent_id}", { params: { path: { folder_id: folderId, agent_id: agentId } }, ...init(call) }));
  }

  async detach(
    folderId: string,
    agentId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/folders/{folder_id}/agents/{agent_id}", { params: { path: { folder_id: folderId, agent_id: agentId } }, ...init(call) });
  }

  /** Upload a file; a job ingests it, for which `wait` of `Memory` takes `file` of the answer. */
  upload(
    folderId: string,
    file: Blob | Uint8Array<ArrayBuffer> | string,
    { metadata, ...query }: Query<"upload_file", "metadata"> & {
      metadata?: Record<string, unknown>;
    },
    call?: CallOptions,
  ): Promise<Answer<"upload_file">> {
    const chosen = metadata ? { ...query, metadata: JSON.stringify(metadata) } : query;
    const { headers, ...rest } = init(call);
    return data(
      this.api.POST("/v1/folders/{folder_id}/files", {
        params: { path: { folder_id: folderId }, query: chosen },
        body: "",
        bodySerializer: () => new Blob([file]),
        headers: { ...headers, "Content-Type": "application/octet-stream" },
        ...rest,
      }),
    );
  }

  file(
    folderId: string,
    fileId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_file">> {
    return data(this.api.GET("/v1/folders/{folder_id}/files/{file_id}", { params: { path: { folder_id: folderId, file_id: fileId } }, ...init(call) }));
  }

  files(
    folderId: string,
    { limit, ...where }: Query<"list_files"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_files">[]> {
    return collect((page) => this.api.GET("/v1/folders/{folder_id}/files", { params: { path: { folder_id: folderId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  /** undefined: an earlier attempt, whose answer was lost, deleted it. */
  deleteFile(
    folderId: string,
    fileId: string,
    query: { confirm?: boolean; dry_run?: boolean } = {},
    call?: CallOptions,
  ): Promise<Answer<"delete_file"> | undefined> {
    return data(this.api.DELETE("/v1/folders/{folder_id}/files/{file_id}", { params: { path: { folder_id: folderId, file_id: fileId }, query }, ...init(call) }));
  }

  /** Ingest a file again. */
  reingest(
    folderId: string,
    fileId: string,
    call?: CallOptions,
  ): Promise<Answer<"reingest_file">> {
    return data(this.api.POST("/v1/folders/{folder_id}/files/{file_id}/reingest", { params: { path: { folder_id: folderId, file_id: fileId } }, ...init(call) }));
  }

  /** Start a job that extracts memories from a file; `wait` of `Memory` takes the answer. */
  extract(
    fileId: string,
    options: Body<"extract_file"> = {},
    call?: CallOptions,
  ): Promise<Answer<"extract_file">> {
    return data(this.api.POST("/v1/files/{file_id}/extract", { params: { path: { file_id: fileId } }, body: options, ...init(call) }));
  }

  /** Add a text to a folder; a long one becomes several passages. */
  addText(
    folderId: string,
    content: string,
    options: Body<"add_passages", "content"> = {},
    call?: CallOptions,
  ): Promise<Answer<"add_passages">> {
    return data(this.api.POST("/v1/folders/{folder_id}/passages", { params: { path: { folder_id: folderId } }, body: { content, ...options }, ...init(call) }));
  }

  passages(
    folderId: string,
    { limit, ...where }: Query<"list_passages"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_passages">[]> {
    return collect((page) => this.api.GET("/v1/folders/{folder_id}/passages", { params: { path: { folder_id: folderId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  filePassages(
    folderId: string,
    fileId: string,
    { limit, ...where }: Query<"list_file_passages"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_file_passages">[]> {
    return collect((page) => this.api.GET("/v1/folders/{folder_id}/files/{file_id}/passages", { params: { path: { folder_id: folderId, file_id: fileId }, query: { ...where, ...page } }, ...init(call) }), limit);
  }

  async deletePassage(
    folderId: string,
    passageId: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/folders/{folder_id}/passages/{passage_id}", { params: { path: { folder_id: folderId, passage_id: passageId } }, ...init(call) });
  }

  search(
    query: string,
    options: Body<"search_passages", "query"> = {},
    call?: CallOptions,
  ): Promise<Answer<"search_passages">> {
    return data(this.api.POST("/v1/passages/search", { body: { query, ...options }, ...init(call) }));
  }
}
