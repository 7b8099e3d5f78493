import type { WebhookEvent } from "./types.js";

/** Headers of a request, as frameworks hand them over. */
export type Headers_ = Headers | Record<string, string | string[] | undefined>;

/** Why a delivery is not to be believed. */
export class WebhookError extends Error { override readonly name = "WebhookError"; }

/**
 * Verifies a delivery by Standard Webhooks and returns the event. The body must be as it came, not parsed and written again.
 * Throws WebhookError for a wrong signature, and for a timestamp more than the tolerance (300 s) away from now.
 */
export async function verifyWebhook(secret: string, headers: Headers_, body: string, options: { toleranceSeconds?: number; now?: Date } = {}): Promise<WebhookEvent> {
  const id = header(headers, "webhook-id"), at = header(headers, "webhook-timestamp"), signatures = header(headers, "webhook-signature");
  if (!id || !at || !signatures) throw new WebhookError("the request has no webhook-id, webhook-timestamp or webhook-signature");
  const now = (options.now ?? new Date()).getTime() / 1000;
  if (!(Math.abs(now - Number(at)) <= (options.toleranceSeconds ?? 300))) throw new WebhookError("the timestamp is too far from now");
  const key = await hmac(fromBase64(secret.replace(/^whsec_/, "")));
  for (const one of signatures.split(" ")) {
    if (one.startsWith("v1,") && await matches(key, fromBase64(one.slice(3)), `${id}.${at}.${body}`)) return JSON.parse(body) as WebhookEvent;
  }
  throw new WebhookError("the signature is wrong");
}

/**
 * Verifies a delivery by its x-service-signature alone: HMAC-SHA256 of the body with the whole secret. It has no time, so a delivery
 * may be played again: deduplicate by webhook-id. The prefix is that of the installation.
 */
export async function verifyServiceSignature(secret: string, headers: Headers_, body: string, prefix = "x-service"): Promise<WebhookEvent> {
  const key = await hmac(new TextEncoder().encode(secret));
  for (const name of [`${prefix}-signature`, `${prefix}-signature-previous`]) {
    const signature = header(headers, name);
    if (signature && await matches(key, fromHex(signature), body)) return JSON.parse(body) as WebhookEvent;
  }
  throw new WebhookError("the signature is wrong or missing");
}

function header(headers: Headers_, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : value;
  }
  return undefined;
}

function hmac(key: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** Compares in constant time. */
function matches(key: CryptoKey, signature: Uint8Array<ArrayBuffer>, message: string): Promise<boolean> {
  return crypto.subtle.verify("HMAC", key, signature, new TextEncoder().encode(message));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    throw new WebhookError("secret or signature is not base64");
  }
}

function fromHex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (byte) => Number.parseInt(byte, 16));
}
