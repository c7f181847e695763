// Merging and splitting entities, each counted by a dry run before it is done.
import { useState } from "preact/hooks";

import { get, path as address, send, type Page } from "../api";
import { Dialog } from "../components/dialog";
import { Loading, Problem } from "../components/states";
import { resting, useAction, useLoad } from "../load";
import { number } from "../text";
import { t } from "../text/graph";
import { doubtsOf } from "./doubts";
import { memoriesOf } from "./entity";
import type { Change, Entity, EntityShort, Relation } from "./shapes";

/** Relations of an entity that a split offers. */
const OFFERED = 50;

interface Asked {
  entity: EntityShort;
  close: () => void;
  done: (said: string) => void;
}

export function rowsText(rows: Record<string, number>): string {
  return Object.entries(rows).map(([name, count]) => `${name} ${number(count)}`).join(", ");
}

export function MergeDialog({ entity, others, close, done }: Asked & { others: readonly EntityShort[] }) {
  const merge = (dry_run: boolean) =>
    send<Change>("POST", `${address("/v1/graph/entities", entity.entity_id)}/merge`, {
      entity_ids: others.map((other) => other.entity_id),
      dry_run,
    });
  const counted = useLoad(() => merge(true), []);
  const act = async () => {
    await merge(false);
    done(t("merged"));
  };
  return (
    <Dialog title={t("merge_ask", { name: entity.name })} action={t("merge")} act={act} close={close}>
      <p>{t("merge_about", { names: others.map((other) => other.name).join(", ") })}</p>
      {doubtsOf(entity, others).map((doubt) => <p key={doubt} class="note">{doubt}</p>)}
      {counted.problem && <Problem problem={counted.problem} />}
      {counted.loading && <Loading />}
      {counted.data && <p role="status">{t("rows", { rows: rowsText(counted.data.rows) })}</p>}
    </Dialog>
  );
}

interface Offered {
  aliases: string[];
  relations: Relation[];
  memories: { memory_id: string; content: string }[];
}

async function offeredOf(id: string, signal: AbortSignal): Promise<Offered> {
  const [entity, relations, memories] = await Promise.all([
    get<Entity>(address("/v1/graph/entities", id), {}, signal),
    get<Page<Relation>>("/v1/graph/relations", { entity_id: id, limit: OFFERED, include_closed: true }, signal),
    memoriesOf(id, null, signal),
  ]);
  return { aliases: entity.aliases, relations: relations.items, memories: memories.items };
}

export function SplitDialog({ entity, close, done }: Asked) {
  const offered = useLoad((signal) => offeredOf(entity.entity_id, signal), []);
  const [name, setName] = useState("");
  const [taken, setTaken] = useState<Chosen>({ aliases: [], relation_ids: [], memory_ids: [] });
  const [rows, setRows] = useState<Record<string, number> | null>(null);
  const split = (dry_run: boolean) =>
    send<Change>("POST", `${address("/v1/graph/entities", entity.entity_id)}/split`, { name, ...taken, dry_run });
  const counting = useAction(async () => setRows((await split(true)).rows));
  const act = async () => {
    await split(false);
    done(t("is_split"));
  };
  return (
    <Dialog title={t("split_ask", { name: entity.name })} action={t("split")} act={act} close={close}>
      <p>{t("split_about")}</p>
      <label>
        {t("new_name")}
        <input type="text" required maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {offered.problem && <Problem problem={offered.problem} />}
      {offered.loading && <Loading />}
      {offered.data && <Choices offered={offered.data} taken={taken} take={setTaken} />}
      <button type="button" disabled={name.trim() === ""} {...resting(counting.busy)} onClick={() => counting.run()}>
        {t("count")}
      </button>
      {counting.problem && <Problem problem={counting.problem} />}
      <p role="status">{rows && t("rows", { rows: rowsText(rows) })}</p>
    </Dialog>
  );
}

interface Chosen {
  aliases: string[];
  relation_ids: string[];
  memory_ids: string[];
}

function Choices({ offered, taken, take }: { offered: Offered; taken: Chosen; take: (chosen: Chosen) => void }) {
  const choice = (name: keyof Chosen, value: string, label: string) => (
    <label key={value}>
      <input
        type="checkbox"
        checked={taken[name].includes(value)}
        onChange={(event) => take({ ...taken, [name]: toggled(taken[name], value, event.currentTarget.checked) })}
      />{" "}
      {label}
    </label>
  );
  return (
    <fieldset>
      <legend>{t("take")}</legend>
      {offered.aliases.map((alias) => choice("aliases", alias, alias))}
      {offered.relations.map((one) =>
        choice("relation_ids", one.relation_id, `${one.source.name} ${one.relation} ${one.destination.name}`))}
      {offered.memories.map((memory) => choice("memory_ids", memory.memory_id, memory.content))}
    </fieldset>
  );
}

export function toggled(values: readonly string[], value: string, chosen: boolean): string[] {
  return chosen ? [...values, value] : values.filter((other) => other !== value);
}
