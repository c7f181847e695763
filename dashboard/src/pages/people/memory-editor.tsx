import { useState } from "preact/hooks";

import { get, path, ProblemError, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { TYPES } from "../../components/memory";
import { localField, validityField, validityOf } from "../../components/time";
import type { Memory } from "../../shapes";
import { label } from "../../text/labels";
import { t } from "../../text/people";

type Draft = Record<"content" | "memory_type" | "confidence" | "valid_from" | "valid_to" | "expires_at", string>;

const TIMES = ["valid_from", "valid_to", "expires_at"] as const;

/** Edits one memory; when it was changed meanwhile, shows what it says now and saves only the reader's own changes. */
export function MemoryEditor({ memory, saved, close }: { memory: Memory; saved: () => void; close: () => void }) {
  const [opened] = useState(memory);
  const [draft, setDraft] = useState(() => draftOf(opened));
  const [newer, setNewer] = useState<Memory | null>(null);
  const [reason, setReason] = useState("");
  const field = (name: keyof Draft) => (event: { currentTarget: { value: string } }) =>
    setDraft({ ...draft, [name]: event.currentTarget.value });
  const address = path("/v1/memories", memory.memory_id);
  const act = async () => {
    const body = { ...changesOf(opened, draft), ...(reason ? { reason } : {}) };
    try {
      await send("PATCH", address, body, { "If-Match": `"${(newer ?? opened).version}"` });
    } catch (error) {
      if (error instanceof ProblemError && error.code === "version_conflict") {
        setNewer(await get<Memory>(address));
      }
      throw error;
    }
    saved();
  };
  return (
    <Dialog title={t("edit")} action={t("save")} act={act} close={newer ? () => { saved(); close(); } : close} told={["version_conflict"]}>
      {newer && <div class="note problem" role="alert"><p>{t("conflict")}</p><div class="said">{newer.content}</div></div>}
      <label>
        {t("content")}
        <textarea rows={4} required value={draft.content} onInput={field("content")} />
      </label>
      <label>
        {t("type")}
        <select value={draft.memory_type} onChange={field("memory_type")}>
          {TYPES.map((type) => <option key={type} value={type}>{label(type)}</option>)}
        </select>
      </label>
      <label>
        {t("confidence")}
        <input type="number" min="0" max="1" step="any" required value={draft.confidence} onInput={field("confidence")} />
      </label>
      {TIMES.map((name) => (
        <label key={name}>
          {t(name)}
          <input type="datetime-local" step="any" value={draft[name]} onInput={field(name)} />
        </label>
      ))}
      <ReasonField reason={reason} change={setReason} />
    </Dialog>
  );
}

function draftOf(memory: Memory): Draft {
  return {
    content: memory.content,
    memory_type: memory.memory_type,
    confidence: String(memory.confidence),
    valid_from: memory.valid_from ? validityField(memory.valid_from) : "",
    valid_to: memory.valid_to ? validityField(memory.valid_to) : "",
    expires_at: memory.expires_at ? localField(memory.expires_at) : "",
  };
}

/** Only what the reader changed, so that nothing else is written over. */
function changesOf(memory: Memory, draft: Draft): Record<string, unknown> {
  const before = draftOf(memory);
  const names = (Object.keys(draft) as (keyof Draft)[]).filter((name) => draft[name] !== before[name]);
  return Object.fromEntries(names.map((name) => [name, sent(name, draft[name])]));
}

function sent(name: keyof Draft, text: string): unknown {
  if (name === "confidence") return Number(text);
  if (name === "content" || name === "memory_type") return text;
  if (text === "") return null;
  return name === "expires_at" ? new Date(text).toISOString() : validityOf(text);
}

export function ReasonField({ reason, change }: { reason: string; change: (reason: string) => void }) {
  return (
    <label>
      {t("reason")}
      <input type="text" value={reason} onInput={(event) => change(event.currentTarget.value)} />
    </label>
  );
}
