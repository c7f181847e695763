// Answers of /v1/forgetting.
import type { JobStatus } from "../components/job-details";
import { t } from "../text/forgetting";

/** In the order of a run. */
export const STEPS = [
  "expired", "source_deleted", "session_deleted", "superseded", "over_capacity", "decayed",
  "purged", "messages", "archived_checkpoints", "snapshots", "saver_checkpoints",
] as const;
export type Step = (typeof STEPS)[number];

export const EVICTIONS = ["confidence", "hybrid"] as const;

export type Policy = Record<string, string | number | boolean>;

export interface Run {
  job_id: string;
  status: JobStatus;
  result: Record<string, number> | null;
  error_code: string | null;
  due_at: string;
  started_at: string | null;
  finished_at: string | null;
}

export interface Forgetting {
  policy: Policy;
  agents: Record<string, Policy>;
  purge_days: number;
  last_runs: Run[];
}

export interface Shadow {
  eviction: string;
  buckets: number;
  both: number;
  only_policy: string[];
  only_shadow: string[];
  truncated: boolean;
}

export interface Preview {
  job_id: string | null;
  steps: { step: Step; due: number; sample: { id: string; reason: string }[] }[];
  shadow: Shadow | null;
}

/** What a run is asked to do; all steps where none is named. */
export interface Chosen {
  steps: Step[];
  agent_id: string;
  eviction: string;
}

export function stepText(step: Step): string {
  return t(`step_${step}`);
}
