/** KeMem for TypeScript and JavaScript programs: `Memory` is a client of a running service. */

export * from "./errors.js";
export { Memory } from "./memory.js";
export type { MemoryOptions } from "./memory.js";
export type { components, operations, paths } from "./schema.js";
export type { Answer, Body, CallOptions, ChangeOptions, ListLimit, Query, Row, Schemas } from "./types.js";
export { VERSION } from "./version.js";
