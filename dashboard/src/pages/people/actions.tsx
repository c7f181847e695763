import { useState } from "preact/hooks";

import { needs } from "../../access";
import { path, send, withQuery } from "../../api";
import { Dialog } from "../../components/dialog";
import { validityOf } from "../../components/time";
import { go, href } from "../../routing";
import type { Memory } from "../../shapes";
import { t } from "../../text/people";
import { MemoryEditor, ReasonField } from "./memory-editor";

type Action = "edit" | "supersede" | "archive" | "activate" | "delete";

export function MemoryActions(
  { memory, changed, deleted }: { memory: Memory; changed: () => void; deleted: () => void },
) {
  const [doing, setDoing] = useState<Action | null>(null);
  const close = () => setDoing(null);
  const actions: Action[] =
    memory.status === "active" ? ["edit", "supersede", "archive", "delete"]
    : memory.status === "archived" ? ["activate", "delete"]
    : ["delete"];
  const names = { edit: t("edit"), supersede: t("supersede"), archive: t("archive"), activate: t("activate"), delete: t("delete_memory") };
  return (
    <>
      <div class="buttons">
        {actions.map((action) => (
          <button key={action} type="button" class={action === "delete" ? "danger" : ""} {...needs("write")} onClick={() => setDoing(action)}>
            {names[action]}
          </button>
        ))}
      </div>
      {doing === "edit" && <MemoryEditor memory={memory} saved={changed} close={close} />}
      {doing === "supersede" && <Supersede memory={memory} close={close} />}
      {(doing === "archive" || doing === "activate") && (
        <StatusChange memory={memory} to={doing === "archive" ? "archived" : "active"} changed={changed} close={close} />
      )}
      {doing === "delete" && <Deletion memory={memory} deleted={deleted} close={close} />}
    </>
  );
}

function Supersede({ memory, close }: { memory: Memory; close: () => void }) {
  const [content, setContent] = useState(memory.content);
  const [since, setSince] = useState("");
  const [reason, setReason] = useState("");
  const act = async () => {
    const body = {
      content,
      ...(since ? { valid_from: validityOf(since) } : {}),
      ...(reason ? { reason } : {}),
    };
    const outcome = await send<{ memory_id: string }>(
      "POST", path("/v1/memories", memory.memory_id, "supersede"), body,
    );
    go(href("people", [memory.user_id ?? "-", outcome.memory_id]));
  };
  return (
    <Dialog title={t("supersede")} action={t("supersede")} act={act} close={close}>
      <label>
        {t("newer_content")}
        <textarea rows={4} required value={content} onInput={(event) => setContent(event.currentTarget.value)} />
      </label>
      <label>
        {t("since")}
        <input type="datetime-local" value={since} onInput={(event) => setSince(event.currentTarget.value)} />
      </label>
      <ReasonField reason={reason} change={setReason} />
    </Dialog>
  );
}

function StatusChange(
  { memory, to, changed, close }: {
    memory: Memory;
    to: "active" | "archived";
    changed: () => void;
    close: () => void;
  },
) {
  const [reason, setReason] = useState("");
  const name = to === "archived" ? t("archive") : t("activate");
  const act = async () => {
    const body = { status: to, ...(reason ? { reason } : {}) };
    await send("PATCH", path("/v1/memories", memory.memory_id), body, { "If-Match": `"${memory.version}"` });
    changed();
  };
  return (
    <Dialog title={name} action={name} act={act} close={close}>
      <p>{to === "archived" ? t("archive_text") : t("activate_text")}</p>
      <ReasonField reason={reason} change={setReason} />
    </Dialog>
  );
}

function Deletion({ memory, deleted, close }: { memory: Memory; deleted: () => void; close: () => void }) {
  const [hard, setHard] = useState(false);
  const act = async () => {
    await send("DELETE", withQuery(path("/v1/memories", memory.memory_id), { hard: hard || null }));
    deleted();
  };
  return (
    <Dialog title={t("delete_memory")} action={t("delete_memory")} act={act} close={close} danger>
      <p>{t("delete_text")}</p>
      <div class="said note">{memory.content}</div>
      <label>
        <input type="checkbox" checked={hard} onChange={(event) => setHard(event.currentTarget.checked)} /> {t("hard")}
      </label>
    </Dialog>
  );
}
