// What happened to one memory, in order: what it replaced, its changes, and what replaced it.
import { useState } from "preact/hooks";

import { needs } from "../../access";
import { get, type Page, path, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { JobLink } from "../../components/job-details";
import { memoryAddress, MemoryLink, shortened } from "../../components/memory";
import { Paged } from "../../components/paged";
import { Problem } from "../../components/states";
import { Time, Validity } from "../../components/time";
import { useLoad } from "../../load";
import type { Memory } from "../../shapes";
import { label } from "../../text/labels";
import { t } from "../../text/people";

interface Entry {
  history_id: string;
  event: string;
  reason: string | null;
  actor: string | null;
  job_id: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  version: number;
  create_time: string;
}

const OF_EVERY_CHANGE = new Set(["version", "update_time"]);
const VALIDITY = new Set(["valid_from", "valid_to"]);
const TIMES = new Set(["create_time", "said_at", "expires_at", "reviewed_at", "deleted_at", "source_deleted_at"]);
const SHOWN_PREDECESSORS = 20;

export function Timeline({ memory, changed }: { memory: Memory; changed: () => void }) {
  const address = path("/v1/memories", memory.memory_id);
  const [restoring, setRestoring] = useState<Entry | null>(null);
  const [reason, setReason] = useState("");
  return (
    <>
      <Predecessors memory={memory} />
      <Paged<Entry>
        inputs={[memory.memory_id, memory.version]}
        load={(cursor, limit, signal) => get<Page<Entry>>(`${address}/history`, { cursor, limit }, signal)}
        empty={t("no_history")}
      >
        {(entries) => (
          <ol class="timeline">
            {entries.map((entry) => (
              <li key={entry.history_id}>
                <EntryText entry={entry} />
                {entry.after !== null && entry.version < memory.version && (
                  <button type="button" {...needs("write")} onClick={() => setRestoring(entry)}>{t("restore")}</button>
                )}
              </li>
            ))}
          </ol>
        )}
      </Paged>
      {memory.superseded_by && <p>{t("replaced_by")}: <MemoryLink id={memory.superseded_by} /></p>}
      {restoring && (
        <Dialog
          title={t("restore")}
          action={t("restore")}
          act={async () => {
            const body = { history_id: restoring.history_id, ...(reason ? { reason } : {}) };
            await send("POST", `${address}/restore`, body, { "If-Match": `"${memory.version}"` });
            changed();
          }}
          close={() => setRestoring(null)}
        >
          <p>{t("restore_text")}</p>
          <div class="said note">{String(restoring.after?.["content"] ?? "")}</div>
          <label>
            {t("reason")}
            <input type="text" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        </Dialog>
      )}
    </>
  );
}

function Predecessors({ memory }: { memory: Memory }) {
  const asked = {
    user_id: memory.user_id,
    status: "superseded",
    filters: JSON.stringify({ superseded_by: memory.memory_id }),
    limit: SHOWN_PREDECESSORS,
  };
  const { data, problem, reload } = useLoad(
    (signal) => get<Page<Memory>>("/v1/memories", asked, signal),
    [memory.memory_id, memory.version],
  );
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (!data || data.items.length === 0) return null;
  return (
    <>
      <p>{t("replaced_this")}:</p>
      <ul>
        {data.items.map((old) => (
          <li key={old.memory_id}>
            <a class="said" href={memoryAddress(old)}>{shortened(old.content)}</a>{" "}
            <span class="small">{old.valid_to ? <Validity at={old.valid_to} /> : <Time at={old.update_time} />}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function EntryText({ entry }: { entry: Entry }) {
  const by = entry.job_id ? <>{t("job")} <JobLink id={entry.job_id} /></> : entry.actor ? `${t("key")} ${entry.actor}` : null;
  return (
    <>
      <p>
        <strong>{entry.event === "SUPERSEDE" ? t("was_replaced") : label(entry.event)}</strong> · <Time at={entry.create_time} />
        {entry.reason && <> · {entry.reason}</>}
      </p>
      {by && <p class="small">{by}</p>}
      <Differences entry={entry} />
    </>
  );
}

function Differences({ entry: { before, after } }: { entry: Entry }) {
  if (before === null && after === null) return <p class="muted">{t("private")}</p>;
  if (before === null || after === null) {
    return <div class="said">{String((before ?? after)?.["content"] ?? "")}</div>;
  }
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !OF_EVERY_CHANGE.has(name) && written(before[name]) !== written(after[name]),
  );
  return (
    <>
      {names.map((name) => (
        <p key={name}>
          {label(name)}: {written(before[name]) && <del>{shown(name, before[name])}</del>} <ins>{shown(name, after[name])}</ins>
        </p>
      ))}
    </>
  );
}

function shown(name: string, value: unknown) {
  const text = written(value);
  if (text && VALIDITY.has(name)) return <Validity at={text} />;
  return text && TIMES.has(name) ? <Time at={text} /> : text;
}

function written(value: unknown): string {
  return value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
