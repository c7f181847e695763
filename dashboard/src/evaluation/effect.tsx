// Whether memory helps: what is found, what of it is used, how fast, and what nobody needs.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { get } from "../api";
import { Daily, daysAgo, type Series } from "../components/daily";
import { Empty, Loading, Problem } from "../components/states";
import { Table } from "../components/table";
import { Day } from "../components/time";
import { duration, estimated } from "../durations";
import { type Loaded, useLoad } from "../load";
import { pagesOf } from "../pages-of";
import { number, percent } from "../text";
import { t } from "../text/evaluation";
import type { EffectFigures, ExtractionFigures, MemoryCounts, MemoryStats, Stats } from "./shapes";

const PERIODS = [7, 30, 90] as const;
type Effects = Stats<EffectFigures>;
type Extractions = Stats<ExtractionFigures>;

export function Effect() {
  const [days, setDays] = useState<number>(30);
  const [agent, setAgent] = useState("");
  const query = { since: daysAgo(days), agent_id: agent };
  const effect = useLoad((signal) => get<Effects>("/v1/stats/effect", query, signal), [days, agent]);
  const agents = useLoad(
    (signal) => get<Effects>("/v1/stats/effect", { ...query, group_by: "agent" }, signal),
    [days, agent],
  );
  const extraction = useLoad((signal) => get<Extractions>("/v1/stats/extraction", query, signal), [days, agent]);
  const memories = useLoad((signal) => get<MemoryStats>("/v1/stats/memories", query, signal), [days, agent]);
  return (
    <>
      <Choice days={days} agent={agent} chooseDays={setDays} chooseAgent={setAgent} />
      <Panel title={t("effect")} about={t("effect_about")} loaded={effect}>{(data) => <OverTime effect={data} />}</Panel>
      <Panel title={t("by_agent")} about={t("by_agent_about")} loaded={agents}>{(data) => <ByAgent effect={data} />}</Panel>
      <Panel title={t("extraction")} about={t("extraction_about")} loaded={extraction}>
        {(data) => <Extraction stats={data} />}
      </Panel>
      <Panel title={t("kept")} about={t("kept_about")} loaded={memories}>{(data) => <Kept stats={data} />}</Panel>
    </>
  );
}

function Choice(
  { days, agent, chooseDays, chooseAgent }: {
    days: number;
    agent: string;
    chooseDays: (days: number) => void;
    chooseAgent: (agent: string) => void;
  },
) {
  return (
    <form
      class="filters"
      aria-label={t("shown")}
      onSubmit={(event) => {
        event.preventDefault();
        chooseAgent(String(new FormData(event.currentTarget).get("agent_id") ?? "").trim());
      }}
    >
      <label>
        {t("days")}
        <select value={days} onChange={(event) => chooseDays(Number(event.currentTarget.value))}>
          {PERIODS.map((period) => <option key={period} value={period}>{period}</option>)}
        </select>
      </label>
      <label>{t("agent")}<input type="text" name="agent_id" defaultValue={agent} spellcheck={false} /></label>
      <button type="submit">{t("apply")}</button>
    </form>
  );
}

function Panel<T>(
  { title, about, loaded, children }: {
    title: string;
    about: string;
    loaded: Loaded<T>;
    children: (data: T) => ComponentChildren;
  },
) {
  return (
    <section class="panel" aria-busy={loaded.loading}>
      <h2>{title}</h2>
      <p class="small">{about}</p>
      {loaded.problem && <Problem problem={loaded.problem} retry={loaded.reload} />}
      {loaded.data === null ? loaded.loading && <Loading /> : children(loaded.data)}
    </section>
  );
}

/** Of a share, as the axis of a chart shows it. */
const hundredfold = (share: number | null | undefined) => (share === null || share === undefined ? null : 100 * share);
const shownShare = (value: number) => percent(value / 100);
const seconds = (milliseconds: number | null | undefined) =>
  milliseconds === null || milliseconds === undefined ? null : milliseconds / 1000;

const rate = (value: number | null) => value === null ? "–" : percent(value);
const milliseconds = (value: number) => duration(value / 1000);
const time = (value: number | null) => value === null ? "–" : milliseconds(value);
const lag = (value: number | null) => value === null ? "–" : estimated(value);

