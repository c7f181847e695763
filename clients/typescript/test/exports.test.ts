/** Exports: whole or broken, and split into parts. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { BrokenExportError, ForbiddenError } from "../src/index.js";
import { parts, splitLines } from "../src/exports.js";
import { answers, clientOf, refuses, type Reply } from "./server.js";

const MANIFEST = '{"format":1,"type":"manifest"}\n';
const row = (text: string): string => `{"row":{"content":"${text}"},"type":"memory"}\n`;
const end = (count: number): string => `{"counts":{"memory":${count}},"type":"end"}\n`;
const sends = (text: string | Uint8Array, whole = true): Reply => (response) => {
  response.writeHead(200, { "Content-Type": "application/x-ndjson" });
  response.write(text, () => (whole ? response.end() : response.destroy()));
};

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("an export is given line by line", async (t) => {
  const lines = [MANIFEST, row("茶"), row("b"), end(2)];
  const { memory, asked } = await clientOf(t, [sends(lines.join(""))]);

  assert.deepEqual(await all(memory.export({ user_id: "ana", vectors: false })), lines);
  assert.equal(asked[0]?.url, "/v1/export?user_id=ana&vectors=false");
});

test("characters and lines may be cut anywhere by the network", async () => {
  const bytes = new TextEncoder().encode(`${row("茶🍵")}\n${row("b")}`);
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });

  assert.deepEqual(await all(splitLines(stream)), [row("茶🍵"), "\n", row("b")]);
});

test("an export that is not whole is an error", async (t) => {
  for (const text of [
    "", MANIFEST, row("a") + end(1), MANIFEST + row("a") + end(2), MANIFEST + end(0) + row("a"),
    MANIFEST + row("a") + end(1).trimEnd(), "no JSON\n",
  ]) {
    const { memory } = await clientOf(t, [sends(text)]);
    await assert.rejects(all(memory.export()), BrokenExportError, text);
  }
  const { memory } = await clientOf(t, [sends(MANIFEST + row("a"), false)]);
  await assert.rejects(all(memory.export()), BrokenExportError);
  const refused = await clientOf(t, [refuses(403, "insufficient_scope")]);
  await assert.rejects(all(refused.memory.export()), ForbiddenError);
});

test("a part has at most a mebibyte, or one longer line", async () => {
  const long = row("x".repeat(600_000));
  const longest = row("y".repeat(1_200_000));
  const lines = [MANIFEST, row("a"), long, long, longest, row("b"), end(5)];

  const found = await all(parts(lines));

  assert.deepEqual(found.map((part) => part.rows), [2, 1, 1, 1]);
  assert.ok(found.every((part) => part.body.startsWith(MANIFEST)));
  assert.equal(found.map((part) => part.body.slice(MANIFEST.length)).join(""), lines.slice(1, -1).join(""));
  // The line break counts.
  const size = 1024 * 1024 - row("").length;
  for (const [letters, expected] of [[size - row("").length, 1], [size - row("").length + 1, 2]] as const) {
    const split = await all(parts([MANIFEST, row(""), row("z".repeat(letters)), end(2)]));
    assert.equal(split.length, expected);
  }
});

test("an import adds up what its parts did", async (t) => {
  const report = { inserted: { memory: 1 }, unchanged: {}, skipped: { memory: 2 }, conflicts: [{}], dry_run: true };
  const { memory, asked } = await clientOf(t, [answers(report)]);
  const long = row("x".repeat(1_000_000));

  const total = await memory.import([MANIFEST, long, long, end(2)], { dry_run: true });

  assert.deepEqual(total, {
    inserted: { memory: 2 }, unchanged: {}, skipped: { memory: 4 }, conflicts: [{}, {}], dry_run: true,
  });
  assert.equal(asked.length, 2);
  assert.equal(asked[0]?.headers["content-type"], "application/x-ndjson");
  assert.equal(asked[0]?.body, MANIFEST + long);
  assert.equal(asked[0]?.url, "/v1/import?dry_run=true");
});
