import type { ComponentChildren } from "preact";

import { Bars } from "../../components/bars";
import { Chart } from "../../components/chart";
import { Facts } from "../../components/facts";
import { type JobStatus, statusText } from "../../components/job-details";
import { Rule } from "../../components/reasons";
import { Empty } from "../../components/states";
import { Day, Time } from "../../components/time";
import { href } from "../../routing";
import { number, percent } from "../../text";
import { label } from "../../text/labels";
import { t } from "../../text/overview";
import type { Effect, Extraction, Jobs, Memories, Period, Refusals, Usage } from "./answers";

function Panel({ title, page, children }: { title: string; page?: Page; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      {children}
      {page && <p><a href={href(page)}>{t("detail", { page: t(page) })}</a></p>}
    </section>
  );
}

type Page = "people" | "gate" | "jobs" | "evaluation";

/** The values of a period's days; `none` where a day has no item. */
function daily<T extends { day: string }, N>(period: Period, items: readonly T[], value: (item: T) => number | null, none: N) {
  const known = new Map(items.map((item) => [item.day, item]));
  return period.days.map((day) => {
    const item = known.get(day);
    return item === undefined ? none : value(item);
  });
}

const sorted = (counts: Record<string, number>) =>
  Object.entries(counts).filter(([, count]) => count > 0).sort(([, one], [, other]) => other - one);

export function MemoriesPanel({ memories: { now, items }, period }: { memories: Memories; period: Period }) {
  if (now === null) return <Panel title={t("memories")} page="people"><Empty>{t("not_counted")}</Empty></Panel>;
  const types = sorted(now.by_memory_type);
  const growth = daily(period, items, (item) => item.total, null);
  return (
    <Panel title={t("memories")} page="people">
      {Object.keys(now.by_status).length === 0 ?
        <Empty>{t("memories_none")}</Empty>
      : <>
          <h3>{t("by_type")}</h3>
          <Bars label={t("by_type")} items={types.map(([type, value]) => ({ label: label(type), value }))} />
          <h3>{t("by_state")}</h3>
          <Bars
            label={t("by_state")}
            items={sorted(now.by_status).map(([state, value]) => ({ label: label(state), value, tone: "2" }))}
          />
          <Facts
            items={[
              [t("never_used"), number(now.never_used)],
              [t("in_conflict"), number(now.in_conflict)],
              now.duplicates ?
                [t("duplicates", { sampled: now.duplicates.sampled }), number(now.duplicates.found)]
              : ["", ""],
            ]}
          />
          {!now.live && <p class="small">{t("not_live")} <Day at={now.day} /></p>}
          <h3>{t("growth")}</h3>
          {items.length === 0 ?
            <Empty>{t("growth_none")}</Empty>
          : <Chart label={t("growth")} times={period.times} lines={[{ label: t("memories"), values: growth }]} />}
        </>}
    </Panel>
  );
}

export function FindingPanel({ effect: { items, totals }, period }: { effect: Effect; period: Period }) {
  const { searches, contexts, items: shown } = totals;
  const lines = (value: (one: Effect["totals"]["searches"]) => number | null, none: number | null) => [
    { label: t("searches"), values: daily(period, items, (item) => value(item.searches), none) },
    { label: t("contexts"), values: daily(period, items, (item) => value(item.contexts), none) },
  ];
  const rate = (value: number | null) => (value === null ? t("not_timed") : percent(value));
  return (
    <Panel title={t("finding")} page="evaluation">
      {searches.count + contexts.count === 0 ?
        <Empty>{t("finding_none")}</Empty>
      : <>
          <p>{t("finding_about", { searches: searches.count, contexts: contexts.count })}</p>
          {shown.injected > 0 && (
            <p>
              {t("use_rate", {
                injected: shown.injected,
                rate: rate(shown.use_rate),
                estimate: rate(shown.use_rate_estimated),
              })}
            </p>
          )}
          <h3>{t("finding_days")}</h3>
          <Chart label={t("finding_days")} times={period.times} lines={lines((one) => one.count, 0)} />
          <h3>{t("speed_days")}</h3>
          <Chart label={t("speed_days")} times={period.times} lines={lines((one) => one.p95_ms, null)} />
        </>}
    </Panel>
  );
}

export function GatePanel({ refusals: { items, totals }, period }: { refusals: Refusals; period: Period }) {
  const { accepted, rejected } = totals;
  return (
    <Panel title={t("gate_title")} page="gate">
      {accepted + rejected === 0 ?
        <Empty>{t("gate_none")}</Empty>
      : <>
          <p>{t("gate_about", { accepted, rejected })}</p>
          {rejected > 0 && (
            <Bars
              label={t("gate_codes")}
              items={sorted(totals.by_code).map(([code, value]) => ({
                label: (
                  <a href={href("gate", [], { verdict: "rejected", code, since: period.days[0] })}><Rule code={code} /></a>
                ),
                value,
                tone: "5",
              }))}
            />
          )}
          <h3>{t("gate_days")}</h3>
          <Chart
            label={t("gate_days")}
            times={period.times}
            lines={[
              { label: t("accepted"), values: daily(period, items, (item) => item.accepted, 0) },
              { label: t("refused"), values: daily(period, items, (item) => item.rejected, 0) },
            ]}
          />
        </>}
    </Panel>
  );
}

