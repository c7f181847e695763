// What is forgotten automatically, what goes next, and what was erased on request.
import { useState } from "preact/hooks";

import { get } from "../api";
import { statusText } from "../components/job-details";
import { Empty, Loading, Problem } from "../components/states";
import "../components/stack.css";
import { Table } from "../components/table";
import { Time } from "../components/time";
import { Preview } from "../forgetting/preview";
import { Receipts } from "../forgetting/receipts";
import type { Forgetting as Answer, Policy, Run } from "../forgetting/shapes";
import { useLoad } from "../load";
import { pagesOf } from "../pages-of";
import { href } from "../routing";
import { number } from "../text";
import { t } from "../text/forgetting";

export default function Forgetting() {
  const [round, setRound] = useState(0);
  const { data, problem, loading, reload } = useLoad(
    (signal) => get<Answer>("/v1/forgetting", {}, signal),
    [round],
  );
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return loading ? <Loading /> : null;
  return (
    <div class="stack">
      <p>{t("about")}</p>
      <Preview ordered={() => setRound((last) => last + 1)} />
      <Runs runs={data.last_runs} reload={reload} />
      <Policies answer={data} />
      <Receipts />
    </div>
  );
}

function Runs({ runs, reload }: { runs: Run[]; reload: () => void }) {
  const removed = (run: Run) =>
    Object.entries(run.result ?? {})
      .filter(([step, count]) => step !== "total" && count > 0)
      .map(([step, count]) => `${step} ${number(count)}`)
      .join(", ");
  return (
    <section>
      <h2>{t("runs")}</h2>
      {runs.length === 0 ? <Empty>{t("no_runs")}</Empty> : (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("runs")}>
          <table>
            <caption class="hidden">{t("runs")}</caption>
            <thead>
              <tr>
                <th scope="col">{t("when")}</th>
                <th scope="col">{t("status")}</th>
                <th scope="col">{t("removed")}</th>
                <th scope="col">{t("job")}</th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <tr key={run.job_id}>
                  <td data-title={t("when")}><Time at={run.finished_at ?? run.started_at ?? run.due_at} /></td>
                  <td data-title={t("status")}>{statusText(run.status)} {run.error_code && <code>{run.error_code}</code>}</td>
                  <td data-title={t("removed")}>{run.result && (removed(run) || t("nothing_removed"))}</td>
                  <td data-title={t("job")}><a href={href("jobs", [run.job_id])}>{t("see_job")}</a></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="buttons"><button type="button" onClick={reload}>{t("reload")}</button></div>
    </section>
  );
}

function Policies({ answer }: { answer: Answer }) {
  const agents = Object.entries(answer.agents);
  const value = (given: string | number | boolean | undefined) =>
    typeof given === "boolean" ? t(given ? "on" : "off") : typeof given === "number" ? number(given) : given;
  return (
    <section class="panel">
      <h2>{t("policy")}</h2>
      <p>{t("purge", { days: answer.purge_days })}</p>
      <dl class="facts">
        {Object.entries(answer.policy).map(([name, given]) => [
          <dt key={name}><code>{name}</code></dt>,
          <dd key={`${name}=`}>{value(given)}</dd>,
        ])}
      </dl>
      {agents.length > 0 && (
        <>
          <h3>{t("policy_for")}</h3>
          <Table<[string, Policy]>
            caption={t("policy_for")}
            columns={[
              { title: t("agent"), show: ([agent]) => agent },
              ...Object.keys(answer.policy).map((name) => ({
                title: name,
                show: ([, policy]: [string, Policy]) => value(policy[name]),
              })),
            ]}
            load={pagesOf(agents)}
            again={answer}
            row={([agent]) => agent}
            empty={t("nothing")}
          />
        </>
      )}
    </section>
  );
}
