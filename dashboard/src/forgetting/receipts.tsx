// Receipts of erasures: how much was deleted, when and by whom; never what it said.
import { useState } from "preact/hooks";

import { get, type Page } from "../api";
import { Table } from "../components/table";
import { Time } from "../components/time";
import { number } from "../text";
import { t } from "../text/forgetting";

const KINDS = ["user", "session", "project", "agent"] as const;

interface Receipt {
  erasure_id: string;
  kind: string;
  subject_hash: string;
  deleted: Record<string, number>;
  actor: string | null;
  create_time: string;
}

export function Receipts() {
  const [filter, setFilter] = useState({ kind: "", id: "" });
  return (
    <section>
      <h2>{t("receipts")}</h2>
      <p>{t("receipts_about")}</p>
      <form
        class="filters"
        aria-label={t("receipts")}
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          setFilter({ kind: String(given.get("kind") ?? ""), id: String(given.get("id") ?? "").trim() });
        }}
      >
        <label>
          {t("kind")}
          <select name="kind">
            <option value="">{t("all")}</option>
            {KINDS.map((kind) => <option key={kind} value={kind}>{t(`kind_${kind}`)}</option>)}
          </select>
        </label>
        <label>{t("id")}<input type="text" name="id" spellcheck={false} /></label>
        <button type="submit">{t("find")}</button>
      </form>
      <Table<Receipt>
        caption={t("receipts")}
        columns={[
          { title: t("when"), show: (receipt) => <Time at={receipt.create_time} /> },
          { title: t("receipt"), show: (receipt) => <code>{receipt.erasure_id}</code> },
          { title: t("kind"), show: (receipt) => receipt.kind },
          {
            title: t("rows"),
            show: (receipt) =>
              Object.entries(receipt.deleted).map(([name, count]) => `${name} ${number(count)}`).join(", "),
          },
          { title: t("by"), show: (receipt) => <code>{receipt.actor}</code> },
          { title: t("hash"), show: (receipt) => <code>{receipt.subject_hash}</code> },
        ]}
        load={(cursor, limit, signal) => get<Page<Receipt>>("/v1/erasures", { ...filter, cursor, limit }, signal)}
        inputs={[filter]}
        row={(receipt) => receipt.erasure_id}
        empty={filter.kind || filter.id ? t("no_receipts_match") : t("no_receipts")}
      />
    </section>
  );
}
