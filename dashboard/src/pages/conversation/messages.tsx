// Messages, a page at a time, earlier and later from wherever one is, with what is remembered from each.
import { useEffect, useState } from "preact/hooks";

import { get, type Page, path } from "../../api";
import { Choice, memoryAddress, MemoryState, shortened } from "../../components/memory";
import { MessageItem } from "../../components/message";
import { Empty, Loading, Problem } from "../../components/states";
import { useLoad } from "../../load";
import { go, href, replace } from "../../routing";
import type { Memory, Message, Session } from "../../shapes";
import { t } from "../../text/conversation";

const AT_ONCE = 30;
const ROLES = ["user", "assistant", "system", "tool"] as const;
const STATES = ["active", "superseded", "archived"] as const;
const REMEMBERED = 50;

/** Where a page of messages begins, as the address has it. */
type Place = { from: "newest" | "oldest" } | { from: "before" | "after" | "message"; id: string };

const NAMED = ["before", "after", "message"] as const;

function placeOf(query: URLSearchParams): Place {
  for (const from of NAMED) {
    const id = query.get(from);
    if (id) return { from, id };
  }
  return { from: query.get("from") === "oldest" ? "oldest" : "newest" };
}

interface Filters {
  role: string;
  query: string;
}

interface Shown {
  messages: Message[];
  earlier: boolean;
  later: boolean;
}

export function Messages({ session, query }: { session: Session; query: URLSearchParams }) {
  const address = path("/v1/sessions", session.session_id, "messages");
  const place = placeOf(query);
  const at = query.get("message");
  const filters: Filters = { role: query.get("role") ?? "", query: query.get("text") ?? "" };
  // What is being typed outlives an answer that comes meanwhile.
  const [text, setText] = useState(filters.query);
  useEffect(() => setText(filters.query), [filters.query]);
  const asked = { role: filters.role, text: filters.query };
  const show = (where: Record<string, string>) => go(href("conversation", [session.session_id], { ...asked, ...where }));
  const { data, problem, loading, reload } = useLoad(
    (signal) => read(address, place, filters, signal),
    [session.session_id, session.last_sequence_no, JSON.stringify([place, filters])],
  );
  const change = (event: Event) => {
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const given = (name: string) => String(form.get(name) ?? "");
    replace(href("conversation", [session.session_id], { role: given("role"), text: given("query") }));
  };
  const [first, last] = [data?.messages[0], data?.messages.at(-1)];
  return (
    <>
      <form class="filters" onSubmit={(event) => event.preventDefault()} onChange={change}>
        <Choice name="role" title={t("role")} value={filters.role} options={ROLES} />
        <label>
          {t("text")}
          <input type="search" name="query" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="button" onClick={() => show({})}>{t("newest")}</button>
        <button type="button" onClick={() => show({ from: "oldest" })}>{t("oldest")}</button>
      </form>
      {problem && <Problem problem={problem} retry={reload} />}
      {!data && !problem && <Loading />}
      {data && (
        <div aria-busy={loading}>
          {data.messages.length === 0 && <Empty>{filters.role || filters.query ? t("no_such_messages") : t("no_messages")}</Empty>}
          {data.earlier && first && (
            <p><button type="button" onClick={() => show({ before: first.message_id })}>{t("earlier")}</button></p>
          )}
          <WithMemories session={session} messages={data.messages} at={at} />
          {data.later && last && (
            <p><button type="button" onClick={() => show({ after: last.message_id })}>{t("later")}</button></p>
          )}
        </div>
      )}
    </>
  );
}

async function read(address: string, place: Place, filters: Filters, signal: AbortSignal): Promise<Shown> {
  const list = (query: Record<string, string | number>) =>
    get<Page<Message>>(address, { ...filters, ...query }, signal);
  const one = (id: string) => get<Message>(`${address}/${encodeURIComponent(id)}`, {}, signal);
  switch (place.from) {
    case "message":
      return around(await one(place.id), list);
    case "oldest": {
      const page = await list({ order: "asc", limit: AT_ONCE });
      return { messages: page.items, earlier: false, later: page.next_cursor !== null };
    }
    case "newest": {
      const page = await list({ order: "desc", limit: AT_ONCE });
      return { messages: page.items.reverse(), earlier: page.next_cursor !== null, later: false };
    }
    case "before": {
      const page = await list({ order: "desc", limit: AT_ONCE, before: place.id });
      return { messages: page.items.reverse(), earlier: page.next_cursor !== null, later: true };
    }
    case "after":
      return { ...(await after(await one(place.id), AT_ONCE, list)), earlier: true };
  }
}

type List = (query: Record<string, string | number>) => Promise<Page<Message>>;

async function after(message: Message, count: number, list: List): Promise<Omit<Shown, "earlier">> {
  // `since` includes the message itself.
  const page = await list({ order: "asc", since: message.create_time, limit: count + 1 });
  const later = page.items.filter((said) => said.sequence_no > message.sequence_no);
  return { messages: later, later: page.next_cursor !== null };
}

async function around(message: Message, list: List): Promise<Shown> {
  const half = AT_ONCE / 2;
  const [before, behind] = await Promise.all([
    list({ order: "desc", before: message.message_id, limit: half }),
    after(message, half, list),
  ]);
  return {
    messages: [...before.items.reverse(), message, ...behind.messages],
    earlier: before.next_cursor !== null,
    later: behind.later,
  };
}

function WithMemories({ session, messages, at }: { session: Session; messages: readonly Message[]; at: string | null }) {
  const ids = messages.map((message) => message.message_id);
  const remembered = useLoad(
    (signal) => memoriesOf(session.session_id, ids, signal),
    [ids.join(), session.last_extracted_seq],
  );
  const memories = remembered.data?.memories ?? [];
  useEffect(() => {
    if (at !== null) document.querySelector(".message.marked")?.scrollIntoView({ block: "center" });
  }, [at, ids.join()]);
  return (
    <>
      {remembered.problem && <Problem problem={remembered.problem} retry={remembered.reload} />}
      {remembered.data?.more && <p class="note">{t("many_from_it")}</p>}
      <ol class="messages">
        {messages.map((message) => (
          <MessageItem key={message.message_id} message={message} marked={message.message_id === at}>
            <FromIt memories={memories.filter((memory) => memory.evidence.includes(message.message_id))} />
          </MessageItem>
        ))}
      </ol>
    </>
  );
}

function FromIt({ memories }: { memories: readonly Memory[] }) {
  if (memories.length === 0) return null;
  return (
    <div class="from-it">
      <p class="small">{t("from_it")}</p>
      <ul>
        {memories.map((memory) => (
          <li key={memory.memory_id}>
            <a class="said" href={memoryAddress(memory)}>{shortened(memory.content)}</a> <MemoryState memory={memory} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Memories whose evidence is among the messages, in whatever state they are now. */
async function memoriesOf(session: string, ids: readonly string[], signal: AbortSignal) {
  if (ids.length === 0) return { memories: [], more: false };
  const filters = JSON.stringify({ OR: ids.map((id) => ({ evidence: { contains: id } })) });
  const pages = await Promise.all(
    STATES.map((status) =>
      get<Page<Memory>>("/v1/memories", { run_id: session, status, filters, limit: REMEMBERED }, signal)
    ),
  );
  return {
    memories: pages.flatMap((page) => page.items),
    more: pages.some((page) => page.next_cursor !== null),
  };
}
