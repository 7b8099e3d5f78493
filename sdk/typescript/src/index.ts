export { Soniq, type Options } from "./client.js";
export { SoniqError, type Violation } from "./error.js";
export type { StreamedEvent } from "./stream.js";
export { verifyWebhook, verifyServiceSignature, WebhookError } from "./webhook.js";
export type { Input, Item, ListOperation, Operation, Query, Result, Schema, WebhookEvent } from "./types.js";
export type { ErrorCode } from "./generated/operations.js";