function Figures({ figures }: { figures: readonly [name: string, value: string][] }) {
  return (
    <dl class="figures">
      {figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function OverTime({ effect }: { effect: Effects }) {
  const { searches, contexts, items } = effect.totals;
  const charts: [title: string, series: Series<EffectFigures>[]][] = [
    [t("hit_rate"), [
      { label: t("searches"), value: (day) => hundredfold(day?.searches.hit_rate), show: shownShare },
      { label: t("contexts"), value: (day) => hundredfold(day?.contexts.hit_rate), show: shownShare },
    ]],
    [t("use_rate"), [
      { label: t("reported"), value: (day) => hundredfold(day?.items.use_rate), show: shownShare },
      { label: t("estimated"), value: (day) => hundredfold(day?.items.use_rate_estimated), show: shownShare },
    ]],
    [t("asked"), [
      { label: t("searches"), value: (day) => day?.searches.count ?? 0 },
      { label: t("contexts"), value: (day) => day?.contexts.count ?? 0 },
      { label: t("injected"), value: (day) => day?.items.injected ?? 0 },
    ]],
    [t("latency"), [
      { label: t("searches_p95"), value: (day) => day?.searches.p95_ms ?? null, show: milliseconds },
      { label: t("contexts_p95"), value: (day) => day?.contexts.p95_ms ?? null, show: milliseconds },
    ]],
  ];
  return (
    <>
      <Figures
        figures={[
          [t("hit_rate_searches"), rate(searches.hit_rate)],
          [t("hit_rate_contexts"), rate(contexts.hit_rate)],
          [t("use_rate_reported"), rate(items.use_rate)],
          [t("use_rate_estimated"), rate(items.use_rate_estimated)],
          [t("searches_p95"), time(searches.p95_ms)],
          [t("contexts_p95"), time(contexts.p95_ms)],
        ]}
      />
      {effect.items.length === 0
        ? <Empty>{t("no_effect")}</Empty>
        : charts.map(([title, series]) => <Over key={title} title={title} stats={effect} series={series} />)}
    </>
  );
}

function Over<T extends { day: string | null }>(
  { title, stats, series }: { title: string; stats: { since: string; until: string; items: T[] }; series: Series<T>[] },
) {
  return (
    <>
      <h3>{title}</h3>
      <Daily label={title} dayLabel={t("day")} since={stats.since} until={stats.until} items={stats.items} series={series} />
    </>
  );
}

function ByAgent({ effect }: { effect: Effects }) {
  type Row = Effects["items"][number];
  const column = (title: string, show: (row: Row) => string) => ({ title, show, number: true });
  return (
    <Table<Row>
      caption={t("by_agent")}
      columns={[
        { title: t("agent"), show: (row) => row.agent_id || <em>{t("no_agent")}</em> },
        column(t("searches"), (row) => number(row.searches.count)),
        column(t("hit_rate_searches"), (row) => rate(row.searches.hit_rate)),
        column(t("contexts"), (row) => number(row.contexts.count)),
        column(t("hit_rate_contexts"), (row) => rate(row.contexts.hit_rate)),
        column(t("injected"), (row) => number(row.items.injected)),
        column(t("use_rate_reported"), (row) => rate(row.items.use_rate)),
        column(t("use_rate_estimated"), (row) => rate(row.items.use_rate_estimated)),
        column(t("contexts_p95"), (row) => time(row.contexts.p95_ms)),
      ]}
      load={pagesOf(effect.items)}
      again={effect}
      row={(row) => row.agent_id ?? ""}
      empty={t("no_effect")}
    />
  );
}

function Extraction({ stats }: { stats: Extractions }) {
  const { totals } = stats;
  if (stats.items.length === 0) return <Empty>{t("no_extraction")}</Empty>;
  return (
    <>
      <Figures
        figures={[
          [t("runs"), number(totals.runs)],
          [t("failed"), number(totals.failed)],
          [t("messages"), number(totals.messages)],
          [t("proposals"), number(totals.proposals)],
          [t("lag_p50"), lag(totals.lag_p50_ms)],
          [t("lag_p95"), lag(totals.lag_p95_ms)],
        ]}
      />
      <Over
        title={t("lag")}
        stats={stats}
        series={[
          { label: t("lag_p50"), value: (day) => seconds(day?.lag_p50_ms), show: duration },
          { label: t("lag_p95"), value: (day) => seconds(day?.lag_p95_ms), show: duration },
        ]}
      />
    </>
  );
}

function Kept({ stats }: { stats: MemoryStats }) {
  const { now } = stats;
  if (now === null) return <Empty>{t("not_counted")}</Empty>;
  const { duplicates } = now;
  return (
    <>
      <Figures
        figures={[
          [t("total"), number(now.total)],
          [t("never_used"), number(now.never_used)],
          [t("in_conflict"), number(now.in_conflict)],
          [
            t("duplicates"),
            duplicates === null ? "–" : t("of_sampled", { found: duplicates.found, sampled: duplicates.sampled }),
          ],
        ]}
      />
      {!now.live && <p class="small">{t("counted")} <Day at={now.day} /></p>}
      {stats.items.length > 0 && (
        <Over<MemoryCounts>
          title={t("kept_daily")}
          stats={stats}
          series={[
            { label: t("total"), value: (day) => day?.total ?? null },
            { label: t("never_used"), value: (day) => day?.never_used ?? null },
            { label: t("in_conflict"), value: (day) => day?.in_conflict ?? null },
          ]}
        />
      )}
    </>
  );
}
