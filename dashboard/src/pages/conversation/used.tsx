// What a context has of memory, each with the parts of its score.
import type { ComponentChildren } from "preact";

import type { Page } from "../../api";
import { MemoryLink } from "../../components/memory";
import { Paged } from "../../components/paged";
import { type Explained, figure, ScoreParts, Signals } from "../../components/score";
import { href } from "../../routing";
import { t } from "../../text/conversation";
import { label } from "../../text/labels";

export interface UsedMemory {
  memory_id: string;
  part: string;
  memory_type: string;
  scope: string;
  score: number;
  tokens: number;
  explain: Explained | null;
}

export interface UsedExcerpt {
  message_id: string;
  session_id: string;
  role: string;
  sequence_no: number;
  pieces: number[];
  of_pieces: number;
  score: number;
  tokens: number;
  explain: Record<string, number> | null;
}

type Key = Parameters<typeof t>[0];

export function UsedMemories({ used }: { used: readonly UsedMemory[] }) {
  return (
    <Used title={t("used")} empty={t("none_used")} items={used} id={(memory) => memory.memory_id}>
      {(memory) => (
        <>
          <MemoryLink id={memory.memory_id} />
          <p class="small">
            {t(`part_${memory.part}` as Key)} · {label(memory.memory_type)} · {label(memory.scope)} ·{" "}
            {t("score")} {figure(memory.score)}
            {/* What the profile says stands in its text, and takes none of its own. */}
            {memory.tokens > 0 && <> · {t("tokens")} {memory.tokens}</>}
          </p>
          {memory.explain && <details><summary>{t("why")}</summary><ScoreParts explain={memory.explain} /></details>}
        </>
      )}
    </Used>
  );
}

export function UsedExcerpts(
  { used, source }: { used: readonly UsedExcerpt[]; source: { searched: number; left_out: boolean } | null },
) {
  return (
    <Used
      title={t("excerpts")}
      empty={t("none_excerpts")}
      items={used}
      id={(excerpt) => excerpt.message_id}
      note={source && t(source.left_out ? "searched_not_all" : "searched", { count: source.searched })}
    >
      {(excerpt) => (
        <>
          <a href={href("conversation", [excerpt.session_id], { message: excerpt.message_id })}>
            {label(excerpt.role)} · {excerpt.session_id} · {excerpt.sequence_no}
          </a>
          <p class="small">
            {t("pieces", { shown: excerpt.pieces.length, of: excerpt.of_pieces })} · {t("score")} {figure(excerpt.score)} ·{" "}
            {t("tokens")} {excerpt.tokens}
          </p>
          {excerpt.explain && <details><summary>{t("why")}</summary><Signals boosts={excerpt.explain} /></details>}
        </>
      )}
    </Used>
  );
}

function Used<T>(
  { title, empty, items, id, note, children }: {
    title: string;
    empty: string;
    items: readonly T[];
    id: (item: T) => string;
    note?: ComponentChildren;
    children: (item: T) => ComponentChildren;
  },
) {
  // All of it is here; only a page at a time is drawn, and its memories asked for.
  const load = async (cursor: string | null, limit: number): Promise<Page<T>> => {
    const start = Number(cursor ?? 0);
    const end = start + limit;
    return { items: items.slice(start, end), next_cursor: end < items.length ? String(end) : null };
  };
  return (
    <section class="panel">
      <h3>{title}</h3>
      {note && <p class="small">{note}</p>}
      <Paged<T> load={load} limit={10} inputs={[items.map(id)]} empty={empty}>
        {(shown) => <ol class="entries">{shown.map((item) => <li key={id(item)}>{children(item)}</li>)}</ol>}
      </Paged>
    </section>
  );
}
