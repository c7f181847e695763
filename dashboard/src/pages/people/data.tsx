// Everything of one user: as a file, or gone for good.
import { useState } from "preact/hooks";

import { may, needs } from "../../access";
import { download, get, type Page, path } from "../../api";
import { Counts, EraseDialog } from "../../components/erasure";
import { Problem } from "../../components/states";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { resting, useAction } from "../../load";
import type { Receipt } from "../../shapes";
import { t } from "../../text/people";

interface KeptReceipt {
  erasure_id: string;
  deleted: Record<string, number>;
  actor: string | null;
  create_time: string;
}

export function PersonData({ id, erased }: { id: string; erased: (receipt: Receipt) => void }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <ExportPanel id={id} />
      <section class="panel">
        <h2>{t("erase")}</h2>
        <p>{t("erase_text")}</p>
        <button type="button" class="danger" {...needs("admin")} onClick={() => setAsking(true)}>{t("erase_button")}</button>
      </section>
      {may("admin") && <Receipts id={id} />}
      {asking && (
        <EraseDialog
          title={t("erase_title", { id })}
          address={path("/v1/users", id)}
          id={id}
          done={erased}
          close={() => setAsking(false)}
        />
      )}
    </>
  );
}

function ExportPanel({ id }: { id: string }) {
  const [vectors, setVectors] = useState(false);
  const [saved, setSaved] = useState<string | null>(null);
  const name = `${id}.jsonl`;
  const saving = useAction(async () => {
    setSaved(null);
    const address = URL.createObjectURL(await download("/v1/export", { user_id: id, vectors }));
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    URL.revokeObjectURL(address);
    setSaved(name);
  });
  return (
    <section class="panel">
      <h2>{t("export")}</h2>
      <p>{t("export_text")}</p>
      <label>
        <input type="checkbox" checked={vectors} onChange={(event) => setVectors(event.currentTarget.checked)} />{" "}
        {t("export_vectors")}
      </label>
      <div class="buttons">
        <button type="button" {...resting(saving.busy)} onClick={() => saving.run()}>
          {saving.busy ? t("exporting") : t("export_save")}
        </button>
        <span role="status">{saved && t("exported", { name: saved })}</span>
      </div>
      {saving.problem && <Problem problem={saving.problem} />}
    </section>
  );
}

export function Receipts({ id }: { id: string }) {
  return (
    <section class="panel">
      <h2>{t("receipts")}</h2>
      <Table<KeptReceipt>
        caption={t("receipts")}
        inputs={[id]}
        load={(cursor, limit, signal) =>
          get<Page<KeptReceipt>>("/v1/erasures", { kind: "user", id, cursor, limit }, signal)}
        row={(receipt) => receipt.erasure_id}
        empty={t("no_receipts")}
        columns={[
          { title: t("receipt"), show: (receipt) => <code>{receipt.erasure_id}</code> },
          { title: t("when"), show: (receipt) => <Time at={receipt.create_time} /> },
          { title: t("by"), show: (receipt) => receipt.actor && <code>{receipt.actor}</code> },
          {
            title: t("rows"),
            show: (receipt) => <details><summary>{t("rows")}</summary><Counts deleted={receipt.deleted} /></details>,
          },
        ]}
      />
    </section>
  );
}
