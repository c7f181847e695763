/** The client against a real service, whose address and admin key are in KEMEM_URL and KEMEM_API_KEY. */

import assert from "node:assert/strict";
import { before, test } from "node:test";

import { ConflictError, Memory, NotFoundError, UnauthenticatedError, UnprocessableError } from "../src/index.js";

const skip = process.env["KEMEM_URL"] ? false : "KEMEM_URL names no service";
let memory: Memory;
before(() => {
  if (!skip) memory = new Memory();
});

test("what was saved is found, changed and deleted", { skip }, async () => {
  const added = await memory.add("She drinks green tea in the morning.", { user_id: "eva", infer: false });
  assert.equal(added.results[0]?.event, "ADD");

  const { results } = await memory.search("What does she drink?", { user_id: "eva", limit: 5 });
  const hit = results[0];
  assert.ok(hit);
  assert.equal(hit.content, "She drinks green tea in the morning.");
  assert.ok(hit.score > 0);

  const changed = await memory.update(hit.memory_id, { content: "She drinks black tea." }, { version: hit.version });
  assert.equal(changed.version, hit.version + 1);
  await assert.rejects(
    memory.update(hit.memory_id, { content: "She drinks milk." }, { version: hit.version }),
    (error: unknown) => error instanceof ConflictError && error.code === "version_conflict",
  );
  const history = await memory.history(hit.memory_id);
  assert.deepEqual(history.map((one) => one.event), ["ADD", "UPDATE"]);
  const first = history[0];
  assert.ok(first);
  const restored = await memory.restore(hit.memory_id, first.history_id);
  assert.equal(restored.memory.content, "She drinks green tea in the morning.");
  assert.equal((await memory.feedback(hit.memory_id, "helpful")).memory_id, hit.memory_id);

  await memory.delete(hit.memory_id, { hard: true });
  await assert.rejects(memory.get(hit.memory_id), NotFoundError);
});

test("lists are paged, filtered and deleted in bulk", { skip }, async () => {
  for (let n = 0; n < 5; n += 1) {
    await memory.add(`The blue notebook number ${n} lies on shelf ${n}.`, { user_id: "lin", infer: false });
  }
  assert.equal((await memory.getAll({ user_id: "lin", limit: 3 })).length, 3);
  const seen: string[] = [];
  for await (const item of memory.iterate({ user_id: "lin" })) seen.push(item.memory_id);
  assert.equal(new Set(seen).size, 5);
  assert.equal((await memory.getAll({ filters: { user_id: "lin" }, limit: null })).length, 5);

  await assert.rejects(memory.deleteAll({ user_id: "lin" }), ConflictError);
  await memory.deleteAll({ user_id: "lin", confirm: true });
  assert.deepEqual(await memory.getAll({ user_id: "lin" }), []);
});

test("a conversation is kept, read and put into a context", { skip }, async () => {
  await memory.append("journey", [
    { role: "user", content: "I moved to Munich last week." },
    { role: "assistant", content: "How do you like it?" },
  ], { user_id: "mia" });

  const last = (await memory.messages("journey", { order: "desc", limit: 1 }))[0];
  assert.ok(last);
  assert.equal(last.content, "How do you like it?");
  assert.equal((await memory.message("journey", last.message_id)).content, last.content);
  const context = await memory.context("journey", "Where does she live?");
  assert.match(JSON.stringify(context.messages), /Munich/);
  assert.ok((await memory.window("journey")).messages >= 2);
  const found = await memory.searchMessages("Munich", { user_id: "mia" });
  assert.match(JSON.stringify(found.items), /Munich/);

  await memory.setState("journey", { step: 1 }, { version: "*" });
  assert.deepEqual((await memory.updateState("journey", { done: true }, { version: "*" })).state, { step: 1, done: true });
  const checkpoint = await memory.checkpoint("journey");
  const fork = await memory.fork("journey", { checkpoint_id: checkpoint.checkpoint_id, session_id: "journey-2" });
  assert.equal(fork.session_id, "journey-2");
  await memory.end("journey");
  assert.equal((await memory.reopen("journey")).status, "running");
});

test("a job is ordered and waited for", { skip }, async () => {
  const ordered = await memory.add("I was born in Kyoto.", { user_id: "ken", async: true });

  const job = await memory.wait(ordered, { timeout: 120 });

  assert.equal(job.status, "succeeded");
  assert.match(JSON.stringify(await memory.getAll({ user_id: "ken" })), /Kyoto/);
});

test("blocks, folders, projects and the graph", { skip }, async () => {
  const block = await memory.blocks.create("style", { value: "Be brief." });
  const appended = await memory.blocks.append(block.block_id, "Be kind.", { version: block.version });
  assert.equal(appended.value, "Be brief.\nBe kind.");
  assert.equal((await memory.blocks.undo(block.block_id, { version: "*" })).value, "Be brief.");
  assert.equal((await memory.blocks.delete(block.block_id))?.block_id, block.block_id);

  const folder = await memory.folders.create({ folder_name: "Papers", scope: "user", user_id: "eva" });
  const uploaded = await memory.folders.upload(folder.folder_id, "# Tea\n\nGreen tea is steamed.", {
    file_name: "tea.md", metadata: { from: "test" },
  });
  if (uploaded.file.job_id) await memory.wait(uploaded.file.job_id, { timeout: 120 });
  const passages = await memory.folders.passages(folder.folder_id);
  assert.match(JSON.stringify(passages), /steamed/);
  assert.match(JSON.stringify(await memory.folders.search("tea", { user_id: "eva" })), /steamed/);

  const project = await memory.projects.create("Tea house", { owner_id: "eva" });
  assert.equal((await memory.projects.get(project.project_id)).project_name, "Tea house");
  await memory.graph.addRelation({ source: "Eva", relation: "works_at", destination: "Tea house", user_id: "eva" });
  const near = await memory.graph.neighbours({ name: "Eva", user_id: "eva" });
  assert.match(JSON.stringify(near), /Tea house/);
  assert.equal((await memory.profiles.get("eva")).user_id, "eva");
  assert.ok((await memory.tools()).tools.length > 0);
  assert.ok(await memory.statistics.memories());
  assert.ok(await memory.usage());
});

test("an export is imported again without a change", { skip }, async () => {
  const lines: string[] = [];
  for await (const line of memory.export({ vectors: false })) lines.push(line);
  assert.ok(lines.length > 3);

  const report = await memory.import(lines);

  assert.deepEqual(report.inserted, {});
  assert.equal(Object.values(report.unchanged).reduce((sum, one) => sum + one, 0), lines.length - 2);
});

test("refusals are errors of their kind", { skip }, async () => {
  await assert.rejects(memory.search("tea", {}), (error: unknown) => {
    assert.ok(error instanceof UnprocessableError);
    assert.equal(error.code, "selector_required");
    assert.match(error.request_id ?? "", /^req_/);
    return true;
  });
  const stranger = new Memory({ apiKey: "kem_unknown" });
  await assert.rejects(stranger.search("tea", { user_id: "eva" }), UnauthenticatedError);
});

test("every route is there, typed", { skip }, async () => {
  const { data } = await memory.api.GET("/v1/users/{user_id}", { params: { path: { user_id: "eva" } } });
  assert.equal(data?.user_id, "eva");
});
