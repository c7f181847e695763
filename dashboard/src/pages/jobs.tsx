// The queue: what waits, runs and failed for good, and what can be done about it.
import { useEffect, useState } from "preact/hooks";

import { needs } from "../access";
import { get, path as address, send, type Page } from "../api";
import type { PageProps } from "../app";
import { Dialog } from "../components/dialog";
import { type Job, JobDetails, type JobStatus, Kind, STATUSES, statusText } from "../components/job-details";
import { Loading, Problem } from "../components/states";
import "../components/stack.css";
import { type Column, Table } from "../components/table";
import { Time } from "../components/time";
import { since } from "../durations";
import { resting, useAction, useLoad } from "../load";
import { href, replace } from "../routing";
import { locale, number } from "../text";
import { t } from "../text/jobs";
import { kindName } from "../text/labels";

const REFRESH_MS = 5_000;

interface Stats {
  total: number;
  by_status: Record<JobStatus, number>;
  by_kind: Record<string, Partial<Record<JobStatus, number>>>;
  due: number;
  oldest_due: string | null;
}

interface Filters {
  kind: string;
  status: string;
  user_id: string;
}

export default function Jobs({ path, query }: PageProps) {
  const filters: Filters = {
    kind: query.get("kind") ?? "",
    status: query.get("status") ?? "",
    user_id: query.get("user_id") ?? "",
  };
  const [paused, setPaused] = useState(false);
  const [round, setRound] = useState(0);
  const refresh = () => setRound((last) => last + 1);
  useEvery(REFRESH_MS, refresh, !paused);
  const stats = useLoad((signal) => get<Stats>("/v1/jobs/stats", {}, signal), [round]);
  const filter = (chosen: Partial<Filters>) => replace(href("jobs", [], { ...filters, ...chosen }));
  const shown = path[0];
  return (
    <div class="stack">
      <p>{t("about")}</p>
      <Updates paused={paused} toggle={() => setPaused(!paused)} refresh={refresh} round={round} />
      {stats.problem && <Problem problem={stats.problem} retry={stats.reload} />}
      {stats.data === null ? stats.loading && <Loading /> : <Overview stats={stats.data} filter={filter} />}
      <Filter filters={filters} kinds={Object.keys(stats.data?.by_kind ?? {})} filter={filter} />
      <List filters={filters} round={round} refresh={refresh} none={stats.data?.total === 0} />
      {shown !== undefined && <Shown id={shown} round={round} close={() => filter({})} />}
    </div>
  );
}

