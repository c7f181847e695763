// Merges and splits, newest first, each of which can be undone.
import { useState } from "preact/hooks";

import { needs } from "../access";
import { get, path as address, send, type Page } from "../api";
import { Dialog } from "../components/dialog";
import { Tag } from "../components/facts";
import { type Column, Table } from "../components/table";
import { Time } from "../components/time";
import { href } from "../routing";
import { locale } from "../text";
import { t } from "../text/graph";
import { doubtsAbout } from "./doubts";
import { rowsText } from "./regroup";
import type { Change } from "./shapes";

export function Changes({ round, done }: { round: number; done: (said: string) => void }) {
  const [asked, setAsked] = useState<Change | null>(null);
  const [doubtful, setDoubtful] = useState(false);
  const undo = async (change: Change) => {
    await send("POST", `${address("/v1/graph/changes", change.change_id ?? "")}/undo`);
    done(t("is_undone"));
  };
  return (
    <section>
      <h2>{t("changes")}</h2>
      <p class="small">{t("doubt_about")}</p>
      <label class="inline">
        <input type="checkbox" checked={doubtful} onChange={(event) => setDoubtful(event.currentTarget.checked)} />{" "}
        {t("doubtful_only")}
      </label>
      <Table<Change>
        caption={t("changes")}
        columns={columns(setAsked)}
        load={doubtful ? doubtfulOf : listed}
        inputs={[doubtful]}
        again={round}
        row={(change) => change.change_id ?? ""}
        empty={doubtful ? t("none_doubtful") : t("no_changes")}
      />
      {asked && (
        <Dialog title={t("undo_ask")} action={t("undo")} act={() => undo(asked)} close={() => setAsked(null)} danger>
          <p>{t(eventKey(asked))} · {rowsText(asked.rows)}</p>
          <p>{t("undo_about")}</p>
        </Dialog>
      )}
    </section>
  );
}

const listed = (cursor: string | null, limit: number, signal: AbortSignal) =>
  get<Page<Change>>("/v1/graph/changes", { cursor, limit }, signal);

/** The next changes that look wrong: pages are asked for until there is one, ten of them at most. */
async function doubtfulOf(cursor: string | null, limit: number, signal: AbortSignal): Promise<Page<Change>> {
  let page: Page<Change> = { items: [], next_cursor: cursor };
  for (let asked = 0; asked < 10 && page.items.length === 0 && (asked === 0 || page.next_cursor !== null); asked++) {
    const { items, next_cursor } = await listed(page.next_cursor, limit, signal);
    page = { items: items.filter((change) => doubtsAbout(change).length > 0), next_cursor };
  }
  return page;
}

function columns(ask: (change: Change) => void): Column<Change>[] {
  const when = (change: Change) => change.create_time ? new Date(change.create_time).toLocaleString(locale()) : "";
  return [
    { title: t("when"), show: (change) => <Time at={change.create_time} /> },
    { title: t("event"), show: (change) => t(eventKey(change)) },
    {
      title: t("entities"),
      show: (change) => change.entity_ids.map((id) => (
        <div key={id}><a href={href("graph", [id])}>{nameOf(change, id)}<code class="small">{id}</code></a></div>
      )),
    },
    { title: t("doubts"), show: (change) => doubtsAbout(change).map((doubt) => <p key={doubt}><Tag tone="bad">{t("doubtful")}</Tag> {doubt}</p>) },
    { title: t("changed_rows"), show: (change) => rowsText(change.rows) },
    { title: t("reason"), show: (change) => change.reason },
    {
      title: t("actions"),
      show: (change) => change.undone_at !== null
        ? <span>{t("undone")} <Time at={change.undone_at} /></span>
        : (
          <button
            type="button"
            {...needs("write")}
            aria-label={t("undo_named", { event: t(eventKey(change)), when: when(change) })}
            onClick={() => ask(change)}
          >
            {t("undo")}
          </button>
        ),
    },
  ];
}

function nameOf(change: Change, id: string) {
  const name = change.entities?.find((entity) => entity.entity_id === id)?.name;
  return name && <>{name}<br /></>;
}

function eventKey(change: Change) {
  return ({ MERGE: "event_merge", SPLIT: "event_split", UPDATE: "event_update", DELETE: "event_delete" } as const)[
    change.event
  ];
}
