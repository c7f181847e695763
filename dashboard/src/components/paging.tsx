// Which page of a list is shown, and the way to the others.
import { useEffect, useState } from "preact/hooks";

import type { Page } from "../api";
import { resting } from "../load";
import { parseRoute, push, withQuery } from "../routing";
import { t } from "../text";

export interface Paging {
  cursor: string | null;
  number: number;
  /** Whether the pages before this one are known; else there is a way to the first alone. */
  known: boolean;
  next: (cursor: string) => void;
  previous: () => void;
}

/** Pages that this component keeps, which begins anew when `begin` changes. */
function useOwn(begin: string): Paging {
  const [reached, setReached] = useState<{ begin: string; cursors: readonly string[] }>({ begin, cursors: [] });
  useEffect(() => setReached({ begin, cursors: [] }), [begin]);
  const cursors = reached.begin === begin ? reached.cursors : [];
  return {
    cursor: cursors.at(-1) ?? null,
    number: cursors.length + 1,
    known: true,
    next: (cursor) => setReached({ begin, cursors: [...cursors, cursor] }),
    previous: () => setReached({ begin, cursors: cursors.slice(0, -1) }),
  };
}

/** Pages that stand in the address, so that the browser goes back to them; filters drop them. */
function ofAddress(): Paging {
  const { query } = parseRoute(location.hash);
  const cursor = query.get("cursor");
  const number = cursor === null ? 1 : Math.max(2, Number(query.get("page")) || 2);
  const kept = (history.state as { cursors?: string[] } | null)?.cursors ?? [];
  const known = cursor === null || kept.at(-1) === cursor;
  const cursors = cursor === null ? [] : known ? kept : [cursor];
  const show = (place: readonly string[], page: number) =>
    push(withQuery({ page: page > 1 ? String(page) : null, cursor: place.at(-1) ?? null }), { cursors: place });
  return {
    cursor,
    number,
    known,
    next: (following) => show([...cursors, following], number + 1),
    previous: () => (known ? show(cursors.slice(0, -1), number - 1) : show([], 1)),
  };
}

export function usePaging(begin: string, inAddress: boolean): Paging {
  const own = useOwn(begin);
  return inAddress ? ofAddress() : own;
}

export function PageButtons({ paging, page, loading }: { paging: Paging; page: Page<unknown>; loading: boolean }) {
  const { next_cursor: next } = page;
  if (paging.cursor === null && next === null) return null;
  return (
    <div class="buttons paging">
      <button type="button" {...resting(paging.cursor === null || loading)} onClick={() => !loading && paging.cursor !== null && paging.previous()}>
        {t(paging.known ? "previous" : "first_page")}
      </button>
      <span>{t("page_number", { page: paging.number })}</span>
      <button type="button" {...resting(next === null || loading)} onClick={() => !loading && next !== null && paging.next(next)}>
        {t("next")}
      </button>
    </div>
  );
}
