// What saving a text would do, by `POST /v1/memories/validate`, which stores nothing.
import { useState } from "preact/hooks";

import { send } from "../api";
import { resting, useAction } from "../load";
import { t } from "../text/gate";
import { label } from "../text/labels";
import { TYPES } from "./memory";
import { type Reason, Reasons } from "./reasons";
import { Problem } from "./states";

interface Validated {
  valid: boolean;
  results: { event: string; memory_id: string | null; similarity: number | null; reasons: Reason[] }[];
}

export function TryText() {
  const [text, setText] = useState("");
  const [user, setUser] = useState("");
  const [type, setType] = useState("fact");
  const [answer, setAnswer] = useState<Validated | null>(null);
  const checking = useAction(async () => {
    setAnswer(null);
    const body = { messages: text, user_id: user.trim() || undefined, memory_type: type, infer: false };
    setAnswer(await send<Validated>("POST", "/v1/memories/validate", body));
  });
  return (
    <section class="panel">
      <h2>{t("try")}</h2>
      <p>{t("try_about")}</p>
      <form onSubmit={(event) => { event.preventDefault(); checking.run(); }}>
        <label>
          {t("text")}
          <textarea rows={3} required value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <div class="filters">
          <label>
            {t("user")}
            <input type="text" required value={user} onInput={(event) => setUser(event.currentTarget.value)} spellcheck={false} />
          </label>
          <label>
            {t("type")}
            <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
              {TYPES.map((name) => <option key={name} value={name}>{label(name)}</option>)}
            </select>
          </label>
          <button type="submit" {...resting(checking.busy)}>{t("check")}</button>
        </div>
      </form>
      {checking.problem && <Problem problem={checking.problem} />}
      <div role="status">{answer && <Outcome answer={answer} />}</div>
    </section>
  );
}

function Outcome({ answer }: { answer: Validated }) {
  return (
    <>
      <p><strong>{answer.valid ? t("would_store") : t("would_refuse")}</strong></p>
      {answer.results.map((result, place) => (
        <div key={place}>
          <p>
            {t("event")} {label(result.event)}
            {result.memory_id && <> · {t("memory")} <code>{result.memory_id}</code></>}
          </p>
          <Reasons reasons={result.reasons} codes={[]} />
        </div>
      ))}
    </>
  );
}
