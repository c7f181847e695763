// What forgetting would remove now, rule by rule, and the button that does it for real.
import { useState } from "preact/hooks";

import { send } from "../api";
import { Dialog } from "../components/dialog";
import { Empty, Problem } from "../components/states";
import { resting, useAction } from "../load";
import { href } from "../routing";
import { number } from "../text";
import { t } from "../text/forgetting";
import { type Chosen, EVICTIONS, type Preview as Answer, type Shadow, type Step, STEPS, stepText } from "./shapes";

interface Shown {
  chosen: Chosen;
  answer: Answer;
}

export function Preview({ ordered }: { ordered: () => void }) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [asked, setAsked] = useState(false);
  const [job, setJob] = useState("");
  const preview = useAction(async (chosen: Chosen) => {
    setShown(null);
    const body = { dry_run: true, ...limits(chosen), eviction: chosen.eviction || undefined };
    setShown({ chosen, answer: await send<Answer>("POST", "/v1/forgetting/run", body) });
  });
  const run = async (chosen: Chosen) => {
    const answer = await send<Answer>("POST", "/v1/forgetting/run", { dry_run: false, ...limits(chosen) });
    setJob(answer.job_id ?? "");
    setShown(null);
    ordered();
  };
  return (
    <section class="panel">
      <h2>{t("next")}</h2>
      <Choice busy={preview.busy} show={preview.run} />
      {preview.problem && <Problem problem={preview.problem} />}
      <p role="status">
        {job && <>{t("ordered", { id: job })} <a href={href("jobs", [job])}>{t("see_job")}</a></>}
      </p>
      {shown && <Due answer={shown.answer} ask={() => setAsked(true)} />}
      {shown && asked && <Confirm shown={shown} run={() => run(shown.chosen)} close={() => setAsked(false)} />}
    </section>
  );
}

function limits({ steps, agent_id }: Chosen) {
  return { steps: steps.length > 0 ? steps : undefined, agent_id: agent_id || undefined };
}

function totalOf(answer: Answer): number {
  return answer.steps.reduce((total, step) => total + step.due, 0);
}

function Choice({ busy, show }: { busy: boolean; show: (chosen: Chosen) => void }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        show({
          steps: given.getAll("step") as Step[],
          agent_id: String(given.get("agent_id") ?? "").trim(),
          eviction: String(given.get("eviction") ?? ""),
        });
      }}
    >
      <details>
        <summary>{t("steps")}</summary>
        {STEPS.map((step) => (
          <label key={step}>
            <input type="checkbox" name="step" value={step} /> {stepText(step)} <code>{step}</code>
          </label>
        ))}
      </details>
      <div class="filters">
        <label>{t("agent_only")}<input type="text" name="agent_id" spellcheck={false} /></label>
        <label>
          {t("compare")}
          <select name="eviction">
            <option value="">{t("no_compare")}</option>
            {EVICTIONS.map((eviction) => <option key={eviction} value={eviction}>{eviction}</option>)}
          </select>
        </label>
        <button type="submit" {...resting(busy)}>{t("preview")}</button>
        <span class="small">{t("preview_about")}</span>
      </div>
    </form>
  );
}

function Due({ answer, ask }: { answer: Answer; ask: () => void }) {
  const due = answer.steps.filter((step) => step.due > 0);
  return (
    <div>
      {due.length === 0 ? <Empty>{t("nothing_due")}</Empty> : (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label={t("due")}>
            <table>
              <caption class="hidden">{t("due")}</caption>
              <thead>
                <tr>
                  <th scope="col">{t("rule")}</th>
                  <th scope="col" class="number">{t("due")}</th>
                  <th scope="col">{t("sample")}</th>
                </tr>
              </thead>
              <tbody>
                {due.map((step) => (
                  <tr key={step.step}>
                    <td data-title={t("rule")}>{stepText(step.step)} <code>{step.step}</code></td>
                    <td data-title={t("due")} class="number">{number(step.due)}</td>
                    <td data-title={t("sample")}>
                      <ul class="plain">
                        {step.sample.map((one) => <li key={one.id}><code>{one.id}</code> {one.reason}</li>)}
                        {step.due > step.sample.length && <li>{t("more", { count: step.due - step.sample.length })}</li>}
                      </ul>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <div class="buttons">
            <button type="button" class="danger" onClick={ask}>{t("run")}</button>
          </div>
        </>
      )}
      {answer.shadow && <Comparison shadow={answer.shadow} />}
    </div>
  );
}

function Comparison({ shadow }: { shadow: Shadow }) {
  const ids = (values: string[]) => values.length === 0 ? t("none") : values.map((id) => <div key={id}><code>{id}</code></div>);
  return (
    <>
      <h3>{t("shadow", { eviction: shadow.eviction })}</h3>
      {shadow.truncated && <p class="note">{t("incomplete")}</p>}
      <dl class="facts">
        <dt>{t("both")}</dt><dd>{number(shadow.both)}</dd>
        <dt>{t("only_policy")}</dt><dd>{ids(shadow.only_policy)}</dd>
        <dt>{t("only_shadow", { eviction: shadow.eviction })}</dt><dd>{ids(shadow.only_shadow)}</dd>
      </dl>
    </>
  );
}

function Confirm({ shown, run, close }: { shown: Shown; run: () => Promise<void>; close: () => void }) {
  const word = t("word");
  const steps = shown.answer.steps.filter((step) => step.due > 0).map((step) => stepText(step.step));
  return (
    <Dialog title={t("run_ask", { count: totalOf(shown.answer) })} action={t("run")} act={run} close={close} danger>
      <p>{t("run_about", { steps: steps.join(", ") })}</p>
      <label>
        {t("type_word", { word })}
        <input type="text" required pattern={`\\s*${word}\\s*`} autocomplete="off" />
      </label>
    </Dialog>
  );
}
