import { useState } from "preact/hooks";

import { Choice, SCOPES, TYPES } from "../../components/memory";
import { t } from "../../text/search";
import { type Asked, type Field, MODES } from "./asked";

const ROLES = ["user", "assistant", "system", "tool"] as const;

export function SearchForm({ asked, search }: { asked: Asked; search: (fields: Record<string, string>) => void }) {
  const [what, setWhat] = useState(asked.what);
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    search(Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()])));
  };
  return (
    <form class="panel" onSubmit={submit}>
      <div class="filters">
        <label>
          {t("what")}
          <select name="what" value={what} onChange={(event) => setWhat(event.currentTarget.value as Asked["what"])}>
            <option value="memories">{t("memories")}</option>
            <option value="messages">{t("messages")}</option>
          </select>
        </label>
        <label class="wide">
          {t("query")}
          <input type="search" name="query" required maxLength={2000} defaultValue={asked.query} />
        </label>
        <label>
          {t("mode")}
          <select name="mode" defaultValue={asked.mode}>
            {MODES.map((mode) => <option key={mode} value={mode} selected={asked.mode === mode}>{t(mode)}</option>)}
            <option value="compare" selected={asked.mode === "compare"}>{t("compare")}</option>
          </select>
        </label>
        <button type="submit" class="primary">{t("search")}</button>
      </div>
      <div class="filters">
        <Text asked={asked} name="user_id" title={t("user")} />
        <Text asked={asked} name="agent_id" title={t("agent")} />
        <Text asked={asked} name="session_id" title={what === "messages" ? t("in_session") : t("session")} />
        {what === "memories" && <Text asked={asked} name="project_id" title={t("project")} />}
      </div>
      <details open={further(asked)}>
        <summary>{t("more")}</summary>
        {what === "memories" ? <OfMemories asked={asked} /> : <OfMessages asked={asked} />}
      </details>
    </form>
  );
}

function further(asked: Asked): boolean {
  const fields: Field[] = [
    "run_id", "memory_type", "scope", "role", "threshold", "as_of", "known_at", "since", "until", "filters", "graph",
  ];
  return fields.some((name) => asked[name] !== "");
}

function OfMemories({ asked }: { asked: Asked }) {
  return (
    <div class="filters">
      <Choice name="memory_type" title={t("type")} value={asked.memory_type} options={TYPES} />
      <Choice name="scope" title={t("scope")} value={asked.scope} options={SCOPES} />
      <Text asked={asked} name="run_id" title={t("run")} />
      <Threshold asked={asked} />
      <Moment asked={asked} name="as_of" title={t("as_of")} />
      <Moment asked={asked} name="known_at" title={t("known_at")} />
      <label class="inline"><input type="checkbox" name="graph" value="yes" defaultChecked={asked.graph !== ""} /> {t("graph")}</label>
      <label class="wide">
        {t("filters")}
        <input
          type="text"
          name="filters"
          spellcheck={false}
          placeholder='{"confidence": {"gte": 0.8}}'
          defaultValue={asked.filters}
          onInput={(event) => event.currentTarget.setCustomValidity(isJson(event.currentTarget.value) ? "" : t("bad_filter"))}
        />
      </label>
    </div>
  );
}

function OfMessages({ asked }: { asked: Asked }) {
  return (
    <div class="filters">
      <Choice name="role" title={t("role")} value={asked.role} options={ROLES} />
      <Threshold asked={asked} />
      <Moment asked={asked} name="since" title={t("since")} />
      <Moment asked={asked} name="until" title={t("until")} />
    </div>
  );
}

function Text({ asked, name, title }: { asked: Asked; name: Field; title: string }) {
  return <label>{title}<input type="text" name={name} defaultValue={asked[name]} /></label>;
}

function Moment({ asked, name, title }: { asked: Asked; name: Field; title: string }) {
  return <label>{title}<input type="datetime-local" name={name} defaultValue={asked[name]} /></label>;
}

function Threshold({ asked }: { asked: Asked }) {
  return (
    <label>
      {t("threshold")}
      <input type="number" name="threshold" min="0" max="1" step="any" defaultValue={asked.threshold} />
    </label>
  );
}

function isJson(text: string): boolean {
  try {
    return text.trim() === "" || typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
