// What is known of one entity itself: names, owner, and the memories that speak of it.
import { get, path as address, type Page, ProblemError } from "../api";
import { memoryAddress, shortened } from "../components/memory";
import { Loading, Problem } from "../components/states";
import { Table } from "../components/table";
import { Time } from "../components/time";
import { useLoad } from "../load";
import { href } from "../routing";
import { number } from "../text";
import { t } from "../text/graph";
import { label } from "../text/labels";
import type { Entity } from "./shapes";

/** A memory is asked for one by one, so a page of them is short. */
const MEMORIES = 10;

interface Memory {
  memory_id: string;
  user_id: string | null;
  content: string;
  status: string;
  create_time: string;
}

export function EntityDetails({ id, round }: { id: string; round: number }) {
  const { data, problem, reload } = useLoad(
    (signal) => get<Entity & { mentions: number }>(address("/v1/graph/entities", id), {}, signal),
    [id, round],
  );
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return <Loading />;
  return (
    <>
      <dl class="facts">
        <dt>{t("entity")}</dt><dd>{data.name}</dd>
        <dt>{t("type")}</dt><dd>{data.entity_type}</dd>
        <dt>{t("aliases")}</dt><dd>{data.aliases.join(" · ") || t("none")}</dd>
        <dt>{t("owner")}</dt><dd>{data.user_id ?? data.project_id ?? data.agent_id}</dd>
        <dt>{t("mentions")}</dt><dd>{number(data.mentions)}</dd>
      </dl>
      {data.merged_into && (
        <p>{t("merged_into")} <a href={href("graph", [data.merged_into])}>{data.merged_into}</a></p>
      )}
      <h3>{t("memories")}</h3>
      <Table<Memory>
        caption={t("memories")}
        columns={[
          { title: t("memory"), show: (memory) => <a class="said" href={memoryAddress(memory)}>{shortened(memory.content)}</a> },
          { title: t("status"), show: (memory) => label(memory.status) },
          { title: t("when"), show: (memory) => <Time at={memory.create_time} /> },
        ]}
        load={(cursor, _limit, signal) => memoriesOf(id, cursor, signal)}
        inputs={[id]}
        again={round}
        row={(memory) => memory.memory_id}
        empty={t("no_memories")}
      />
    </>
  );
}

/** A page of the memories of an entity; one that was deleted meanwhile is left out. */
export async function memoriesOf(id: string, cursor: string | null, signal?: AbortSignal): Promise<Page<Memory>> {
  const ids = await get<Page<string>>(
    `${address("/v1/graph/entities", id)}/memories`,
    { cursor, limit: MEMORIES },
    signal,
  );
  const memories = await Promise.all(
    ids.items.map((memory) => get<Memory>(address("/v1/memories", memory), {}, signal).catch(missing)),
  );
  return { items: memories.filter((memory) => memory !== null), next_cursor: ids.next_cursor };
}

function missing(error: unknown): null {
  if (error instanceof ProblemError && error.status === 404) return null;
  throw error;
}
