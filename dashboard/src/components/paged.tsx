import type { ComponentChildren } from "preact";

import type { Page } from "../api";
import { useLoad } from "../load";
import { t } from "../text";
import { PageButtons, usePaging } from "./paging";
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
  const paging = usePaging(begin, false);
  const { cursor } = paging;
  const { data, problem, loading, reload } = useLoad((signal) => load(cursor, limit, signal), [begin, cursor]);
  if (problem) return <Problem problem={problem} retry={reload} />;
  if (data === null) return <Loading />;
  if (data.items.length === 0 && cursor === null) return <Empty>{empty}</Empty>;
  return (
    <div aria-busy={loading}>
      {data.items.length === 0 ? <Empty>{t("nothing_further")}</Empty> : children(data.items)}
      <PageButtons paging={paging} page={data} loading={loading} />
    </div>
  );
}
