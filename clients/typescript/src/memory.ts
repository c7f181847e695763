/** `Memory`: the client as a whole. */

import createClient from "openapi-fetch";

import { CheckpointMethods } from "./checkpoints.js";
import { ConfigurationError, BrokenExportError } from "./errors.js";
import { checkedLines, parts, splitLines } from "./exports.js";
import { Folders } from "./folders.js";
import { Graph } from "./graph.js";
import { Blocks, Erasures, Forgetting, Profiles, Projects, Statistics } from "./groups.js";
import { data, init, pathOf } from "./resource.js";
import type { paths } from "./schema.js";
import { Sender } from "./sender.js";
import type { Answer, CallOptions, Query } from "./types.js";

const DEFAULT_URL = "http://127.0.0.1:8000";
const TIMEOUT_SECONDS = 120;
const MAX_RETRIES = 3;

export interface MemoryOptions {
  /** Address of the service; by default KEMEM_URL, else http://127.0.0.1:8000. */
  url?: string;
  /** By default KEMEM_API_KEY. */
  apiKey?: string;
  /** Seconds for a call, its retries and pauses included; 120 by default. */
  timeout?: number;
  /** How often a call is retried; 3 by default. */
  maxRetries?: number;
  /** The user for whom requests are made: answered as to that user's own key. */
  actingUser?: string;
  /** Sends a request, instead of the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

/**
 * The memory of an agent, kept by a KeMem service.
 *
 * Requests are retried only where that is safe: nothing is done twice. Every failure is a
 * `KememError`; a call that is cancelled by its `signal` throws the signal's reason.
 *
 * @example
 * const memory = new Memory({ url: "http://127.0.0.1:8000", apiKey: "kem_…" });
 * await memory.add("I moved to Munich last week.", { user_id: "ana" });
 * const { results } = await memory.search("Where does she live?", { user_id: "ana" });
 */
export class Memory extends CheckpointMethods {
  readonly #sender: Sender;

  readonly blocks: Blocks;
  readonly folders: Folders;
  readonly projects: Projects;
  readonly profiles: Profiles;
  readonly graph: Graph;
  readonly forgetting: Forgetting;
  readonly erasures: Erasures;
  readonly statistics: Statistics;

  /** @throws ConfigurationError there is no key, or the address is invalid */
  constructor(options: MemoryOptions = {}) {
    const sender = new Sender({
      url: addressOf(options.url ?? environment("KEMEM_URL") ?? DEFAULT_URL),
      apiKey: keyOf(options.apiKey ?? environment("KEMEM_API_KEY")),
      timeout: options.timeout ?? TIMEOUT_SECONDS,
      maxRetries: options.maxRetries ?? MAX_RETRIES,
      actingUser: options.actingUser,
      fetch: options.fetch ?? ((request) => fetch(request)),
    });
    const api = createClient<paths>({
      baseUrl: sender.options.url,
      fetch: (request) => sender.send(request),
      pathSerializer: pathOf,
    });
    super(api);
    this.#sender = sender;
    this.blocks = new Blocks(api);
    this.folders = new Folders(api);
    this.projects = new Projects(api);
    this.profiles = new Profiles(api);
    this.graph = new Graph(api);
    this.forgetting = new Forgetting(api);
    this.erasures = new Erasures(api);
    this.statistics = new Statistics(api);
  }

  /** The address of the service, without a slash at its end. */
  get url(): string {
    return this.#sender.options.url;
  }

  /** A client for one user: the service answers as it answers that user's own key. */
  actingAs(userId: string): Memory {
    return new Memory({ ...this.#sender.options, actingUser: userId });
  }

  /**
   * All data as lines of JSON, line breaks included, as of the first line.
   *
   * @throws BrokenExportError at the end, if the export is not whole: start again
   */
  async *export(
    query: Query<"export_rows"> = {},
    call?: CallOptions,
  ): AsyncGenerator<string, void> {
    const { data: stream } = await this.api.GET("/v1/export", {
      params: { query },
      parseAs: "stream",
      fetch: (request: Request) => this.#sender.send(request, true),
      ...init(call),
    });
    try {
      yield* checkedLines(splitLines(stream as unknown as ReadableStream<Uint8Array>));
    } catch (error) {
      call?.signal?.throwIfAborted();
      if (error instanceof BrokenExportError) throw error;
      throw new BrokenExportError("The export broke off before its end.", { cause: error });
    }
  }

  /**
   * Import the lines of an export and return the rows by outcome.
   *
   * Safe to repeat: rows that exist already are not changed. After an error, repeat all of it;
   * earlier parts were imported.
   *
   * @throws BrokenExportError the export is not whole
   */
  async import(
    lines: AsyncIterable<string> | Iterable<string>,
    query: Query<"import_rows"> = {},
    call?: Omit<CallOptions, "idempotencyKey">,
  ): Promise<Answer<"import_rows">> {
    const total: Answer<"import_rows"> = {
      inserted: {}, unchanged: {}, skipped: {}, conflicts: [], dry_run: query.dry_run ?? false,
    };
    for await (const { body } of parts(lines)) {
      const { headers, ...rest } = init(call);
      const report = await data(
        this.api.POST("/v1/import", {
          params: { query },
          body,
          bodySerializer: (text: string) => text,
          headers: { ...headers, "Content-Type": "application/x-ndjson" },
          ...rest,
        }),
      );
      addCounts(total.inserted, report.inserted);
      addCounts(total.unchanged, report.unchanged);
      addCounts(total.skipped, report.skipped);
      total.conflicts = [...total.conflicts, ...report.conflicts].slice(0, 100);
    }
    return total;
  }
}

function addCounts(total: Record<string, number>, counts: Record<string, number>): void {
  for (const [kind, count] of Object.entries(counts)) total[kind] = (total[kind] ?? 0) + count;
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

function keyOf(key: string | undefined): string {
  const trimmed = key?.trim();
  if (!trimmed) throw new ConfigurationError("There is no API key: pass apiKey or set KEMEM_API_KEY.");
  if (!/^[!-~]+$/.test(trimmed)) {
    throw new ConfigurationError("The API key has characters that no key has. Copy it again.");
  }
  return trimmed;
}

/** An absolute URL without a trailing slash or `/v1`. */
function addressOf(text: string): string {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new ConfigurationError(`The address of the service should look like ${DEFAULT_URL}.`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new ConfigurationError("The address may hold no user, password, query or fragment.");
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/v1$/, "").replace(/\/+$/, "");
}
