import { useEffect, useRef, useState } from "preact/hooks";

import { send, withQuery } from "../api";
import { useLoad } from "../load";
import type { Receipt } from "../shapes";
import { number, texts } from "../text";
import { label } from "../text/labels";
import { Dialog } from "./dialog";
import { Facts } from "./facts";
import { Loading, Problem } from "./states";

const t = texts({
  en: {
    what: "This removes for good, and no one can bring it back:",
    nothing_there: "Nothing is stored; only the entry itself goes.",
    type_it: "Type {id} to confirm",
    differs: "This is not the id.",
    erase: "Erase for good",
    receipt: "Erased. Receipt {id}",
    no_receipt: "Deleted for good",
  },
  zh: {
    what: "以下内容将被永久删除，无法恢复：",
    nothing_there: "没有存储任何内容，只会删除条目本身。",
    type_it: "请输入 {id} 以确认",
    differs: "与编号不一致。",
    erase: "永久删除",
    receipt: "已删除。回执 {id}",
    no_receipt: "已永久删除",
  },
});

/**
 * Asks before everything of a subject is erased: counts first with a dry run, and wants the id typed.
 * `done` gets the receipt.
 */
export function EraseDialog(
  { title, address, id, done, close }: {
    title: string;
    address: string;
    id: string;
    done: (receipt: Receipt) => void;
    close: () => void;
  },
) {
  const count = useLoad(() => send<Receipt>("DELETE", withQuery(address, { dry_run: true })), [address]);
  const [typed, setTyped] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.setCustomValidity(typed === id ? "" : t("differs")), [typed, count.data]);
  const erase = async () => done(await send<Receipt>("DELETE", withQuery(address, { confirm: true })));
  return (
    <Dialog title={title} close={close} danger {...(count.data ? { action: t("erase"), act: erase } : {})}>
      {count.problem && <Problem problem={count.problem} />}
      {count.loading && <Loading />}
      {count.data && (
        <>
          <p>{t("what")}</p>
          <Counts deleted={count.data.deleted} />
          <label>
            {t("type_it", { id })}
            <input
              type="text"
              autocomplete="off"
              spellcheck={false}
              ref={field}
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        </>
      )}
    </Dialog>
  );
}

/** What an erasure removed. */
export function ReceiptPanel({ receipt }: { receipt: Receipt }) {
  return (
    <section class="panel" role="status">
      <h2>{receipt.erasure_id ? t("receipt", { id: receipt.erasure_id }) : t("no_receipt")}</h2>
      <p><code>{receipt.id}</code></p>
      <Counts deleted={receipt.deleted} />
    </section>
  );
}

export function Counts({ deleted }: { deleted: Record<string, number> }) {
  const counted = Object.entries(deleted).filter(([, rows]) => rows > 0);
  if (counted.length === 0) return <p class="muted">{t("nothing_there")}</p>;
  return <Facts items={counted.map(([kind, rows]) => [label(kind), number(rows)] as const)} />;
}
