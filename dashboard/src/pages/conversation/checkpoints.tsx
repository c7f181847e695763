import { useState } from "preact/hooks";

import { needs } from "../../access";
import { get, type Page, send } from "../../api";
import { Dialog } from "../../components/dialog";
import { Loading, Problem } from "../../components/states";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { resting, useAction, useLoad } from "../../load";
import { go, href } from "../../routing";
import type { Session } from "../../shapes";
import { number } from "../../text";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";

interface Checkpoint {
  checkpoint_id: string;
  namespace: string;
  reason: string;
  message_seq: number;
  size_bytes: number;
  create_time: string;
  archived: boolean;
}

type Doing = { what: "contents" | "restore" | "fork"; id: string };

export function Checkpoints({ address, changed }: { address: string; changed: () => void }) {
  const [archived, setArchived] = useState(false);
  const [round, setRound] = useState(0);
  const [doing, setDoing] = useState<Doing | null>(null);
  const [restored, setRestored] = useState<string | null>(null);
  const creating = useAction(async () => {
    await send("POST", `${address}/checkpoints`, {});
    setRound(round + 1);
  });
  const close = () => setDoing(null);
  return (
    <>
      <div class="buttons">
        <button type="button" {...needs("write")} {...resting(creating.busy)} onClick={() => creating.run()}>{t("create_checkpoint")}</button>
        <label class="inline">
          <input type="checkbox" checked={archived} onChange={(event) => setArchived(event.currentTarget.checked)} />{" "}
          {t("archived")}
        </label>
        <span role="status">{restored && t("restored", { id: restored })}</span>
      </div>
      {creating.problem && <Problem problem={creating.problem} />}
      <Table<Checkpoint>
        caption={t("checkpoints")}
        inputs={[address, archived, round]}
        load={(cursor, limit, signal) =>
          get<Page<Checkpoint>>(`${address}/checkpoints`, { archived: archived || null, cursor, limit }, signal)}
        row={(checkpoint) => checkpoint.checkpoint_id}
        empty={t("no_checkpoints")}
        columns={[
          { title: t("checkpoint"), show: (one) => <code>{one.checkpoint_id}{one.namespace && ` (${one.namespace})`}</code> },
          { title: t("made"), show: (one) => <Time at={one.create_time} /> },
          { title: t("why_made"), show: (one) => label(one.reason) },
          { title: t("at"), number: true, show: (one) => number(one.message_seq) },
          { title: t("size"), number: true, show: (one) => t("bytes", { count: one.size_bytes }) },
          {
            title: t("actions"),
            show: (one) => (
              <div class="buttons">
                {(["contents", "restore", "fork"] as const).map((what) => (
                  <button
                    key={what}
                    type="button"
                    {...(what === "contents" ? {} : needs("write"))}
                    onClick={() => setDoing({ what, id: one.checkpoint_id })}
                  >
                    {t(what)}
                  </button>
                ))}
              </div>
            ),
          },
        ]}
      />
      {doing?.what === "contents" && <Contents address={`${address}/checkpoints/${doing.id}`} close={close} />}
      {doing?.what === "restore" && (
        <Dialog
          title={t("restore")}
          action={t("restore")}
          act={async () => {
            const answer = await send<{ before_restore_id: string }>("POST", `${address}/checkpoints/${doing.id}/restore`);
            setRestored(answer.before_restore_id);
            setRound(round + 1);
            changed();
          }}
          close={close}
        >
          <p>{t("restore_text")}</p>
        </Dialog>
      )}
      {doing?.what === "fork" && <Fork address={address} checkpoint={doing.id} close={close} />}
    </>
  );
}

function Fork({ address, checkpoint, close }: { address: string; checkpoint: string; close: () => void }) {
  const [id, setId] = useState("");
  const act = async () => {
    const body = { checkpoint_id: checkpoint, ...(id.trim() ? { session_id: id.trim() } : {}) };
    const forked = await send<Session>("POST", `${address}/fork`, body);
    go(href("conversation", [forked.session_id]));
  };
  return (
    <Dialog title={t("fork")} action={t("fork")} act={act} close={close}>
      <p>{t("fork_text")}</p>
      <label>
        {t("new_id")}
        <input type="text" value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function Contents({ address, close }: { address: string; close: () => void }) {
  const { data, problem, reload } = useLoad(
    (signal) => get<{ contents: unknown; state: unknown }>(address, {}, signal),
    [address],
  );
  return (
    <Dialog title={t("contents")} close={close}>
      {problem && <Problem problem={problem} retry={reload} />}
      {!data && !problem && <Loading />}
      {data && <pre tabIndex={0}>{JSON.stringify({ contents: data.contents, state: data.state }, null, 2)}</pre>}
    </Dialog>
  );
}
