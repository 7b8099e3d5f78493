import { Soniq, SoniqError, type Input, type Operation, type Result, type Schema } from "../../../../../sdk/typescript/src/index.js";
import { routes } from "../../../../../sdk/typescript/src/generated/operations.js";
import { errorOf } from "../../../../../sdk/typescript/src/error.js";
import { store } from "../live/store";

export { SoniqError };
export type { Input, Operation, Result, Schema };

export type Call = Schema<"Call">;
export type Me = Schema<"AuthMe">;
export type Contact = Schema<"Contact">;
export type Conversation = Schema<"SmsConversation">;
export type Message = Schema<"SmsMessage">;
export type Voicemail = Schema<"Voicemail">;
export type Agent = Schema<"Agent">;

/** A request that the page sent, for "As a request". */
export interface SentRequest { method: string; path: string; body: string | undefined }

const maxRequests = 12;

/** The requests of the page that is shown, the newest last, each address once. */
export const sentRequests = store<SentRequest[]>([]);

/** Whether the server has refused the session of the browser. */
export const signedOut = store(false);

let clockOffset = 0;

/** The time of the server in milliseconds: the clock of this machine may be wrong. */
export const serverTime = (): number => Date.now() + clockOffset;

async function send(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const url = new URL(String(input)), method = init?.method ?? "GET";
  if (!url.pathname.endsWith("/events/stream")) {
    const path = url.pathname + url.search;
    const request = { method, path, body: typeof init?.body === "string" ? init.body : undefined };
    sentRequests.set((all) => [...all.filter((r) => r.method !== method || r.path !== path), request].slice(-maxRequests));
  }
  const answer = await fetch(input, init);
  const date = Date.parse(answer.headers.get("date") ?? "");
  // Date has whole seconds: a small difference is none.
  if (!Number.isNaN(date) && Math.abs(date - Date.now() - clockOffset) > 2000) clockOffset = date - Date.now();
  if (answer.status === 401) signedOut.set(true);
  return answer;
}

/** The client of the API. Its credential is the session of the browser. */
export const soniq = new Soniq({ baseUrl: location.origin, fetch: send });

/** Sends a request for an operation. */
export function request<O extends Operation>(operation: O, input?: Input<O>): Promise<Result<O>> {
  return (soniq.request as (operation: O, input?: Input<O>) => Promise<Result<O>>).call(soniq, operation, input);
}

/** Sends a file for an operation that takes a form, and returns its answer. */
export async function upload<O extends Operation>(operation: O, form: FormData): Promise<Result<O>> {
  const headers = { Accept: "application/json", "Soniq-Page": "1", "Idempotency-Key": crypto.randomUUID() };
  const answer = await send(location.origin + routes[operation][1], { method: "POST", headers, body: form });
  if (!answer.ok) throw await errorOf(answer);
  return (await answer.json()) as Result<O>;
}

/** The address of the sign-in page that leads back to the page that is shown. */
export const signInAddress = (): string => "/account/login?next=" + encodeURIComponent(location.pathname + location.search);
