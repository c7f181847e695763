// All that the service tells of one job.
import type { ComponentChildren } from "preact";

import { href } from "../routing";
import { t } from "../text/jobs";
import { kindName, label } from "../text/labels";
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

/** What a job does, with its kind as the API has it. */
export function Kind({ kind }: { kind: string }) {
  return <><span class="usual">{kindName(kind)}</span> <code>{kind}</code></>;
}

/** A job by its id, with a link to what is known of it. */
export function JobLink({ id }: { id: string }) {
  return <a href={href("jobs", [id])}><code>{id}</code></a>;
}

/** What came of a job that is done, in words; empty where its kind does not say it. */
export function outcomeOf({ status, result }: Pick<Job, "status" | "result">): string {
  if (status !== "succeeded" || result === null) return "";
  const { changed, events, skipped } = result as { changed?: unknown; events?: Record<string, number>; skipped?: unknown };
  if (typeof skipped === "string") return `${label("SKIP")}: ${label(skipped)}`;
  if (Array.isArray(changed)) return changed.length === 0 ? t("nothing_new") : t("slots_changed", { count: changed.length });
  if (events) {
    const said = Object.entries(events).map(([event, count]) => `${label(event)} ${count}`);
    return said.join(", ") || t("nothing_new");
  }
  return Object.keys(result).length === 0 ? t("nothing_new") : "";
}

export function JobDetails({ job }: { job: Job }) {
  const facts: [string, ComponentChildren][] = [
    [t("kind"), <Kind kind={job.kind} />],
    [t("status"), statusText(job.status)],
    [t("user"), job.user_id && <a href={href("people", [job.user_id])}>{job.user_id}</a>],
    [t("agent"), job.agent_id],
    [t("session"), job.session_id && <a href={href("conversation", [job.session_id])}>{job.session_id}</a>],
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
    [t("outcome"), outcomeOf(job)],
    [t("result"), job.result && <pre>{JSON.stringify(job.result, null, 2)}</pre>],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => value && [<dt key={name}>{name}</dt>, <dd key={`${name}=`}>{value}</dd>])}
    </dl>
  );
}
