// Who is linked to whom: one entity and what is around it, through time, drawn and as tables.
import { useState } from "preact/hooks";

import { needs } from "../access";
import { get, path as address, type Page } from "../api";
import type { PageProps } from "../app";
import { Dialog } from "../components/dialog";
import { Loading, Problem } from "../components/states";
import "../components/stack.css";
import { type Column, Table } from "../components/table";
import { Time, Validity, validityOf } from "../components/time";
import { Changes } from "../graph/changes";
import { Drawing } from "../graph/drawing";
import { EntityDetails } from "../graph/entity";
import { MergeDialog, SplitDialog, toggled } from "../graph/regroup";
import { type Entity, type EntityShort, type Neighbour, type Neighbours, type Relation } from "../graph/shapes";
import { useLoad } from "../load";
import { pagesOf } from "../pages-of";
import { go, href, replace } from "../routing";
import { number } from "../text";
import { t } from "../text/graph";

const DEPTHS = [1, 2, 3] as const;
const LIMITS = [25, 50, 100, 200] as const;

interface View {
  q: string;
  user_id: string;
  depth: string;
  limit: string;
  as_of: string;
  relation: string;
}

export default function Graph({ path, query }: PageProps) {
  const given = (name: keyof View, otherwise = "") => query.get(name) ?? otherwise;
  const view: View = {
    q: given("q"),
    user_id: given("user_id"),
    depth: given("depth", "1"),
    limit: given("limit", "50"),
    as_of: given("as_of"),
    relation: given("relation"),
  };
  const id = path[0];
  const [round, setRound] = useState(0);
  const [notice, setNotice] = useState("");
  const done = (said: string) => {
    setNotice(said);
    setRound((last) => last + 1);
  };
  return (
    <div class="stack">
      <p>{t("about")}</p>
      <p role="status" class="small">{notice}</p>
      <Find view={view} current={id} round={round} />
      {id === undefined
        ? <p class="muted">{t("pick")}</p>
        : <Around key={id} id={id} view={view} round={round} done={done} />}
      <Changes round={round} done={done} />
    </div>
  );
}

function textOf(form: HTMLFormElement, name: string): string {
  return String(new FormData(form).get(name) ?? "").trim();
}

function Find({ view, current, round }: { view: View; current: string | undefined; round: number }) {
  const filtered = view.q !== "" || view.user_id !== "";
  const columns: Column<Entity>[] = [
    {
      title: t("entity"),
      show: (entity) => (
        <a href={href("graph", [entity.entity_id], { ...view })} aria-current={entity.entity_id === current || undefined}>
          {entity.name}
        </a>
      ),
    },
    { title: t("type"), show: (entity) => entity.entity_type },
    { title: t("aliases"), show: (entity) => entity.aliases.join(" · ") },
    { title: t("owner"), show: (entity) => entity.user_id ?? entity.project_id ?? entity.agent_id },
  ];
  return (
    <details class="panel" open={current === undefined}>
      <summary>{t("find")}</summary>
      <form
        key={view.q + view.user_id}
        class="filters"
        aria-label={t("find")}
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          replace(href("graph", current === undefined ? [] : [current], {
            ...view, q: textOf(form, "q"), user_id: textOf(form, "user_id"),
          }));
        }}
      >
        <label>{t("name")}<input type="search" name="q" defaultValue={view.q} maxLength={200} /></label>
        <label>{t("user")}<input type="text" name="user_id" defaultValue={view.user_id} spellcheck={false} /></label>
        <button type="submit">{t("search")}</button>
      </form>
      <Table<Entity>
        caption={t("found")}
        columns={columns}
        load={(cursor, _limit, signal) =>
          get<Page<Entity>>("/v1/graph/entities", { q: view.q, user_id: view.user_id, cursor, limit: 20 }, signal)}
        inputs={[view.q, view.user_id]}
        again={round}
        row={(entity) => entity.entity_id}
        empty={filtered ? t("none_found") : t("none_yet")}
      />
    </details>
  );
}

function Around(
  { id, view, round, done }: { id: string; view: View; round: number; done: (said: string) => void },
) {
  const asOf = instant(view.as_of);
  const { data, problem, loading, reload } = useLoad(
    (signal) =>
      get<Neighbours>("/v1/graph/neighbours", {
        entity_id: id, depth: view.depth, limit: view.limit, as_of: asOf, relation: view.relation,
      }, signal),
    [id, view.depth, view.limit, asOf, view.relation, round],
  );
  const centre = data?.entities.find((entity) => entity.entity_id === id);
  return (
    <section class="panel" aria-busy={loading}>
      <h2>{t("around", { name: centre?.name ?? id })}</h2>
      <Controls id={id} view={view} />
      {problem && <Problem problem={problem} retry={reload} />}
      {data === null ? loading && <Loading /> : (
        <>
          {data.truncated && <p class="note">{t("truncated")}</p>}
          <div class="graph-beside">
            <Drawing around={data} centre={id} choose={(other) => go(href("graph", [other], { ...view }))} />
            <Lists around={data} centre={centre} view={view} done={done} />
          </div>
        </>
      )}
      <h3>{t("details")}</h3>
      <EntityDetails id={id} round={round} />
    </section>
  );
}

/** The moment that the field names; "" for none. */
function instant(field: string): string {
  return Number.isNaN(Date.parse(field)) ? "" : validityOf(field);
}

