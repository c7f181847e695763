// What the statistics routes answer, as far as the page shows it.

/** Days as the API names them, and their beginnings in seconds since 1970. */
export interface Period {
  days: string[];
  times: number[];
}

interface Daily<T> {
  items: (T & { day: string })[];
  totals: T;
}

interface Searched {
  count: number;
  hits: number;
  hit_rate: number | null;
  p95_ms: number | null;
}

export type Effect = Daily<{
  searches: Searched;
  contexts: Searched;
  items: { injected: number; use_rate: number | null; use_rate_estimated: number | null };
}>;

export type Refusals = Daily<{ accepted: number; rejected: number; by_code: Record<string, number> }>;

export type Extraction = Daily<{
  runs: number;
  failed: number;
  messages: number;
  proposals: number;
  lag_p50_ms: number | null;
  lag_p95_ms: number | null;
}>;

interface Counted {
  day: string;
  total: number;
  by_status: Record<string, number>;
  by_memory_type: Record<string, number>;
  never_used: number;
  in_conflict: number;
}

export interface Memories {
  /** Null where there are many, which were not counted yet. */
  now: Counted & { live: boolean; duplicates: { sampled: number; found: number } | null } | null;
  items: Counted[];
}

export interface Jobs {
  total: number;
  by_status: Record<string, number>;
  due: number;
  oldest_due: string | null;
  dead: number;
}

interface Spent {
  calls: number;
  failures: number;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
}

export interface Usage {
  items: (Spent & { day: string; operation: string; model: string })[];
  totals: Spent;
  today: { tokens: { limit: number | null; used: number } };
}
