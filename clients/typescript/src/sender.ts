/** One request through all its attempts: when to retry, how long to wait, what the outcome means.
 *
 * Retrying is safe: GET and DELETE are idempotent, a POST has an Idempotency-Key, a PUT or PATCH
 * without a version sets the same values again. One with a version that got no answer is not
 * repeated: if it succeeded, the repetition would be refused as outdated.
 */

import {
  ConfigurationError,
  ConnectionFailedError,
  errorOf,
  TimedOutError,
  UnexpectedAnswerError,
} from "./errors.js";
import { VERSION } from "./version.js";

const FIRST_PAUSE_SECONDS = 0.25;
const LONGEST_PAUSE_SECONDS = 8;
const REPEATED = new Set([429, 502, 503, 504]);
/** The request was not sent: the names of Node, Deno and Bun. */
const NEVER_SENT = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused/;

export interface SenderOptions {
  url: string;
  apiKey: string;
  /** Seconds for a call, retries and pauses included. */
  timeout: number;
  maxRetries: number;
  actingUser: string | undefined;
  fetch: (request: Request) => Promise<Response>;
}

/** What an attempt led to. */
type Outcome = { response: Response; body: unknown } | { failure: unknown };

export class Sender {
  constructor(readonly options: SenderOptions) {
    if (!(options.timeout > 0 && options.timeout < Infinity)) {
      throw new ConfigurationError("timeout must be a number of seconds above 0");
    }
    if (!(options.maxRetries >= 0)) throw new ConfigurationError("maxRetries must not be negative");
  }

  /** The answer to `request`, a success; with its body read, unless `stream` is given. */
  async send(request: Request, stream = false): Promise<Response> {
    this.#prepare(request);
    const end = Date.now() + this.options.timeout * 1000;
    let retries = 0;
    let mayHaveSucceeded = false;
    for (;;) {
      const outcome = await this.#attempt(request, end, stream);
      request.signal.throwIfAborted();
      const progress = codeOf(outcome) === "request_in_progress";
      const effect = mayHaveHadEffect(outcome);
      mayHaveSucceeded ||= effect;
      const repeats = mayRepeat(request, outcome, effect) && retries < this.options.maxRetries;
      const pause = (progress && this.options.maxRetries > 0) || repeats
        ? pauseOf(outcome, retries)
        : Infinity;
      if (Date.now() + pause * 1000 >= end) return this.#result(request, outcome, mayHaveSucceeded);
      if (!progress) retries += 1;
      await sleep(pause, request.signal);
    }
  }

  #prepare(request: Request): void {
    const { apiKey, actingUser } = this.options;
    request.headers.set("Authorization", `Bearer ${apiKey}`);
    if (actingUser !== undefined) {
      request.headers.set("KeMem-User", encodeURIComponent(actingUser));
    }
    if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    // Browsers keep their own; a header of another name would be one more question before a call.
    if (!("document" in globalThis)) {
      request.headers.set("User-Agent", `kemem-typescript/${VERSION}`);
    }
  }

  async #attempt(request: Request, end: number, stream: boolean): Promise<Outcome> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new LateError()), Math.max(end - Date.now(), 1));
    try {
      const signal = AbortSignal.any([request.signal, late.signal]);
      const response = await this.options.fetch(
        new Request(request.clone(), { signal, redirect: "manual" }),
      );
      if (stream && response.ok) return { response, body: undefined };
      const content = await response.arrayBuffer();
      const { status, headers } = response;
      const whole = new Response(content.byteLength ? content : null, { status, headers });
      return { response: whole, body: response.ok ? undefined : jsonOf(content) };
    } catch (failure) {
      return { failure: late.signal.aborted ? late.signal.reason : failure };
    } finally {
      clearTimeout(timer);
    }
  }

  #result(request: Request, outcome: Outcome, mayHaveSucceeded: boolean): Response {
    const { url, timeout } = this.options;
    if ("failure" in outcome) {
      if (outcome.failure instanceof LateError) {
        throw new TimedOutError(`${url} did not answer in time (timeout ${timeout} s).`);
      }
      throw new ConnectionFailedError(`No answer from ${url}: it cannot be reached, or hung up.`, {
        cause: outcome.failure,
      });
    }
    const { response, body } = outcome;
    if (response.ok) return response;
    if (response.status < 400) {
      throw new UnexpectedAnswerError(`${url} answered with ${response.status}. Is it KeMem?`);
    }
    if (request.method === "DELETE" && response.status === 404 && mayHaveSucceeded) {
      // An earlier attempt, whose answer was lost, deleted it.
      return new Response(null, { status: 204 });
    }
    throw errorOf(response.status, body, retryAfter(response));
  }
}

class LateError extends Error {}

/** Wait, or throw the reason of `signal`. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
  });
}

function codeOf(outcome: Outcome): unknown {
  const body = "body" in outcome ? outcome.body : undefined;
  return typeof body === "object" && body !== null && "code" in body ? body.code : undefined;
}

function mayHaveHadEffect(outcome: Outcome): boolean {
  if ("failure" in outcome) {
    const failure = outcome.failure as { code?: string; cause?: { code?: string } } | undefined;
    return !NEVER_SENT.test(`${failure?.code} ${failure?.cause?.code}`);
  }
  const { status } = outcome.response;
  return status === 502 || status === 504 || codeOf(outcome) === "outcome_unknown";
}

function mayRepeat(request: Request, outcome: Outcome, effect: boolean): boolean {
  if ("response" in outcome) {
    // The operator switched memory off; a retry does not change that.
    const final = codeOf(outcome) === "memory_disabled";
    if (!REPEATED.has(outcome.response.status) || final) return false;
  }
  const version = request.headers.get("If-Match") ?? "*";
  return !(effect && version !== "*" && (request.method === "PATCH" || request.method === "PUT"));
}

/** Seconds to wait: what the service asks, or doubled with each retry, a random half of it. */
function pauseOf(outcome: Outcome, retries: number): number {
  const asked = "response" in outcome ? retryAfter(outcome.response) : undefined;
  if (asked !== undefined) return asked + 0.25 * Math.random();
  const doubled = Math.min(FIRST_PAUSE_SECONDS * 2 ** retries, LONGEST_PAUSE_SECONDS);
  return doubled * (0.5 + 0.5 * Math.random());
}

function retryAfter(response: Response): number | undefined {
  const text = response.headers.get("Retry-After")?.trim() ?? "";
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max((date - Date.now()) / 1000, 0);
}

function jsonOf(content: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(content)) as unknown;
  } catch {
    return undefined;
  }
}
