// Answers of /v1/graph.
export interface EntityShort {
  entity_id: string;
  name: string;
  entity_type: string;
}

export interface Entity extends EntityShort {
  aliases: string[];
  scope: string;
  user_id: string | null;
  agent_id: string | null;
  project_id: string | null;
  merged_into: string | null;
}

export interface Relation {
  relation_id: string;
  source: EntityShort;
  relation: string;
  destination: EntityShort;
  confidence: number;
  valid_from: string | null;
  valid_to: string | null;
  known_from: string;
  known_to: string | null;
  reason: string | null;
  version: number;
}

export interface Neighbour extends EntityShort {
  hops: number;
}

export interface Neighbours {
  entities: Neighbour[];
  relations: Relation[];
  truncated: boolean;
}

export interface Change {
  change_id: string | null;
  event: "MERGE" | "SPLIT" | "UPDATE" | "DELETE";
  entity_ids: string[];
  /** Those that still exist, in lists. */
  entities?: EntityShort[];
  rows: Record<string, number>;
  reason: string | null;
  create_time: string | null;
  undone_at: string | null;
}
