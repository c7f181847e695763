import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Page } from "../api";
import { useLoad } from "../load";
import { t } from "../text";
import { Empty, Loading, Problem } from "./states";

/** A list that is no table, a page at a time; it begins anew when one of `inputs` changes. */
export function Paged<T>(
  { load, limit = 20, inputs, empty, children }: {
    load: (cursor: string | null, limit: number, signal: AbortSignal) => Promise<Page<T>>;
    limit?: number;
    inputs: readonly unknown[];
    empty: ComponentChildren;
    children: (items: readonly T[]) => ComponentChildren;
  },
) {
  const begin = JSON.stringify(inputs);
  const [reached, setReached] = useState<{ begin: string; cursors: readonly string[] }>({ begin, cursors: [] });
  useEffect(() => setReached({ begin, cursors: [] }), [begin]);
  const cursors = reached.begin === begin ? reached.cursors : [];
  const cursor = cursors.at(-1) ?? null;
  const { data, problem, loading, reload } = useLoad((signal) => load(cursor, limit, signal), [begin, cursor]);
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return <Loading />;
  if (data.items.length === 0 && cursor === null) return <Empty>{empty}</Empty>;
  const { next_cursor: next } = data;
  return (
    <div aria-busy={loading}>
      {children(data.items)}
      {(cursor !== null || next !== null) && (
        <div class="buttons paging">
          <button
            type="button"
            disabled={cursor === null || loading}
            onClick={() => setReached({ begin, cursors: cursors.slice(0, -1) })}
          >
            {t("previous")}
          </button>
          <span>{t("page_number", { page: cursors.length + 1 })}</span>
          <button
            type="button"
            disabled={next === null || loading}
            onClick={() => next !== null && setReached({ begin, cursors: [...cursors, next] })}
          >
            {t("next")}
          </button>
        </div>
      )}
    </div>
  );
}
