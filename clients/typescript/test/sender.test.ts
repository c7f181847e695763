/** When a request is sent again, and what a failure means; against a server of this test. */

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import {
  ApiError, ConfigurationError, ConflictError, ConnectionFailedError, Memory, NotFoundError,
  RateLimitedError, TimedOutError, UnavailableError, UnexpectedAnswerError, VERSION,
} from "../src/index.js";
import { answers, clientOf, hangsUp, isSilent, refuses } from "./server.js";

const FOUND = { results: [] };
const SOON = { "Retry-After": "0" };

test("a post is sent again with the same key and the same bytes", async (t) => {
  const { memory, asked } = await clientOf(t, [hangsUp, refuses(503, "overloaded", SOON), answers(FOUND)]);

  assert.deepEqual(await memory.search("tea", { user_id: "ana" }), FOUND);

  assert.equal(asked.length, 3);
  assert.equal(new Set(asked.map((one) => one.headers["idempotency-key"])).size, 1);
  assert.match(asked[0]?.headers["idempotency-key"] as string, /^[0-9a-f-]{36}$/);
  assert.deepEqual(new Set(asked.map((one) => one.body)), new Set(['{"query":"tea","user_id":"ana"}']));
  assert.equal(asked[0]?.headers.authorization, "Bearer kem_x");
  assert.equal(asked[0]?.headers["user-agent"], `kemem-typescript/${VERSION}`);
});

test("two posts have keys of their own, or the key that is given", async (t) => {
  const { memory, asked } = await clientOf(t, [answers(FOUND)]);

  await memory.search("a", {});
  await memory.search("a", {});
  await memory.search("a", {}, { idempotencyKey: "mine" });

  const keys = asked.map((one) => one.headers["idempotency-key"]);
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], "mine");
});

test("retries end after as many as are allowed", async (t) => {
  for (const maxRetries of [0, 1, 2]) {
    const { memory, asked } = await clientOf(t, [refuses(503, "overloaded", SOON)], { maxRetries });
    await assert.rejects(memory.get("mem_1"), UnavailableError);
    assert.equal(asked.length, maxRetries + 1);
  }
});

test("a request that is in progress is asked for until it is done", async (t) => {
  const busy = refuses(409, "request_in_progress", SOON);
  const { memory, asked } = await clientOf(t, [busy, busy, busy, answers(FOUND)], { maxRetries: 1 });

  await memory.search("tea", {});

  assert.equal(asked.length, 4);
});

test("a pause that does not fit into the timeout is not waited for", async (t) => {
  const { memory, asked } = await clientOf(t, [refuses(429, "rate_limited", { "Retry-After": "60" })], {
    timeout: 5,
  });

  await assert.rejects(memory.search("tea", {}), (error: unknown) => {
    assert.ok(error instanceof RateLimitedError);
    assert.equal(error.retry_after, 60);
    return true;
  });
  assert.equal(asked.length, 1);
});

test("what is final is not repeated", async (t) => {
  for (const reply of [refuses(409, "duplicate"), refuses(503, "memory_disabled", SOON), refuses(422, "invalid_request")]) {
    const { memory, asked } = await clientOf(t, [reply]);
    await assert.rejects(memory.add("tea"), ApiError);
    assert.equal(asked.length, 1);
  }
});

test("a change with a version is not repeated when its answer was lost", async (t) => {
  const { memory, asked } = await clientOf(t, [hangsUp, answers({})]);

  await assert.rejects(memory.update("mem_1", { content: "x" }, { version: 3 }), ConnectionFailedError);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]?.headers["if-match"], "3");

  const other = await clientOf(t, [hangsUp, answers({})]);
  await other.memory.update("mem_1", { content: "x" });
  assert.equal(other.asked.length, 2);
  // It was refused before it could have an effect.
  const third = await clientOf(t, [refuses(503, "overloaded", SOON), answers({})]);
  await third.memory.update("mem_1", { content: "x" }, { version: 3 });
  assert.equal(third.asked.length, 2);
});

test("a deletion whose answer was lost succeeds when nothing is there any more", async (t) => {
  const gone = refuses(404, "memory_not_found");
  const { memory } = await clientOf(t, [hangsUp, gone]);
  assert.equal(await memory.delete("mem_1"), undefined);

  const first = await clientOf(t, [gone]);
  await assert.rejects(first.memory.delete("mem_1"), NotFoundError);
  const refused = await clientOf(t, [refuses(503, "overloaded", SOON), gone]);
  await assert.rejects(refused.memory.delete("mem_1"), NotFoundError);
});

