// All that the service tells of one job.
import type { ComponentChildren } from "preact";

import { t } from "../text/jobs";
import { Time } from "./time";

export const STATUSES = ["pending", "running", "dead", "succeeded", "cancelled"] as const;
export type JobStatus = (typeof STATUSES)[number];

export interface Job {
  job_id: string;
  kind: string;
  status: JobStatus;
  agent_id: string | null;
  user_id: string | null;
  session_id: string | null;
  signals: string[];
  due_at: string;
  waiting_since: string;
  deferred_reason: string | null;
  run_again: boolean;
  attempts: number;
  max_attempts: number;
  error_code: string | null;
  error_detail: string | null;
  result: Record<string, unknown> | null;
  started_at: string | null;
  finished_at: string | null;
  create_time: string;
}

export function statusText(status: JobStatus): string {
  return t(`status_${status}`);
}

export function JobDetails({ job }: { job: Job }) {
  const facts: [string, ComponentChildren][] = [
    [t("kind"), <code>{job.kind}</code>],
    [t("status"), statusText(job.status)],
    [t("user"), job.user_id],
    [t("agent"), job.agent_id],
    [t("session"), job.session_id],
    [t("attempts"), `${job.attempts} / ${job.max_attempts}`],
    [t("error"), job.error_code && <><code>{job.error_code}</code> {job.error_detail}</>],
    [t("deferred"), job.deferred_reason && <code>{job.deferred_reason}</code>],
    [t("again"), job.run_again && t("yes")],
    [t("signals"), job.signals.join(", ")],
    [t("created"), <Time at={job.create_time} />],
    [t("waiting_since"), <Time at={job.waiting_since} />],
    [t("due_at"), <Time at={job.due_at} />],
    [t("started"), job.started_at && <Time at={job.started_at} />],
    [t("finished"), job.finished_at && <Time at={job.finished_at} />],
    [t("result"), job.result && <pre>{JSON.stringify(job.result, null, 2)}</pre>],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => value && [<dt key={name}>{name}</dt>, <dd key={`${name}=`}>{value}</dd>])}
    </dl>
  );
}
