// What the gate decided and why; what it refused can be stored anyway where its text was kept.
import { useId, useState } from "preact/hooks";

import { isRestricted, needs } from "../access";
import { get, type Page } from "../api";
import type { PageProps } from "../app";
import { Bars } from "../components/bars";
import { Daily, daysAgo } from "../components/daily";
import { memoryAddress } from "../components/memory";
import { type Reason, Reasons, Rule } from "../components/reasons";
import { Empty, Loading, Problem } from "../components/states";
import "../components/stack.css";
import { StoreAnyway } from "../components/store-anyway";
import { type Column, Table } from "../components/table";
import { Time } from "../components/time";
import { TryText } from "../components/try-text";
import { useLoad } from "../load";
import { href, replace } from "../routing";
import { t } from "../text/gate";
import { label } from "../text/labels";
import { ruleName } from "../text/reasons";

const PERIODS = [7, 30, 90] as const;
const MOST_LINES = 5;
const VERDICTS = ["accepted", "rejected"] as const;

interface Decision {
  decision_id: string;
  verdict: (typeof VERDICTS)[number];
  codes: string[];
  reasons: Reason[];
  content: string | null;
  user_id: string | null;
  agent_id: string | null;
  project_id: string | null;
  memory_id: string | null;
  source: string;
  event: string | null;
  storable: boolean;
  create_time: string;
}

interface OfDay {
  day: string | null;
  accepted: number;
  rejected: number;
  by_code: Record<string, number>;
}

interface Refusals {
  since: string;
  until: string;
  items: OfDay[];
  totals: Omit<OfDay, "day">;
}

interface Filters {
  code: string;
  verdict: string;
  user_id: string;
  /** Days of UTC, both shown. */
  since: string;
  until: string;
}

export default function Gate({ query }: PageProps) {
  const filters: Filters = {
    code: query.get("code") ?? "",
    verdict: query.get("verdict") ?? "",
    user_id: query.get("user_id") ?? "",
    since: query.get("since") ?? "",
    until: query.get("until") ?? "",
  };
  const [days, setDays] = useState<number>(30);
  const [round, setRound] = useState(0);
  const filter = (chosen: Partial<Filters>) => replace(href("gate", [], { ...filters, ...chosen }));
  const [codes, setCodes] = useState<string[]>([]);
  return (
    <div class="stack">
      <p>{t("about")}</p>
      {!isRestricted() && <Counted days={days} choose={setDays} round={round} found={setCodes} />}
      <section>
        <h2>{t("list")}</h2>
        <Filter filters={filters} codes={codes} filter={filter} />
        <List filters={filters} round={round} stored={() => setRound((last) => last + 1)} />
      </section>
      <TryText />
    </div>
  );
}

function Counted(
  { days, choose, round, found }: {
    days: number;
    choose: (days: number) => void;
    round: number;
    found: (codes: string[]) => void;
  },
) {
  const refusals = useLoad(async (signal) => {
    const answer = await get<Refusals>("/v1/stats/refusals", { since: daysAgo(days) }, signal);
    found(Object.keys(answer.totals.by_code));
    return answer;
  }, [days, round]);
  return (
    <section class="panel">
      <h2>{t("over")}</h2>
      <Period days={days} choose={choose} />
      {refusals.problem && <Problem problem={refusals.problem} retry={refusals.reload} />}
      {refusals.data ? <Over refusals={refusals.data} /> : refusals.loading && <Loading />}
    </section>
  );
}

function Period({ days, choose }: { days: number; choose: (days: number) => void }) {
  return (
    <label class="inline">
      {t("days")}{" "}
      <select value={days} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {PERIODS.map((period) => <option key={period} value={period}>{period}</option>)}
      </select>
    </label>
  );
}

function Over({ refusals }: { refusals: Refusals }) {
  const { by_code } = refusals.totals;
  const codes = Object.keys(by_code).sort((left, right) => (by_code[right] ?? 0) - (by_code[left] ?? 0));
  if (codes.length === 0) return <Empty>{t("over_none")}</Empty>;
  return (
    <>
      <Bars
        label={t("over")}
        items={codes.map((code) => ({
          label: <a href={href("gate", [], { verdict: "rejected", code, since: refusals.since, until: refusals.until })}><Rule code={code} /></a>,
          value: by_code[code] ?? 0,
        }))}
      />
      <Daily
        label={t("over_daily")}
        dayLabel={t("day")}
        since={refusals.since}
        until={refusals.until}
        items={refusals.items}
        series={[
          { label: t("rejected"), value: (item) => item?.rejected ?? 0 },
          ...codes.slice(0, MOST_LINES - 1).map((code) => ({
            label: ruleName(code),
            value: (item: OfDay | undefined) => item?.by_code[code] ?? 0,
          })),
        ]}
      />
    </>
  );
}