test("an error tells what the service says", async (t) => {
  const problem = {
    code: "version_conflict", title: "Changed", detail: "Read again.", request_id: "req_7",
    current_version: 4, errors: [{ location: ["body", "content"], detail: "is empty" }],
  };
  const { memory } = await clientOf(t, [answers(problem, 409)]);

  await assert.rejects(memory.update("mem_1", {}), (error: unknown) => {
    assert.ok(error instanceof ConflictError);
    const { status, code, title, detail, request_id, errors, problem: whole, name } = error;
    assert.deepEqual(
      [status, code, title, detail, request_id, name],
      [409, "version_conflict", "Changed", "Read again.", "req_7", "ConflictError"],
    );
    assert.deepEqual(errors, problem.errors);
    assert.equal(whole["current_version"], 4);
    assert.match(error.message, /409 version_conflict: Read again\. body\.content: is empty\. \(request req_7\)/);
    return true;
  });
});

test("what a proxy says of a failure is not quoted", async (t) => {
  const { memory } = await clientOf(t, [answers("secret text", 500)]);

  await assert.rejects(memory.get("mem_1"), (error: unknown) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, "http_error");
    assert.doesNotMatch(error.message, /secret/);
    return true;
  });
});

test("a redirect is not followed, and the key not sent on", async (t) => {
  const { memory, asked } = await clientOf(t, [answers({}, 302, { Location: "/elsewhere" })]);

  await assert.rejects(memory.get("mem_1"), UnexpectedAnswerError);
  assert.equal(asked.length, 1);
});

test("a silent service times out, and a call can be cancelled", async (t) => {
  const { memory } = await clientOf(t, [isSilent], { timeout: 0.2 });
  await assert.rejects(memory.get("mem_1"), TimedOutError);

  const { memory: patient, asked } = await clientOf(t, [isSilent]);
  const stop = new AbortController();
  const call = patient.get("mem_1", { signal: stop.signal });
  while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
  stop.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
});

test("a pause between two attempts can be cancelled", async (t) => {
  const { memory, asked } = await clientOf(t, [refuses(503, "overloaded", { "Retry-After": "60" })]);
  const stop = new AbortController();
  const call = memory.get("mem_1", { signal: stop.signal });
  while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
  stop.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
});

test("where nothing listens the connection fails", async () => {
  const server = createServer();
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
  );
  await new Promise((resolve) => server.close(resolve));
  const memory = new Memory({ url: `http://127.0.0.1:${port}`, apiKey: "kem_x", maxRetries: 0 });

  await assert.rejects(memory.get("mem_1"), ConnectionFailedError);
});

test("address and key are checked before anything is sent", async (t) => {
  for (const url of ["", "localhost:8000", "ftp://x", "http://u:p@x", "http://x?a=1", "http://x#a"]) {
    assert.throws(() => new Memory({ url, apiKey: "kem_x" }), ConfigurationError, url);
  }
  for (const apiKey of ["", " ", "a b", "schlüssel"]) {
    assert.throws(() => new Memory({ url: "http://x", apiKey }), ConfigurationError, apiKey);
  }
  for (const timeout of [0, -1, Infinity, NaN]) {
    assert.throws(() => new Memory({ apiKey: "kem_x", timeout }), ConfigurationError);
  }
  assert.equal(new Memory({ url: "http://x/base/v1/", apiKey: "k" }).url, "http://x/base");
  const { memory, asked } = await clientOf(t, [answers({})]);
  for (const id of ["", ".", ".."]) await assert.rejects(memory.get(id), TypeError);
  await assert.rejects(memory.getAll({ limit: 0 }), RangeError);
  assert.equal(asked.length, 0);
  await memory.get("a/b ü");
  assert.equal(asked[0]?.url, "/v1/memories/a%2Fb%20%C3%BC");
});

test("pages are fetched as needed", async (t) => {
  const rows = Array.from({ length: 250 }, (_, n) => ({ memory_id: `mem_${n}` }));
  const { memory, asked } = await clientOf(t, [
    (response, { url }) => {
      const { searchParams: query } = new URL(url, "http://x");
      const from = Number(query.get("cursor") ?? 0);
      const to = from + Number(query.get("limit"));
      const body = { items: rows.slice(from, to), next_cursor: to < rows.length ? String(to) : null };
      answers(body)(response, {} as never);
    },
  ]);
  for (const [limit, requests] of [[1, 1], [100, 1], [101, 2], [null, 3]] as const) {
    asked.length = 0;
    const found = await memory.getAll({ user_id: "ana", filters: { a: 1 }, limit });
    assert.equal(found.length, limit ?? 250);
    assert.equal(asked.length, requests);
  }
  assert.match(asked[0]?.url ?? "", /filters=%7B%22a%22%3A1%7D/);
  asked.length = 0;
  for await (const row of memory.iterate()) if (row.memory_id === "mem_120") break;
  assert.equal(asked.length, 2);
});

test("a client for one user says for whom it asks", async (t) => {
  const { memory, asked } = await clientOf(t, [answers({})]);

  await memory.actingAs("ana").get("mem_1");
  await memory.actingAs("张三").get("mem_1");
  await memory.get("mem_1");

  const named = asked.map((one) => one.headers["kemem-user"]);
  assert.deepEqual(named, ["ana", "%E5%BC%A0%E4%B8%89", undefined]);
});