function Controls({ id, view }: { id: string; view: View }) {
  const change = (chosen: Partial<View>) => replace(href("graph", [id], { ...view, ...chosen }));
  const choices = (values: readonly number[]) => values.map((value) => <option key={value} value={value}>{value}</option>);
  return (
    <form
      class="filters"
      aria-label={t("shown")}
      onSubmit={(event) => {
        event.preventDefault();
        change({ relation: textOf(event.currentTarget, "relation"), as_of: textOf(event.currentTarget, "as_of") });
      }}
    >
      <label>
        {t("depth")}
        <select value={view.depth} onChange={(event) => change({ depth: event.currentTarget.value })}>{choices(DEPTHS)}</select>
      </label>
      <label>
        {t("limit")}
        <select value={view.limit} onChange={(event) => change({ limit: event.currentTarget.value })}>{choices(LIMITS)}</select>
      </label>
      <label title={t("as_of_about")}>
        {t("as_of")}
        <input type="datetime-local" name="as_of" defaultValue={view.as_of} />
      </label>
      <label>
        {t("relation_only")}
        <input type="text" name="relation" defaultValue={view.relation} spellcheck={false} />
      </label>
      <button type="submit">{t("apply")}</button>
    </form>
  );
}

function Lists(
  { around, centre, view, done }: {
    around: Neighbours;
    centre: Neighbour | undefined;
    view: View;
    done: (said: string) => void;
  },
) {
  const [selected, setSelected] = useState<string[]>([]);
  const [asked, setAsked] = useState<"merge" | "split" | null>(null);
  const [history, setHistory] = useState<Relation | null>(null);
  const others = around.entities.filter((entity) => selected.includes(entity.entity_id));
  const select = (id: string, chosen: boolean) => setSelected(toggled(selected, id, chosen));
  const regrouped = (said: string) => {
    setSelected([]);
    done(said);
  };
  return (
    <div>
      <h3>{t("entities")}</h3>
      <Table<Neighbour>
        caption={t("entities")}
        columns={entityColumns(centre, view, selected, select)}
        load={pagesOf(around.entities)}
        inputs={[centre?.entity_id]}
        again={around}
        row={(entity) => entity.entity_id}
        empty={t("none_found")}
      />
      {centre && (
        <div class="buttons">
          <button type="button" {...needs("write", others.length === 0)} onClick={() => setAsked("merge")}>
            {t("merge_into", { name: centre.name })}
          </button>
          <button type="button" {...needs("write")} onClick={() => setAsked("split")}>{t("split")}</button>
        </div>
      )}
      <h3>{t("relations")}</h3>
      <Table<Relation>
        caption={t("relations")}
        columns={relationColumns(setHistory)}
        load={pagesOf(around.relations)}
        inputs={[centre?.entity_id]}
        again={around}
        row={(relation) => relation.relation_id}
        empty={t("no_relations")}
      />
      {centre && asked === "merge" && (
        <MergeDialog entity={centre} others={others} close={() => setAsked(null)} done={regrouped} />
      )}
      {centre && asked === "split" && <SplitDialog entity={centre} close={() => setAsked(null)} done={regrouped} />}
      {history && <History relation={history} close={() => setHistory(null)} />}
    </div>
  );
}

function entityColumns(
  centre: EntityShort | undefined,
  view: View,
  selected: string[],
  select: (id: string, chosen: boolean) => void,
): Column<Neighbour>[] {
  return [
    {
      title: t("merge"),
      show: ({ entity_id, name }) => entity_id !== centre?.entity_id && (
        <input
          type="checkbox"
          aria-label={t("select", { name })}
          checked={selected.includes(entity_id)}
          onChange={(event) => select(entity_id, event.currentTarget.checked)}
        />
      ),
    },
    {
      title: t("entity"),
      show: ({ entity_id, name }) => entity_id === centre?.entity_id
        ? <strong>{name}</strong>
        : <a href={href("graph", [entity_id], { ...view })}>{name}</a>,
    },
    { title: t("type"), show: (entity) => entity.entity_type },
    { title: t("hops"), show: (entity) => number(entity.hops), number: true },
  ];
}

function relationColumns(ask: (relation: Relation) => void): Column<Relation>[] {
  return [
    {
      title: t("relation"),
      show: ({ source, relation, destination }) => <>{source.name} <code>{relation}</code> {destination.name}</>,
    },
    { title: t("valid_from"), show: ({ valid_from }) => valid_from && <Validity at={valid_from} /> },
    { title: t("valid_to"), show: ({ valid_to }) => valid_to && <Validity at={valid_to} /> },
    { title: t("confidence"), show: ({ confidence }) => number(confidence, { maximumFractionDigits: 2 }), number: true },
    {
      title: t("history"),
      show: (one) => (
        <button
          type="button"
          aria-label={t("history_named", { source: one.source.name, relation: one.relation, destination: one.destination.name })}
          onClick={() => ask(one)}
        >
          {t("history")}
        </button>
      ),
    },
  ];
}

function History({ relation, close }: { relation: Relation; close: () => void }) {
  const { source, destination } = relation;
  const title = t("history_of", { source: source.name, relation: relation.relation, destination: destination.name });
  const columns: Column<Relation>[] = [
    { title: t("relation"), show: (one) => <>{one.source.name} <code>{one.relation}</code> {one.destination.name}</> },
    { title: t("valid_from"), show: (one) => one.valid_from && <Validity at={one.valid_from} /> },
    { title: t("valid_to"), show: (one) => one.valid_to && <Validity at={one.valid_to} /> },
    { title: t("known_from"), show: (one) => <Time at={one.known_from} /> },
    { title: t("known_to"), show: (one) => one.known_to && <Time at={one.known_to} /> },
    { title: t("reason"), show: (one) => one.reason },
  ];
  return (
    <Dialog title={title} close={close}>
      <Table<Relation>
        caption={title}
        columns={columns}
        load={(cursor, limit, signal) =>
          get<Page<Relation>>(`${address("/v1/graph/relations", relation.relation_id)}/history`, { cursor, limit }, signal)}
        row={(one) => String(one.version)}
        empty={t("nothing")}
      />
    </Dialog>
  );
}
