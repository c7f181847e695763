/** Types by the name of an operation, as the document of the service calls it. */

import type { components, operations } from "./schema.js";

export type Schemas = components["schemas"];

type Json<Content> = Content extends { "application/json": infer Value } ? Value : never;
type Success<Responses> = {
  [Status in keyof Responses & (200 | 201 | 202)]: Responses[Status] extends {
    content: infer Content;
  }
    ? Json<Content>
    : never;
}[keyof Responses & (200 | 201 | 202)];

/** The JSON of an answer. */
export type Answer<Name extends keyof operations> = Success<operations[Name]["responses"]>;

/** The body of a request without the fields that are arguments of their own. */
export type Body<Name extends keyof operations, Given extends string = never> = Omit<
  NonNullable<
    NonNullable<operations[Name]["requestBody"]> extends { content: infer Content }
      ? Json<Content>
      : never
  >,
  Given
>;

/** The whole query of a request. */
export type FullQuery<Name extends keyof operations> = NonNullable<
  operations[Name]["parameters"]["query"]
>;

/** The query of a request; pages are fetched as needed. */
export type Query<Name extends keyof operations, Given extends string = never> = Omit<
  FullQuery<Name>,
  Given | "cursor" | "limit"
>;

/** One row of a list. */
export type Row<Name extends keyof operations> =
  Answer<Name> extends { items: (infer Item)[] } ? Item : never;

export interface CallOptions {
  /** Cancels the call, which then throws the signal's reason; it may still have its effect. */
  signal?: AbortSignal;
  /** Instead of a key of its own: a POST has one effect however often it is sent. */
  idempotencyKey?: string;
}

export interface ChangeOptions extends CallOptions {
  /** The `version` you read: refused with `version_conflict` if there is a newer one. `*` is any. */
  version?: number | "*";
}

export interface ListLimit {
  /** Most rows; 100 by default, null for all. */
  limit?: number | null;
}
