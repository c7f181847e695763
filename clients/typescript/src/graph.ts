/** `memory.graph`: entities and relations. */

import { collect, data, init, Resource } from "./resource.js";
import type { Answer, Body, CallOptions, ChangeOptions, FullQuery, ListLimit, Query, Row } from "./types.js";

/** Entities that memories mention, and relations between them. */
export class Graph extends Resource {
  entities(
    { limit, ...where }: Query<"list_entities"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_entities">[]> {
    return collect((page) => this.api.GET("/v1/graph/entities", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  entity(
    entityId: string,
    call?: CallOptions,
  ): Promise<Answer<"get_entity">> {
    return data(this.api.GET("/v1/graph/entities/{entity_id}", { params: { path: { entity_id: entityId } }, ...init(call) }));
  }

  /** The ids of the memories that mention an entity. */
  mentions(
    entityId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_entity_memories">[]> {
    return collect((page) => this.api.GET("/v1/graph/entities/{entity_id}/memories", { params: { path: { entity_id: entityId }, query: page }, ...init(call) }), limit);
  }

  updateEntity(
    entityId: string,
    changes: Body<"update_entity">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_entity">> {
    return data(this.api.PATCH("/v1/graph/entities/{entity_id}", { params: { path: { entity_id: entityId } }, body: changes, ...init(call) }));
  }

  addAlias(
    entityId: string,
    alias: string,
    call?: CallOptions,
  ): Promise<Answer<"add_entity_alias">> {
    return data(this.api.POST("/v1/graph/entities/{entity_id}/aliases", { params: { path: { entity_id: entityId } }, body: { alias }, ...init(call) }));
  }

  async removeAlias(
    entityId: string,
    alias: string,
    call?: CallOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/graph/entities/{entity_id}/aliases", { params: { path: { entity_id: entityId }, query: { alias } }, ...init(call) });
  }

  /** Merge other entities into this one; `undo` reverts it. */
  merge(
    entityId: string,
    options: Body<"merge_entities">,
    call?: CallOptions,
  ): Promise<Answer<"merge_entities">> {
    return data(this.api.POST("/v1/graph/entities/{entity_id}/merge", { params: { path: { entity_id: entityId } }, body: options, ...init(call) }));
  }

  /** Move aliases, relations and memories to a new entity; `undo` reverts it. */
  split(
    entityId: string,
    options: Body<"split_entity">,
    call?: CallOptions,
  ): Promise<Answer<"split_entity">> {
    return data(this.api.POST("/v1/graph/entities/{entity_id}/split", { params: { path: { entity_id: entityId } }, body: options, ...init(call) }));
  }

  changes(
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_graph_changes">[]> {
    return collect((page) => this.api.GET("/v1/graph/changes", { params: { query: page }, ...init(call) }), limit);
  }

  undo(
    changeId: string,
    call?: CallOptions,
  ): Promise<Answer<"undo_graph_change">> {
    return data(this.api.POST("/v1/graph/changes/{change_id}/undo", { params: { path: { change_id: changeId } }, ...init(call) }));
  }

  relations(
    { limit, ...where }: Query<"list_relations"> & ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_relations">[]> {
    return collect((page) => this.api.GET("/v1/graph/relations", { params: { query: { ...where, ...page } }, ...init(call) }), limit);
  }

  addRelation(
    options: Body<"add_relation">,
    call?: CallOptions,
  ): Promise<Answer<"add_relation">> {
    return data(this.api.POST("/v1/graph/relations", { body: options, ...init(call) }));
  }

  history(
    relationId: string,
    { limit }: ListLimit = {},
    call?: CallOptions,
  ): Promise<Row<"list_relation_history">[]> {
    return collect((page) => this.api.GET("/v1/graph/relations/{relation_id}/history", { params: { path: { relation_id: relationId }, query: page }, ...init(call) }), limit);
  }

  updateRelation(
    relationId: string,
    changes: Body<"update_relation">,
    call?: ChangeOptions,
  ): Promise<Answer<"update_relation">> {
    return data(this.api.PATCH("/v1/graph/relations/{relation_id}", { params: { path: { relation_id: relationId } }, body: changes, ...init(call) }));
  }

  async deleteRelation(
    relationId: string,
    call?: ChangeOptions,
  ): Promise<void> {
    await this.api.DELETE("/v1/graph/relations/{relation_id}", { params: { path: { relation_id: relationId } }, ...init(call) });
  }

  neighbours(
    query: FullQuery<"list_neighbours">,
    call?: CallOptions,
  ): Promise<Answer<"list_neighbours">> {
    return data(this.api.GET("/v1/graph/neighbours", { params: { query }, ...init(call) }));
  }

  paths(
    from: string,
    to: string,
    query: Omit<FullQuery<"list_paths">, "from" | "to"> = {},
    call?: CallOptions,
  ): Promise<Answer<"list_paths">> {
    return data(this.api.GET("/v1/graph/paths", { params: { query: { from, to, ...query } }, ...init(call) }));
  }

  search(
    q: string,
    query: Omit<FullQuery<"search_graph">, "q"> = {},
    call?: CallOptions,
  ): Promise<Answer<"search_graph">> {
    return data(this.api.GET("/v1/graph/search", { params: { query: { q, ...query } }, ...init(call) }));
  }
}