function Filter(
  { filters, codes, filter }: { filters: Filters; codes: string[]; filter: (chosen: Partial<Filters>) => void },
) {
  const id = useId();
  return (
    <form
      key={JSON.stringify(filters)}
      class="filters"
      aria-label={t("filters")}
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        const text = (name: string) => String(given.get(name) ?? "").trim();
        filter({
          code: text("code"), verdict: text("verdict"), user_id: text("user_id"), since: text("since"), until: text("until"),
        });
      }}
    >
      <label>
        {t("rule")}
        <input type="text" name="code" list={id} defaultValue={filters.code} spellcheck={false} />
        <datalist id={id}>{codes.map((code) => <option key={code} value={code} label={ruleName(code)} />)}</datalist>
      </label>
      <label>
        {t("outcome")}
        <select name="verdict">
          <option value="">{t("all")}</option>
          {VERDICTS.map((verdict) => (
            <option key={verdict} value={verdict} selected={verdict === filters.verdict}>{t(verdict)}</option>
          ))}
        </select>
      </label>
      <label>
        {t("user")}
        <input type="text" name="user_id" defaultValue={filters.user_id} spellcheck={false} />
      </label>
      <label>{t("since")}<input type="date" name="since" defaultValue={filters.since} /></label>
      <label>{t("until")}<input type="date" name="until" defaultValue={filters.until} /></label>
      <button type="submit">{t("apply")}</button>
    </form>
  );
}

/** The filters as the API takes them; a day that somebody wrote may be none. */
function asked({ since, until, ...others }: Filters) {
  const midnight = (day: string, later: number) => {
    const time = Date.parse(day);
    return Number.isNaN(time) ? "" : new Date(time + later).toISOString();
  };
  return { ...others, since: midnight(since, 0), until: midnight(until, 86_400_000) };
}

function List({ filters, round, stored }: { filters: Filters; round: number; stored: () => void }) {
  const [storing, setStoring] = useState<Decision | null>(null);
  const [notice, setNotice] = useState("");
  const filtered = Object.values(filters).some((value) => value !== "");
  return (
    <>
      <p role="status" class="small">{notice}</p>
      <Table<Decision>
        caption={t("list")}
        inAddress
        columns={columns(setStoring)}
        load={(cursor, limit, signal) =>
          get<Page<Decision>>("/v1/memories/decisions", { ...asked(filters), cursor, limit }, signal)}
        inputs={[filters]}
        again={round}
        row={(decision) => decision.decision_id}
        empty={filtered ? t("none_matches") : t("none_yet")}
      />
      {storing && (
        <StoreAnyway
          refused={storing}
          close={() => setStoring(null)}
          stored={(id) => {
            setNotice(t("stored", { id }));
            stored();
          }}
        />
      )}
    </>
  );
}

/** What became of the text, where the verdict does not say it. */
const became = ({ event }: Decision) => (event && event !== "REJECT" ? label(event) : "");

function columns(ask: (decision: Decision) => void): Column<Decision>[] {
  return [
    { title: t("when"), show: (decision) => <Time at={decision.create_time} /> },
    {
      title: t("text"),
      show: (decision) => decision.content === null
        ? <span class="muted">{t("not_kept")}</span>
        : <span class="said">{decision.content}</span>,
    },
    {
      title: t("verdict"),
      show: (decision) => (
        <>
          <span class="tag">{t(decision.verdict)}</span>{" "}
          {decision.memory_id
            ? <a href={memoryAddress({ memory_id: decision.memory_id, user_id: decision.user_id })}>{became(decision) || t("memory")}</a>
            : became(decision)}
        </>
      ),
    },
    { title: t("why"), show: (decision) => <Reasons reasons={decision.reasons} codes={decision.codes} /> },
    { title: t("whose"), show: (decision) => decision.user_id ?? decision.project_id ?? decision.agent_id },
    { title: t("source"), show: (decision) => label(decision.source) },
    {
      title: t("actions"),
      show: (decision) => decision.storable && (
        <button type="button" {...needs("admin")} aria-label={t("anyway_named", { text: decision.content ?? "" })} onClick={() => ask(decision)}>
          {t("anyway")}
        </button>
      ),
    },
  ];
}
