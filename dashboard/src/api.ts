// Calls of the service's own API. Nothing here keeps an answer.
import { currentKey, forgetKey } from "./session";

export type Query = Record<string, string | number | boolean | null | undefined | readonly string[]>;

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface FieldError {
  location: (string | number)[];
  detail: string;
}

/** What the service answered when it refused; `status` 0 when no answer came. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly request_id: string;
  readonly errors: readonly FieldError[];

  constructor(status: number, answer: Partial<Omit<ProblemError, "status">>) {
    super(answer.detail ?? answer.title ?? answer.code ?? "");
    this.status = status;
    this.code = answer.code ?? "";
    this.title = answer.title ?? "";
    this.detail = answer.detail ?? "";
    this.request_id = answer.request_id ?? "";
    this.errors = answer.errors ?? [];
  }
}

/** `path` with `query`; values that are null, undefined or "" are left out. */
export function withQuery(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const single of values) {
      if (single !== null && single !== undefined && single !== "") {
        parameters.append(name, String(single));
      }
    }
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** A path of encoded segments: `path("/v1/users", id)`. */
export function path(start: string, ...segments: string[]): string {
  return [start, ...segments.map(encodeURIComponent)].join("/");
}

export function get<T>(address: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return call<T>("GET", withQuery(address, query), undefined, {}, signal);
}

/** Idempotency-Keys of POSTs that failed, by what they ask. */
const failed = new Map<string, string>();

/** Whoever asked is gone: what is asked from now on is asked anew. */
export function forgetFailed(): void {
  failed.clear();
}

/**
 * `headers` adds for example `If-Match`. A POST that failed is sent again with its Idempotency-Key, so that one
 * whose answer was lost is not done twice.
 */
export async function send<T>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  address: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  if (method !== "POST") return call<T>(method, address, body, headers);
  const asked = JSON.stringify([address, body, headers]);
  const key = failed.get(asked) ?? randomId();
  failed.delete(asked);
  try {
    return await call<T>(method, address, body, { "Idempotency-Key": key, ...headers });
  } catch (error) {
    failed.set(asked, key);
    throw error;
  }
}

/** `crypto.randomUUID` exists on https and loopback addresses alone. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The answer as it comes, for a file to keep. */
export async function download(address: string, query?: Query): Promise<Blob> {
  return (await answered("GET", withQuery(address, query), undefined, { Accept: "*/*" })).blob();
}

async function call<T>(
  method: string,
  address: string,
  body: unknown,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await answered(method, address, body, headers, signal);
  return (await valueOf(answer)) as T;
}

/** Throws ProblemError where the service refuses or does not answer. */
async function answered(
  method: string,
  address: string,
  body: unknown,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  const key = currentKey();
  const request: RequestInit = {
    method,
    headers: {
      Accept: "application/json",
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    credentials: "omit",
    cache: "no-store",
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  };
  let answer: Response;
  try {
    answer = await fetch(address, request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ProblemError(0, { code: "unreachable" });
  }
  if (answer.ok) return answer;
  const problem = new ProblemError(answer.status, {
    request_id: answer.headers.get("X-Request-Id") ?? "",
    ...((await valueOf(answer)) as Partial<ProblemError> | null),
  });
  // The key of this call is no longer good for any other.
  if (answer.status === 401 && key && !("Authorization" in headers)) forgetKey(key, problem);
  throw problem;
}

async function valueOf(answer: Response): Promise<unknown> {
  const text = await answer.text();
  return text && isJson(answer) ? JSON.parse(text) : null;
}

function isJson(answer: Response): boolean {
  return /\bjson\b/.test(answer.headers.get("Content-Type") ?? "");
}
