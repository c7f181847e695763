import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Page } from "../api";
import { useLoad } from "../load";
import { t } from "../text";
import { Empty, Loading, Problem } from "./states";

/** Rows that are shown at once. */
export const ROWS = 50;

export interface Column<T> {
  title: string;
  show: (row: T) => ComponentChildren;
  /** Numbers stand to the right. */
  number?: boolean;
}

/**
 * One page of a list at a time. `load` gets the cursor and how many rows to ask for; when one of
 * `inputs` changes the list begins anew. On narrow screens each row is a block of its own.
 */
export function Table<T>(
  { caption, columns, load, inputs = [], again, row, empty }: {
    caption: string;
    columns: readonly Column<T>[];
    load: (cursor: string | null, limit: number, signal: AbortSignal) => Promise<Page<T>>;
    inputs?: readonly unknown[];
    /** When it changes the same page is asked for again. */
    again?: unknown;
    /** The id of a row. */
    row: (item: T) => string;
    empty: ComponentChildren;
  },
) {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const begin = JSON.stringify(inputs);
  const [begun, setBegun] = useState(begin);
  useEffect(() => {
    setCursors([]);
    setBegun(begin);
  }, [begin]);
  const current = begun === begin ? cursors : [];
  const cursor = current.at(-1) ?? null;
  const { data, problem, loading, reload } = useLoad((signal) => load(cursor, ROWS, signal), [begin, cursor, again]);
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return <Loading />;
  if (data.items.length === 0 && cursor === null) return <Empty>{empty}</Empty>;
  return (
    <div class="table" aria-busy={loading}>
      <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
        <table>
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title} scope="col" class={column.number ? "number" : undefined}>{column.title}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.items.map((item) => (
              <tr key={row(item)}>
                {columns.map((column) => (
                  <td key={column.title} data-title={column.title} class={column.number ? "number" : undefined}>
                    {column.show(item)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(cursor !== null || data.next_cursor !== null) && (
        <div class="buttons paging">
          <button type="button" disabled={cursor === null || loading} onClick={() => setCursors(current.slice(0, -1))}>
            {t("previous")}
          </button>
          <span>{t("page_number", { page: current.length + 1 })}</span>
          <button
            type="button"
            disabled={data.next_cursor === null || loading}
            onClick={() => data.next_cursor !== null && setCursors([...current, data.next_cursor])}
          >
            {t("next")}
          </button>
        </div>
      )}
    </div>
  );
}
