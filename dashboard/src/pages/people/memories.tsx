import { get, type Page } from "../../api";
import { Choice, memoryAddress, MemoryState, SCOPES, shortened, TYPES } from "../../components/memory";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { href, replace } from "../../routing";
import type { Memory } from "../../shapes";
import { number } from "../../text";
import { label } from "../../text/labels";
import { t } from "../../text/people";

const STATES = ["active", "archived", "superseded"] as const;

export function MemoryList({ user, query }: { user: string; query: URLSearchParams }) {
  const chosen = (name: string) => query.get(name) ?? "";
  const [type, scope, text] = [chosen("type"), chosen("scope"), chosen("text")];
  const conflicting = chosen("conflict") === "yes";
  const status = conflicting ? "" : chosen("status");
  const asked = {
    user_id: user,
    memory_type: type,
    scope,
    status,
    in_conflict: conflicting ? true : null,
    filters: text ? JSON.stringify({ content: { contains: text } }) : null,
  };
  const change = (event: Event) => {
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const field = (name: string) => String(form.get(name) ?? "");
    replace(href("people", [user], {
      tab: "memories", type: field("type"), status: field("status"), scope: field("scope"), text: field("text"),
      conflict: field("conflict"),
    }));
  };
  return (
    <>
      <form class="filters" onSubmit={(event) => event.preventDefault()} onChange={change}>
        <Choice name="type" title={t("type")} value={type} options={TYPES} />
        <label>
          {t("state")}
          <select name="status" value={status} disabled={conflicting}>
            {STATES.map((state) => <option key={state} value={state === "active" ? "" : state}>{label(state)}</option>)}
          </select>
        </label>
        <Choice name="scope" title={t("scope")} value={scope} options={SCOPES} />
        <label>
          {t("text")}
          <input type="search" name="text" value={text} />
        </label>
        <label class="inline">
          <input type="checkbox" name="conflict" value="yes" checked={conflicting} /> {t("in_conflict")}
        </label>
      </form>
      <p class="small">{t("text_hint")} <a href={href("search", [], { user_id: user })}>{t("search_page")}</a></p>
      <Table<Memory>
        caption={t("memories")}
        inAddress
        inputs={[asked]}
        load={(cursor, limit, signal) => get<Page<Memory>>("/v1/memories", { ...asked, cursor, limit }, signal)}
        row={(memory) => memory.memory_id}
        empty={type || scope || text || status || conflicting ? t("no_such_memories") : t("no_memories")}
        columns={[
          {
            title: t("memory"),
            show: (memory) => (
              <a class="said" href={memoryAddress(memory)}>{shortened(memory.content)}</a>
            ),
          },
          { title: t("type"), show: (memory) => label(memory.memory_type) },
          { title: t("scope"), show: (memory) => label(memory.scope) },
          { title: t("state"), show: (memory) => <MemoryState memory={memory} /> },
          { title: t("confidence"), number: true, show: (memory) => number(memory.confidence, { maximumFractionDigits: 2 }) },
          { title: t("said"), show: (memory) => <Time at={memory.said_at ?? memory.create_time} /> },
        ]}
      />
    </>
  );
}
