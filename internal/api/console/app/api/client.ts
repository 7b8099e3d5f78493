import { Soniq, SoniqError, type Input, type Operation, type Result, type Schema } from "../../../../../sdk/typescript/src/index.js";
import { store } from "../live/store";

export { SoniqError };
export type { Input, Operation, Result, Schema };

export type Call = Schema<"Call">;
export type Me = Schema<"AuthMe">;
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

/** The address of the sign-in page that leads back to the page that is shown. */
export const signInAddress = (): string => "/account/login?next=" + encodeURIComponent(location.pathname + location.search);
