import type { components, operations } from "./generated/schema.js";
import type { routes } from "./generated/operations.js";

/** Name of an operation, such as "calls.create". */
export type Operation = keyof typeof routes & keyof operations;

/** A record by its name in the description, such as Schema<"Call">. */
export type Schema<N extends keyof components["schemas"]> = components["schemas"][N];

type Parameters<O extends Operation> = operations[O]["parameters"];

/** The query parameters of an operation. */
export type Query<O extends Operation> = Parameters<O> extends { query?: infer Q } ? NonNullable<Q> : never;

type Path<O extends Operation> = Parameters<O> extends { path: infer P } ? { path: P } : { path?: never };

type Content<T> = T extends { content: { "application/json": infer B } } ? B : never;

type Body<O extends Operation> = operations[O] extends { requestBody: infer R } ? { body: Content<R> }
  : operations[O] extends { requestBody?: infer R } ? ([NonNullable<R>] extends [never] ? { body?: never } : { body?: Content<NonNullable<R>> })
  : { body?: never };

/** What an operation is asked with. */
export type Input<O extends Operation> = Path<O> & Body<O> & {
  query?: Query<O>;
  /** Further headers, such as If-Match. */
  headers?: Record<string, string>;
  /** Of a change; one is made for each request otherwise, and kept while it is repeated. */
  idempotencyKey?: string;
  signal?: AbortSignal;
};

/** Asked without input where nothing is required. */
export type Arguments<O extends Operation> = {} extends Input<O> ? [input?: Input<O>] : [input: Input<O>];

type Responses<O extends Operation> = operations[O]["responses"];

/** What an operation answers; undefined for those that answer without a body. */
export type Result<O extends Operation> =
  Responses<O> extends { 200: infer R } ? Content<R>
  : Responses<O> extends { 201: infer R } ? Content<R>
  : Responses<O> extends { 202: infer R } ? Content<R>
  : undefined;

/** Operations that answer pages. */
export type ListOperation = { [O in Operation]: Result<O> extends { data: unknown[]; next_cursor: string | null } ? O : never }[Operation];

/** A record of the pages of an operation. */
export type Item<O extends Operation> = Result<O> extends { data: (infer R)[] } ? R : never;

/** A webhook's body: what happened, and to what. */
export type WebhookEvent = { [K in keyof operations]: K extends `webhook.${string}`
  ? operations[K] extends { requestBody: infer R } ? Content<R> : never : never }[keyof operations];
