import type { ComponentChildren } from "preact";

import type { Page } from "../api";
import { useLoad } from "../load";
import { t } from "../text";
import { PageButtons, usePaging } from "./paging";
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
  { caption, columns, load, inputs = [], again, row, empty, inAddress = false }: {
    caption: string;
    columns: readonly Column<T>[];
    load: (cursor: string | null, limit: number, signal: AbortSignal) => Promise<Page<T>>;
    inputs?: readonly unknown[];
    /** When it changes the same page is asked for again. */
    again?: unknown;
    /** The id of a row. */
    row: (item: T) => string;
    empty: ComponentChildren;
    /** For the one list that a page is about: the address says which page of it is shown. */
    inAddress?: boolean;
  },
) {
  const begin = JSON.stringify(inputs);
  const paging = usePaging(begin, inAddress);
  const { cursor } = paging;
  const { data, problem, loading, reload } = useLoad((signal) => load(cursor, ROWS, signal), [begin, cursor, again]);
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return <Loading />;
  if (data.items.length === 0 && cursor === null && data.next_cursor === null) return <Empty>{empty}</Empty>;
  return (
    <div class="table" aria-busy={loading}>
      {data.items.length === 0 && <Empty>{data.next_cursor === null ? t("nothing_further") : empty}</Empty>}
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
      <PageButtons paging={paging} page={data} loading={loading} />
    </div>
  );
}