export function ExtractionPanel({ extraction: { items, totals }, period }: { extraction: Extraction; period: Period }) {
  return (
    <Panel title={t("extraction")}>
      {totals.runs === 0 ?
        <Empty>{t("extraction_none")}</Empty>
      : <>
          <p>
            {t("extraction_about", {
              runs: totals.runs,
              messages: totals.messages,
              proposals: totals.proposals,
              failed: totals.failed,
            })}
          </p>
          <h3>{t("extraction_days")}</h3>
          <Chart
            label={t("extraction_days")}
            times={period.times}
            lines={[
              { label: `${t("lag")} p50`, values: daily(period, items, (item) => seconds(item.lag_p50_ms), null) },
              { label: `${t("lag")} p95`, values: daily(period, items, (item) => seconds(item.lag_p95_ms), null) },
            ]}
          />
        </>}
    </Panel>
  );
}

const seconds = (value: number | null) => (value === null ? null : value / 1000);

export function JobsPanel({ jobs }: { jobs: Jobs }) {
  return (
    <Panel title={t("jobs")} page="jobs">
      {jobs.total === 0 ?
        <Empty>{t("jobs_none")}</Empty>
      : <Bars
          label={t("jobs_list")}
          items={sorted(jobs.by_status).map(([status, value]) => ({
            label: <a href={href("jobs", [], { status })}>{statusText(status as JobStatus)}</a>,
            value,
            tone: status === "dead" ? "5" : "1",
          }))}
        />}
      {later(jobs) > 0 && <p class="small">{t("jobs_later", { count: later(jobs) })}</p>}
      {jobs.oldest_due && <Waiting since={jobs.oldest_due} />}
    </Panel>
  );
}

/** Jobs that wait for their time. */
const later = (jobs: Jobs) => Math.max(0, (jobs.by_status["pending"] ?? 0) - jobs.due);

function Waiting({ since }: { since: string }) {
  const [before, after] = t("jobs_lag").split("{time}");
  return <p>{before}<Time at={since} />{after}</p>;
}

const tokens = (one: { input_tokens: number; output_tokens: number }) => one.input_tokens + one.output_tokens;

const money = (value: number) => number(value, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

/** What models took on a day; without money where one has no price. */
function spentOn(day: string | undefined, { items, totals }: Usage): string {
  const spent = { calls: 0, tokens: 0, cost: totals.cost === null ? null : 0 as number | null };
  for (const item of items.filter((item) => item.day === day)) {
    spent.calls += item.calls;
    spent.tokens += tokens(item);
    spent.cost = spent.cost === null || item.cost === null ? null : spent.cost + item.cost;
  }
  const { calls, tokens: count, cost } = spent;
  return cost === null ? t("today_spent", { calls, tokens: count }) : t("today_cost", { calls, tokens: count, cost: money(cost) });
}

export function ModelsPanel({ usage, period }: { usage: Usage; period: Period }) {
  const { items, totals, today } = usage;
  const added = (key: (item: Usage["items"][number]) => string) => {
    const sums: Record<string, number> = {};
    for (const item of items) sums[key(item)] = (sums[key(item)] ?? 0) + tokens(item);
    return sums;
  };
  const days = added((item) => item.day);
  return (
    <Panel title={t("models")}>
      {totals.calls === 0 ?
        <Empty>{t("models_none")}</Empty>
      : <>
          <p>{t("models_about", { calls: totals.calls, failures: totals.failures, tokens: tokens(totals) })}</p>
          <p>
            {totals.cost === null ?
              t("no_cost")
            : t("cost", { cost: money(totals.cost) })}
          </p>
          <p>{spentOn(period.days.at(-1), usage)}</p>
          {today.tokens.limit !== null && (
            <p>{t("today", { used: today.tokens.used, limit: today.tokens.limit })}</p>
          )}
          <h3>{t("tokens_by")}</h3>
          <Bars
            label={t("tokens_by")}
            items={sorted(added((item) => `${item.operation} · ${item.model}`)).map(([name, value]) => ({
              label: name,
              value,
            }))}
          />
          <h3>{t("tokens_days")}</h3>
          <Chart
            label={t("tokens_days")}
            times={period.times}
            lines={[{ label: t("tokens"), values: period.days.map((day) => days[day] ?? 0) }]}
          />
        </>}
    </Panel>
  );
}
