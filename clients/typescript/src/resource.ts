/** What every group of methods does with the typed client: headers, answers, pages. */

import type { Client } from "openapi-fetch";

import type { paths } from "./schema.js";
import type { ChangeOptions } from "./types.js";

const PAGE = 100;

export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}
export type Fetch<Item> = (where: {
  limit: number;
  cursor?: string;
}) => Promise<{ data?: Page<Item> }>;

export class Resource {
  /** Every route of the service, typed: `memory.api.GET("/v1/users")`. */
  readonly api: Client<paths>;

  constructor(api: Client<paths>) {
    this.api = api;
  }
}

export function init(options: ChangeOptions = {}): {
  signal?: AbortSignal;
  headers: Record<string, string>;
} {
  const headers: Record<string, string> = {};
  if (options.idempotencyKey !== undefined) headers["Idempotency-Key"] = options.idempotencyKey;
  if (options.version !== undefined) headers["If-Match"] = String(options.version);
  return options.signal ? { headers, signal: options.signal } : { headers };
}

/** The JSON of an answer; failures were thrown before. */
export async function data<Value>(answer: Promise<{ data?: Value }>): Promise<Value> {
  return (await answer).data as Value;
}

/** The rows of as many pages as `limit` needs; null is all. */
export async function collect<Item>(
  fetch: Fetch<Item>,
  limit: number | null = PAGE,
): Promise<Item[]> {
  if (limit !== null && !(limit >= 1)) throw new RangeError("limit must be at least 1, or null");
  const rows: Item[] = [];
  for await (const row of iterate(fetch, limit === null ? PAGE : Math.min(limit, PAGE))) {
    rows.push(row);
    if (rows.length === limit) break;
  }
  return rows;
}

/** All rows; each page is fetched when it is reached. */
export async function* iterate<Item>(fetch: Fetch<Item>, size = PAGE): AsyncGenerator<Item, void> {
  let cursor: string | null | undefined;
  do {
    const where = cursor ? { limit: size, cursor } : { limit: size };
    const page: Page<Item> = await data(fetch(where));
    yield* page.items;
    cursor = page.next_cursor;
  } while (cursor);
}

/** The path with its ids. An empty id would address the list instead of an item. */
export function pathOf(template: string, ids: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    if (typeof id !== "string" || !id.replaceAll(".", "")) {
      throw new TypeError(`${name} must be a text that is not empty`);
    }
    return encodeURIComponent(id);
  });
}
