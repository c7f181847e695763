// What the form asks, as the address holds it, and as the API takes it.

import { validityOf } from "../../components/time";

export const MODES = ["hybrid", "semantic", "lexical"] as const;
export type Mode = (typeof MODES)[number];

const FIELDS = [
  "query", "user_id", "agent_id", "session_id", "run_id", "project_id", "memory_type", "scope", "role", "threshold",
  "as_of", "known_at", "since", "until", "filters", "graph",
] as const;

export type Field = (typeof FIELDS)[number];

export interface Asked extends Record<Field, string> {
  what: "memories" | "messages";
  mode: Mode | "compare";
}

export function askedOf(query: URLSearchParams): Asked {
  const mode = query.get("mode");
  return {
    ...(Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ""])) as Record<Field, string>),
    what: query.get("what") === "messages" ? "messages" : "memories",
    mode: mode === "compare" ? mode : (MODES.find((known) => known === mode) ?? "hybrid"),
  };
}

/** The body of a search; empty fields are left out. */
export function bodyOf(asked: Asked, mode: Mode, cursor: string | null, limit: number): Record<string, unknown> {
  const shared = {
    query: asked.query,
    user_id: asked.user_id,
    agent_id: asked.agent_id,
    session_id: asked.session_id,
    threshold: asked.threshold && Number(asked.threshold),
    mode,
    cursor,
    limit,
    explain: true,
  };
  const own = asked.what === "messages"
    ? { roles: asked.role && [asked.role], since: moment(asked.since), until: moment(asked.until) }
    : {
      run_id: asked.run_id,
      project_id: asked.project_id,
      memory_type: asked.memory_type,
      scopes: asked.scope && [asked.scope],
      as_of: asked.as_of && validityOf(asked.as_of),
      known_at: moment(asked.known_at),
      filters: asked.filters && (JSON.parse(asked.filters) as unknown),
      graph: asked.graph && mode === "hybrid" ? true : null,
      preview: true,
    };
  const given = Object.entries({ ...shared, ...own }).filter(([, value]) => value !== "" && value !== null);
  return Object.fromEntries(given);
}

/** A time of the reader's zone as the API takes it. */
function moment(local: string): string {
  return local && new Date(local).toISOString();
}
