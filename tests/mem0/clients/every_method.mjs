// Run by node: the folder of the package, address and key are its arguments; prints what it got.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const [folder, host, apiKey] = process.argv.slice(2);
const { MemoryClient } = createRequire(`${folder}/package.json`)("mem0ai");
const client = new MemoryClient({ apiKey, host });
const got = {};

const filters = { user_id: "ana" };
const raw = { userId: "ana", infer: false };

async function refusal(call) {
  try {
    await call();
  } catch (error) {
    return { name: error.name, message: error.message };
  }
  throw new Error("was not refused");
}

async function until(read, done) {
  for (;;) {
    const shown = await read();
    if (done(shown)) return shown;
    await new Promise((later) => setTimeout(later, 100));
  }
}

await client.ping();
got.added = await client.add([{ role: "user", content: "She drinks green tea." }], {
  ...raw, metadata: { topic_name: "tea" }, runId: "chat-1", agentId: "helper", appId: "shop",
});
const id = got.added.results[0].id;
got.queued = await client.add([{ role: "user", content: "I live in Lisbon." }], { userId: "bo" });
got.one = await client.get(id);
got.found = await client.search("What does she drink?", { filters, topK: 3, threshold: 0.1 });
got.updated = await client.update(id, { text: "She drinks black tea.", metadata: { topic_name: "x" } });
got.history = await client.history(id);

const further = [];
for (const content of ["She plays the cello.", "She sails.", "She owns two cats."]) {
  const { results } = await client.add([{ role: "user", content }], raw);
  further.push(results[0].id);
}
got.page = await client.getAll({ filters, page: 1, pageSize: 2 });
got.users = await client.users({ page: 1, pageSize: 50 });
got.batchUpdated = await client.batchUpdate([{ memoryId: further[0], text: "She plays the viola." }]);
got.batchDeleted = await client.batchDelete(further.slice(1));
got.left = await client.getAll({ filters });

got.feedback = await client.feedback({
  memoryId: id, feedback: "NEGATIVE", feedbackReason: "It was black tea.",
});

got.projectUpdated = await client.updateProject({ customInstructions: "Colours alone." });
got.project = await client.getProject({ fields: ["customInstructions", "customCategories"] });
got.projectRefused = await refusal(() => client.updateProject({ decay: true }));

const hook = { name: "Hook", url: "https://8.8.8.8/hook", eventTypes: ["memory_add"] };
got.webhook = await client.createWebhook(hook);
const { webhookId } = got.webhook;
got.webhookUpdated = await client.updateWebhook({ webhookId, eventTypes: ["memory_delete"] });
got.webhooks = await client.getWebhooks();
got.webhookRefused = await refusal(() =>
  client.createWebhook({ ...hook, eventTypes: ["memory_categorize"] }),
);
got.webhookDeleted = await client.deleteWebhook({ webhookId });

got.settings = await client.getProfileSettings();
got.settingsUpdated = await client.updateProfileSettings({ enabled: true });
got.settingsRefused = await refusal(() => client.updateProfileSettings({ enabled: false }));
const idempotencyKey = randomUUID();
got.job = await client.generateProfile({ entityId: "ana", idempotencyKey });
got.jobAgain = await client.generateProfile({ entityId: "ana", idempotencyKey });
got.jobDone = await until(
  () => client.getProfileJob(got.job.statusUrl),
  ({ job }) => job.completed === job.total,
);
got.profile = await client.getProfile({ entityId: "ana" });
got.sample = await client.sampleProfiles({ limit: 1 });
got.sampleRead = await client.getProfileJob(got.sample.jobId);

const schema = { type: "object", properties: { shoe_size: { type: "string" } } };
got.exported = await client.createMemoryExport({ schema, filters });
got.export = await client.getMemoryExport({ memoryExportId: got.exported.id });
got.exportByFilters = await client.getMemoryExport({ filters });

got.missing = await refusal(() => client.get(randomUUID()));
got.wrongKey = await refusal(() => new MemoryClient({ apiKey: "m0-x", host }).get(id));
got.deleted = await client.delete(id, { deleteLinked: true });
got.deletedAll = await client.deleteAll({ userId: "ana" });
got.none = await client.getAll({ filters });
await client.add([{ role: "user", content: "He is a pilot." }], { userId: "carl", infer: false });
got.deletedUser = await client.deleteUser({ entity_id: "carl", entity_type: "user" });
got.deletedUsers = await client.deleteUsers({ userId: "ana" });
await client.add([{ role: "user", content: "He is a pilot." }], { userId: "dan", infer: false });
got.deletedEverybody = await client.deleteUsers();
got.nobody = await client.users();

console.log(JSON.stringify(got));
