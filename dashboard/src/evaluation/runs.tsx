// Runs of `kemem eval` that the service keeps, and their metrics side by side.
import { useState } from "preact/hooks";

import { needs } from "../access";
import { get, path as address, send, type Page } from "../api";
import { Dialog } from "../components/dialog";
import { type Column, Table } from "../components/table";
import { Time } from "../components/time";
import { pagesOf } from "../pages-of";
import { number } from "../text";
import { t } from "../text/evaluation";
import { type Compared, compared, flattened } from "./comparison";
import type { EvaluationRun } from "./shapes";

/** Runs that fit side by side. */
const MOST = 4;

export function Runs() {
  const [filter, setFilter] = useState({ name: "", dataset: "" });
  const [chosen, setChosen] = useState<EvaluationRun[]>([]);
  const [asked, setAsked] = useState<EvaluationRun | null>(null);
  const [round, setRound] = useState(0);
  const toggle = (run: EvaluationRun, on: boolean) =>
    setChosen((last) => on ? [...last, run] : last.filter((other) => other.evaluation_id !== run.evaluation_id));
  const remove = async (run: EvaluationRun) => {
    await send("DELETE", address("/v1/evaluations", run.evaluation_id));
    toggle(run, false);
    setRound(round + 1);
  };
  return (
    <>
      <p>{t("runs_about")}</p>
      {chosen.length > 0 && <Comparison runs={chosen} clear={() => setChosen([])} />}
      <Filter choose={setFilter} />
      <Table<EvaluationRun>
        caption={t("runs_list")}
        columns={columns(chosen, toggle, setAsked)}
        load={(cursor, limit, signal) =>
          get<Page<EvaluationRun>>("/v1/evaluations", { ...filter, cursor, limit }, signal)}
        inputs={[filter]}
        again={round}
        row={(run) => run.evaluation_id}
        empty={filter.name || filter.dataset ? t("no_runs_match") : t("no_runs")}
      />
      {asked && (
        <Dialog title={t("delete_ask")} action={t("delete")} act={() => remove(asked)} close={() => setAsked(null)} danger>
          <p>{asked.name} · {asked.dataset} · <Time at={asked.create_time} /></p>
        </Dialog>
      )}
    </>
  );
}

function Filter({ choose }: { choose: (filter: { name: string; dataset: string }) => void }) {
  return (
    <form
      class="filters"
      aria-label={t("filters")}
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        const text = (name: string) => String(given.get(name) ?? "").trim();
        choose({ name: text("name"), dataset: text("dataset") });
      }}
    >
      <label>{t("name")}<input type="text" name="name" /></label>
      <label>{t("dataset")}<input type="text" name="dataset" /></label>
      <button type="submit">{t("apply")}</button>
    </form>
  );
}

function columns(
  chosen: readonly EvaluationRun[],
  toggle: (run: EvaluationRun, on: boolean) => void,
  ask: (run: EvaluationRun) => void,
): Column<EvaluationRun>[] {
  const isChosen = (run: EvaluationRun) => chosen.some((other) => other.evaluation_id === run.evaluation_id);
  const named = (run: EvaluationRun) => ({ name: run.name, id: run.evaluation_id });
  return [
    {
      title: t("compare"),
      show: (run) => (
        <input
          type="checkbox"
          aria-label={t("compare_named", named(run))}
          checked={isChosen(run)}
          disabled={!isChosen(run) && chosen.length >= MOST}
          onChange={(event) => toggle(run, event.currentTarget.checked)}
        />
      ),
    },
    { title: t("when"), show: (run) => <Time at={run.create_time} /> },
    { title: t("name"), show: (run) => run.name },
    { title: t("dataset"), show: (run) => run.dataset },
    { title: t("release"), show: (run) => run.release },
    { title: t("settings"), show: (run) => <code title={run.fingerprint}>{run.fingerprint.slice(0, 8)}</code> },
    { title: t("metrics"), show: (run) => number(flattened(run.metrics).size), number: true },
    {
      title: t("actions"),
      show: (run) => (
        <button type="button" {...needs("admin")} aria-label={t("delete_named", named(run))} onClick={() => ask(run)}>{t("delete")}</button>
      ),
    },
  ];
}

function Comparison({ runs, clear }: { runs: EvaluationRun[]; clear: () => void }) {
  const rows = compared(runs.map((run) => run.metrics));
  const value = (given: number | null | undefined) =>
    given === null || given === undefined ? "–" : number(given, { maximumFractionDigits: 4 });
  const difference = (given: number | null | undefined) =>
    given === null || given === undefined
      ? ""
      : number(given, { maximumFractionDigits: 4, signDisplay: "exceptZero" });
  const runColumns: Column<Compared>[] = runs.map((run, place) => ({
    title: `${place + 1}. ${run.name}`,
    number: true,
    show: (row) => (
      <>
        {value(row.values[place])}
        {place > 0 && <div class="small">{difference(row.differences[place - 1])}</div>}
      </>
    ),
  }));
  return (
    <section class="panel">
      <h2>{t("comparison")}</h2>
      <p class="small">{t("comparison_about")}</p>
      {new Set(runs.map((run) => run.fingerprint)).size > 1 && <p class="note">{t("measured_otherwise")}</p>}
      <ol>
        {runs.map((run) => (
          <li key={run.evaluation_id}>
            {run.name} · {run.dataset} · {run.release} · <Time at={run.create_time} />
            <details>
              <summary>{t("settings_of", { name: run.name })}</summary>
              <pre>{JSON.stringify(run.settings, null, 2)}</pre>
            </details>
          </li>
        ))}
      </ol>
      <Table<Compared>
        caption={t("comparison")}
        columns={[{ title: t("metric"), show: (row) => <code>{row.name}</code> }, ...runColumns]}
        load={pagesOf(rows)}
        inputs={[runs.map((run) => run.evaluation_id)]}
        row={(row) => row.name}
        empty={t("no_metrics")}
      />
      <div class="buttons"><button type="button" onClick={clear}>{t("clear")}</button></div>
    </section>
  );
}
