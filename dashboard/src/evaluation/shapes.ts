// Answers of /v1/stats and /v1/evaluations.

export interface Asked {
  count: number;
  queries: number;
  hits: number;
  hit_rate: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
}

export interface Injected {
  injected: number;
  used: number;
  used_estimated: number;
  use_rate: number | null;
  use_rate_estimated: number | null;
}

export interface EffectFigures {
  searches: Asked;
  contexts: Asked;
  items: Injected;
}

export interface ExtractionFigures {
  runs: number;
  failed: number;
  messages: number;
  proposals: number;
  lag_p50_ms: number | null;
  lag_p95_ms: number | null;
  duration_p50_ms: number | null;
  duration_p95_ms: number | null;
}

interface Group {
  day: string | null;
  agent_id: string | null;
}

export interface Stats<F> {
  since: string;
  until: string;
  items: (F & Group)[];
  totals: F;
}

export interface MemoryCounts {
  day: string;
  total: number;
  by_status: Record<string, number>;
  never_used: number;
  in_conflict: number;
}

export interface MemoryStats {
  since: string;
  until: string;
  /** Null where there are many, which were not counted yet. */
  now: MemoryCounts & {
    /** Counted for this request; else the last daily count. */
    live: boolean;
    duplicates: { day: string; sampled: number; found: number } | null;
  } | null;
  items: MemoryCounts[];
}

/** Numbers by name, in any depth; what is no number is not compared. */
export type Metrics = { [name: string]: unknown };

export interface EvaluationRun {
  evaluation_id: string;
  name: string;
  dataset: string;
  release: string;
  /** Runs with the same one were measured in the same way. */
  fingerprint: string;
  settings: Record<string, unknown>;
  metrics: Metrics;
  create_time: string;
}
