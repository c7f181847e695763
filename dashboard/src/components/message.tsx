// What was said, as text: nothing of it is ever taken for markup.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { get, type Page, path } from "../api";
import { useLoad } from "../load";
import { href } from "../routing";
import type { Message } from "../shapes";
import { label } from "../text/labels";
import { t } from "../text/message";
import "../lists.css";
import { Loading, Problem } from "./states";
import { Time } from "./time";

const SHORT = 1500;
const AROUND = 2;

/** A text of any length: its beginning first, all of it on a button. */
export function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > SHORT && !whole;
  return (
    <>
      <div class="said">{cut ? `${text.slice(0, SHORT)} …` : text}</div>
      {cut && (
        <button type="button" onClick={() => setWhole(true)}>{t("whole", { count: text.length })}</button>
      )}
    </>
  );
}

/** One message with its calls and results; `children` stand under it. */
export function MessageItem(
  { message, marked = false, children }: { message: Message; marked?: boolean; children?: ComponentChildren },
) {
  return (
    <li class={`message role-${message.role}${marked ? " marked" : ""}`} aria-current={marked ? "true" : undefined}>
      <p class="small">
        <strong>{label(message.role)}</strong>
        {message.name && <> {message.name}</>} · {message.sequence_no} · <Time at={message.create_time} />
      </p>
      {message.tool_call_id && <p class="small">{t("result_of", { id: message.tool_call_id })}</p>}
      {message.content ? <LongText text={message.content} /> : !message.tool_calls && !message.content_parts && (
        <p class="muted">{t("empty_text")}</p>
      )}
      {message.content_parts?.map((part, place) => <PartOf key={place} part={part} />)}
      {message.tool_calls?.map((call, place) => <Call key={place} call={call} />)}
      {children}
    </li>
  );
}

function PartOf({ part }: { part: Record<string, unknown> }) {
  if (typeof part["text"] === "string") return <LongText text={part["text"]} />;
  return <p class="muted">{t("part", { type: String(part["type"]) })}</p>;
}

/** A call of a tool: its name, and its arguments below. */
export function Call({ call, open = false }: { call: Record<string, unknown>; open?: boolean }) {
  const inner = (typeof call["function"] === "object" && call["function"] !== null ? call["function"] : call) as
    Record<string, unknown>;
  const given = inner["arguments"] ?? inner["args"] ?? inner["input"];
  return (
    <details open={open}>
      <summary>{t("call", { name: String(inner["name"] ?? call["id"]) })}</summary>
      <pre>{typeof given === "string" ? given : JSON.stringify(given ?? call, null, 2)}</pre>
    </details>
  );
}

/** A message that supports something, found by its id alone, and on a button what was said around it. */
export function EvidenceMessage({ id }: { id: string }) {
  const { data, problem, reload } = useLoad((signal) => get<Message>(path("/v1/messages", id), {}, signal), [id]);
  const [open, setOpen] = useState(false);
  if (problem?.code === "message_not_found") return <p class="muted">{t("gone")} <code>{id}</code></p>;
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!data) return <Loading />;
  return (
    <div class="evidence">
      {open ? <Around message={data} /> : <ol class="messages"><MessageItem message={data} marked /></ol>}
      <div class="buttons">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? t("hide") : t("around")}</button>
        <a href={href("conversation", [data.session_id], { message: data.message_id })}>{t("in_conversation")}</a>
      </div>
    </div>
  );
}

function Around({ message }: { message: Message }) {
  const { data, problem, reload } = useLoad((signal) => around(message, AROUND, signal), [message.message_id]);
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!data) return <Loading />;
  return (
    <ol class="messages">
      {data.map((said) => (
        <MessageItem key={said.message_id} message={said} marked={said.message_id === message.message_id} />
      ))}
    </ol>
  );
}

async function around(message: Message, count: number, signal: AbortSignal): Promise<Message[]> {
  const address = path("/v1/sessions", message.session_id, "messages");
  const [before, after] = await Promise.all([
    get<Page<Message>>(address, { before: message.message_id, order: "desc", limit: count }, signal),
    get<Page<Message>>(address, { since: message.create_time, limit: count + 1 }, signal),
  ]);
  const later = after.items.filter((said) => said.sequence_no > message.sequence_no);
  return [...before.items.reverse(), message, ...later];
}