/** Calls `act` regularly while the page can be seen; and at once when it is seen again. */
function useEvery(milliseconds: number, act: () => void, active: boolean): void {
  useEffect(() => {
    if (!active) return;
    const tick = () => document.visibilityState === "visible" && act();
    const timer = setInterval(tick, milliseconds);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, [active, milliseconds]);
}

function Updates(
  { paused, toggle, refresh, round }: { paused: boolean; toggle: () => void; refresh: () => void; round: number },
) {
  const [at, setAt] = useState(new Date());
  useEffect(() => setAt(new Date()), [round]);
  return (
    <div class="buttons">
      <button type="button" aria-pressed={paused} onClick={toggle}>{t("pause")}</button>
      <button type="button" onClick={refresh}>{t("now")}</button>
      <span class="small">{t("updated", { time: at.toLocaleTimeString(locale()) })}</span>
    </div>
  );
}

function Overview({ stats, filter }: { stats: Stats; filter: (chosen: Partial<Filters>) => void }) {
  const kinds = Object.entries(stats.by_kind).sort(([one], [two]) => one.localeCompare(two));
  return (
    <div class="stack">
      <dl class="figures">
        <div><dt>{t("waiting")}</dt><dd>{number(stats.by_status.pending)}</dd></div>
        <div><dt>{t("running")}</dt><dd>{number(stats.by_status.running)}</dd></div>
        <div><dt>{t("dead")}</dt><dd>{number(stats.by_status.dead)}</dd></div>
        <div><dt>{t("due")}</dt><dd>{number(stats.due)}</dd></div>
        <div>
          <dt title={t("lag_about")}>{t("lag")}</dt>
          <dd>{stats.oldest_due === null ? <span class="small">{t("on_time")}</span> : since(stats.oldest_due)}</dd>
        </div>
      </dl>
      {kinds.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("by_kind")}>
          <table>
            <caption class="hidden">{t("by_kind")}</caption>
            <thead>
              <tr>
                <th scope="col">{t("kind")}</th>
                {STATUSES.map((status) => <th key={status} scope="col" class="number">{statusText(status)}</th>)}
              </tr>
            </thead>
            <tbody>
              {kinds.map(([kind, counts]) => (
                <tr key={kind}>
                  <td data-title={t("kind")}><Kind kind={kind} /></td>
                  {STATUSES.map((status) => (
                    <td key={status} data-title={statusText(status)} class="number">
                      <Count kind={kind} status={status} count={counts[status] ?? 0} filter={filter} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function Count(
  { kind, status, count, filter }: {
    kind: string;
    status: JobStatus;
    count: number;
    filter: (chosen: Partial<Filters>) => void;
  },
) {
  if (count === 0) return <>0</>;
  const name = t("show", { count, kind, status: statusText(status) });
  return (
    <button type="button" aria-label={name} onClick={() => filter({ kind, status })}>{number(count)}</button>
  );
}

function Filter(
  { filters, kinds, filter }: { filters: Filters; kinds: string[]; filter: (chosen: Partial<Filters>) => void },
) {
  const known = [...new Set([...kinds, filters.kind])].filter((kind) => kind !== "").sort();
  return (
    <form
      class="filters"
      aria-label={t("filters")}
      onSubmit={(event) => {
        event.preventDefault();
        filter({ user_id: String(new FormData(event.currentTarget).get("user_id") ?? "").trim() });
      }}
    >
      <label>
        {t("kind")}
        <select value={filters.kind} onChange={(event) => filter({ kind: event.currentTarget.value })}>
          <option value="">{t("all")}</option>
          {known.map((kind) => <option key={kind} value={kind}>{kindName(kind)} ({kind})</option>)}
        </select>
      </label>
      <label>
        {t("status")}
        <select value={filters.status} onChange={(event) => filter({ status: event.currentTarget.value })}>
          <option value="">{t("all")}</option>
          {STATUSES.map((status) => <option key={status} value={status}>{statusText(status)}</option>)}
        </select>
      </label>
      <label>
        {t("user")}
        <input type="text" name="user_id" defaultValue={filters.user_id} spellcheck={false} />
      </label>
      <button type="submit">{t("apply")}</button>
    </form>
  );
}

function List(
  { filters, round, refresh, none }: { filters: Filters; round: number; refresh: () => void; none: boolean },
) {
  const [notice, setNotice] = useState("");
  const [asked, setAsked] = useState<Job | null>(null);
  const change = async (job: Job, what: "retry" | "cancel") => {
    await send("POST", `${address("/v1/jobs", job.job_id)}/${what}`);
    setNotice(t(what === "retry" ? "retried" : "cancelled", { id: job.job_id }));
    refresh();
  };
  const retrying = useAction((job: Job) => change(job, "retry"));
  return (
    <section aria-label={t("list")}>
      <p role="status" class="small">{notice}</p>
      {retrying.problem && <Problem problem={retrying.problem} />}
      <Table<Job>
        caption={t("list")}
        inAddress
        columns={columns(filters, retrying.busy, retrying.run, setAsked)}
        load={(cursor, limit, signal) => get<Page<Job>>("/v1/jobs", { ...filters, cursor, limit }, signal)}
        inputs={[filters]}
        again={round}
        row={(job) => job.job_id}
        empty={none ? t("none_yet") : t("none")}
      />
      {asked && (
        <Dialog
          title={t("cancel_ask")}
          action={t("cancel_job")}
          act={() => change(asked, "cancel")}
          close={() => setAsked(null)}
          danger
        >
          <p><Kind kind={asked.kind} /> <code>{asked.job_id}</code></p>
          <p>{t("cancel_about")}</p>
        </Dialog>
      )}
    </section>
  );
}

function columns(
  filters: Filters,
  busy: boolean,
  retry: (job: Job) => void,
  ask: (job: Job) => void,
): Column<Job>[] {
  const details = (job: Job) => (
    <a href={href("jobs", [job.job_id], { ...filters })} aria-label={t("details_named", { kind: `${kindName(job.kind)} ${job.kind}`, id: job.job_id })}>
      <Kind kind={job.kind} />
    </a>
  );
  return [
    { title: t("kind"), show: details },
    { title: t("status"), show: (job) => <span class="tag">{statusText(job.status)}</span> },
    { title: t("for_whom"), show: (job) => job.user_id ?? job.agent_id ?? "" },
    { title: t("age"), show: (job) => since(job.create_time), number: true },
    { title: t("due_at"), show: (job) => <Time at={job.due_at} /> },
    { title: t("attempts"), show: (job) => `${number(job.attempts)} / ${number(job.max_attempts)}`, number: true },
    { title: t("error"), show: (job) => job.error_code && <><code>{job.error_code}</code> {job.error_detail}</> },
    {
      title: t("actions"),
      show: (job) => (
        <>
          {(job.status === "dead" || job.status === "cancelled") && (
            <button type="button" {...needs("write")} {...resting(busy)} aria-label={t("retry_named", { id: job.job_id })} onClick={() => retry(job)}>
              {t("retry_job")}
            </button>
          )}
          {(job.status === "pending" || job.status === "running") && (
            <button type="button" {...needs("write")} aria-label={t("cancel_named", { id: job.job_id })} onClick={() => ask(job)}>
              {t("cancel_job")}
            </button>
          )}
        </>
      ),
    },
  ];
}

function Shown({ id, round, close }: { id: string; round: number; close: () => void }) {
  const { data, problem } = useLoad((signal) => get<Job>(address("/v1/jobs", id), {}, signal), [id, round]);
  return (
    <Dialog title={t("details", { id })} close={close}>
      {problem ? <Problem problem={problem} /> : data === null ? <Loading /> : <JobDetails job={data} />}
    </Dialog>
  );
}
