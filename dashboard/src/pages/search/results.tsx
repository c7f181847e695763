import { useState } from "preact/hooks";

import { type Page, ProblemError, send } from "../../api";
import { Paged } from "../../components/paged";
import { t } from "../../text/search";
import { type Asked, bodyOf, type Mode } from "./asked";
import { type Hit, MemoryHit, type MemoryHitRead, MessageHit, type MessageHitRead } from "./hits";

interface Answer {
  results?: MemoryHitRead[];
  items?: MessageHitRead[];
  next_cursor: string | null;
  embedding_models: string[];
  waiting: number;
  degraded: boolean;
  reranker?: string | null;
  searched?: number;
  left_out?: boolean;
}

const AT_ONCE = 10;

/** What one mode finds, a page at a time. `ranks` are the first ids of each mode. */
export function Results(
  { asked, mode, round, ranks, found }: {
    asked: Asked;
    mode: Mode;
    round: number;
    ranks: Partial<Record<Mode, readonly string[]>>;
    found: (ids: readonly string[]) => void;
  },
) {
  const [about, setAbout] = useState<Answer | null>(null);
  const [first, setFirst] = useState(true);
  const load = async (cursor: string | null, limit: number): Promise<Page<Hit>> => {
    const answer = await send<Answer>("POST", `/v1/${asked.what}/search`, body(asked, mode, cursor, limit));
    const hits: Hit[] = answer.results?.map((memory) => ({ kind: "memory", id: memory.memory_id, memory }) as const) ??
      answer.items?.map((message) => ({ kind: "message", id: message.message_id, message }) as const) ?? [];
    setAbout(answer);
    setFirst(cursor === null);
    if (cursor === null) found(hits.map((hit) => hit.id));
    return { items: hits, next_cursor: answer.next_cursor };
  };
  return (
    <section class="panel">
      <h2>{t("results_of", { mode: t(mode) })}</h2>
      <Paged<Hit> load={load} limit={AT_ONCE} inputs={[asked, mode, round]} empty={t("none_found")}>
        {(hits) => (
          <ol class="entries">
            {hits.map((hit, place) => (
              <li key={hit.id}>
                {first && <p class="small">{t("rank", { rank: place + 1 })}</p>}
                {hit.kind === "memory"
                  ? <MemoryHit hit={hit.memory} explained={first && place === 0} />
                  : <MessageHit hit={hit.message} explained={first && place === 0} />}
                <Elsewhere id={hit.id} mode={mode} ranks={ranks} />
              </li>
            ))}
          </ol>
        )}
      </Paged>
      {about && <About answer={about} asked={asked} mode={mode} />}
    </section>
  );
}

function body(asked: Asked, mode: Mode, cursor: string | null, limit: number): Record<string, unknown> {
  try {
    return bodyOf(asked, mode, cursor, limit);
  } catch (error) {
    // An address that somebody wrote may hold a filter or a time that is none.
    throw new ProblemError(0, { code: "invalid_filter", title: t("bad_filter"), detail: String(error) });
  }
}

/** Where the other modes have this hit. */
function Elsewhere({ id, mode, ranks }: { id: string; mode: Mode; ranks: Partial<Record<Mode, readonly string[]>> }) {
  const others = (Object.entries(ranks) as [Mode, readonly string[]][]).filter(([other]) => other !== mode);
  if (others.length === 0) return null;
  const places = others.map(([other, ids]) => {
    const place = ids.indexOf(id);
    return place < 0 ? t("not_in", { mode: t(other) }) : t("rank_in", { mode: t(other), rank: place + 1 });
  });
  return <p class="small">{t("elsewhere")} {places.join("; ")}</p>;
}

/** How it was searched, and what was left out. */
function About({ answer, asked, mode }: { answer: Answer; asked: Asked; mode: Mode }) {
  const lines = [
    answer.embedding_models.length > 0 && t("embedded", { names: answer.embedding_models.join(", ") }),
    answer.reranker && t("reranked", { name: answer.reranker }),
    answer.degraded && t("degraded"),
    answer.searched !== undefined && t(answer.left_out ? "searched_not_all" : "searched", { count: answer.searched }),
    answer.waiting > 0 && t(asked.what === "messages" ? "waiting_messages" : "waiting_memories", { count: answer.waiting }),
    asked.threshold && t("below", { threshold: asked.threshold }),
    mode === "lexical" && t("only_words"),
  ];
  return (
    <ul class="small">
      {lines.filter(Boolean).map((line) => <li key={String(line)}>{line}</li>)}
    </ul>
  );
}
