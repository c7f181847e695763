import type { Page } from "./api";

/** Pages of what is here already, for a table; the cursor is the place in the list. */
export function pagesOf<T>(items: readonly T[]): (cursor: string | null, limit: number) => Promise<Page<T>> {
  return async (cursor, limit) => {
    const start = Number(cursor ?? 0);
    const end = start + limit;
    return { items: items.slice(start, end), next_cursor: end < items.length ? String(end) : null };
  };
}
