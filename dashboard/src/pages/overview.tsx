// The state of a tenant at a glance. Each part asks for itself, so that one refusal hides no other.
import { get } from "../api";
import type { PageProps } from "../app";
import { Problem } from "../components/states";
import "../components/stack.css";
import { duration, estimated } from "../durations";
import { useLoad } from "../load";
import { href, replace } from "../routing";
import { number, percent } from "../text";
import { t } from "../text/overview";
import { ExtractionPanel, FindingPanel, GatePanel, JobsPanel, MemoriesPanel, ModelsPanel } from "./overview/panels";
import type { Effect, Extraction, Jobs, Memories, Period, Refusals, Usage } from "./overview/answers";

const PERIODS = [7, 30, 90];

export default function Overview({ query }: PageProps) {
  const asked = Number(query.get("days"));
  const days = PERIODS.includes(asked) ? asked : 30;
  const period = periodOf(days);
  const range = { since: period.days[0], until: period.days.at(-1) };
  const ask = <T,>(path: string, withDays = true) =>
    useLoad((signal) => get<T>(path, withDays ? range : {}, signal), [days]);
  const memories = ask<Memories>("/v1/stats/memories");
  const effect = ask<Effect>("/v1/stats/effect");
  const refusals = ask<Refusals>("/v1/stats/refusals");
  const extraction = ask<Extraction>("/v1/stats/extraction");
  const jobs = ask<Jobs>("/v1/jobs/stats", false);
  const usage = ask<Usage>("/v1/usage");
  const parts = [memories, effect, refusals, extraction, jobs, usage];
  const loading = parts.some((part) => part.loading);
  const problems = parts.filter((part) => part.problem !== null);
  const first = problems[0]?.problem;
  const reload = () => parts.forEach((part) => part.reload());
  return (
    <div class="stack" aria-busy={loading}>
      <p>{t("about")}</p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          {t("period")}
          <select
            value={String(days)}
            onChange={(event) => replace(href("overview", [], { days: event.currentTarget.value }))}
          >
            {PERIODS.map((count) => <option key={count} value={String(count)}>{t("days", { count })}</option>)}
          </select>
        </label>
        <button type="button" onClick={reload}>{t("reload")}</button>
      </form>
      {first && <Problem problem={first} retry={reload} />}
      <dl class="figures" aria-label={t("figures")}>
        <Figure name={t("memories")} value={memories.data?.now ? number(memories.data.now.total) : null} />
        <Figure name={t("searches")} value={effect.data && number(effect.data.totals.searches.count)} />
        <Figure name={t("hit_rate")} value={effect.data && share(effect.data.totals.searches.hit_rate)} />
        <Figure name={t("search_p95")} value={effect.data && milliseconds(effect.data.totals.searches.p95_ms)} />
        <Figure name={t("refused")} value={refusals.data && number(refusals.data.totals.rejected)} />
        <Figure name={t("lag_p95")} value={extraction.data && lag(extraction.data.totals.lag_p95_ms)} />
        <Figure name={t("jobs_due")} value={jobs.data && number(jobs.data.due)} />
        <Figure name={t("jobs_dead")} to={href("jobs", [], { status: "dead" })} value={jobs.data && number(jobs.data.dead)} />
      </dl>
      <div class="grid">
        {memories.data && <MemoriesPanel memories={memories.data} period={period} />}
        {effect.data && <FindingPanel effect={effect.data} period={period} />}
        {refusals.data && <GatePanel refusals={refusals.data} period={period} />}
        {extraction.data && <ExtractionPanel extraction={extraction.data} period={period} />}
        {jobs.data && <JobsPanel jobs={jobs.data} />}
        {usage.data && <ModelsPanel usage={usage.data} period={period} />}
      </div>
    </div>
  );
}

/** `to` is a list of exactly what is counted. */
function Figure({ name, value, to }: { name: string; value: string | null; to?: string }) {
  const shown = value ?? t("not_timed");
  return <div><dt>{name}</dt><dd>{to ? <a href={to}>{shown}</a> : shown}</dd></div>;
}

function share(value: number | null): string {
  return value === null ? t("not_timed") : percent(value);
}

function milliseconds(value: number | null): string {
  return value === null ? t("not_timed") : duration(value / 1000);
}

function lag(value: number | null): string {
  return value === null ? t("not_timed") : estimated(value);
}

/** The last days of UTC, today included. */
function periodOf(count: number): Period {
  const today = Math.floor(Date.now() / 86_400_000);
  const times = Array.from({ length: count }, (_, place) => (today - count + 1 + place) * 86_400);
  return { times, days: times.map((time) => new Date(time * 1000).toISOString().slice(0, 10)) };
}
