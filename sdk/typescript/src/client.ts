import { routes } from "./generated/operations.js";
import { errorOf, SoniqError } from "./error.js";
import { readEvents, type StreamedEvent } from "./stream.js";
import type { Arguments, Input, Item, ListOperation, Operation, Query, Result } from "./types.js";

/** How the client reaches its server. */
export interface Options {
  /** Such as https://soniq.example; the prefix of the environment is added. */
  baseUrl: string;
  /** Absent in pages of the server itself, whose credential is the session of the browser. */
  apiKey?: string;
  /** "sandbox" for keys that begin with soniq_test_ unless given. */
  environment?: "live" | "sandbox";
  /** Organisation a partner's key acts for. */
  onBehalfOf?: string;
  /** How often a request is repeated after 429, 503 or a lost connection; 3 unless given. */
  retries?: number;
  /** Milliseconds one try may take; 30000 unless given. */
  timeout?: number;
  fetch?: typeof fetch;
}

/** Milliseconds without a byte after which a stream is taken for lost: the server writes one every 15 s. */
const silent = 45_000;

type Loose = { path?: Record<string, string>; query?: Record<string, unknown>; body?: unknown; headers?: Record<string, string>; idempotencyKey?: string; signal?: AbortSignal };

/** A client of the API. */
export class Soniq {
  readonly #options: Required<Omit<Options, "apiKey" | "onBehalfOf">> & Pick<Options, "apiKey" | "onBehalfOf">;

  constructor(options: Options) {
    this.#options = {
      environment: options.apiKey?.startsWith("soniq_test_") ? "sandbox" : "live", retries: 3, timeout: 30_000,
      fetch: (...a) => globalThis.fetch(...a), ...options, baseUrl: options.baseUrl.replace(/\/+$/, ""),
    };
  }

  /** Asks an operation and returns what it answers. Throws SoniqError for refusals. */
  async request<O extends Operation>(operation: O, ...[input]: Arguments<O>): Promise<Result<O>> {
    const answer = await this.response(operation, ...([input] as Arguments<O>));
    if (answer.status === 204) return undefined as Result<O>;
    return (await answer.json()) as Result<O>;
  }

  /** Asks an operation for what is not JSON, such as sound or CSV. Throws SoniqError for refusals. */
  async response<O extends Operation>(operation: O, ...[input]: Arguments<O>): Promise<Response> {
    const asked = (input ?? {}) as Loose;
    const [method] = routes[operation];
    const headers: Record<string, string> = { ...this.#headers(), ...asked.headers };
    if (method !== "GET") headers["Idempotency-Key"] ??= asked.idempotencyKey ?? crypto.randomUUID();
    const request: RequestInit = { method, headers };
    if (asked.body !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(asked.body);
    }
    return this.#persist(this.#address(operation, asked), request, asked.signal);
  }

  /** Goes through all records of a list, page by page. */
  async *list<O extends ListOperation>(operation: O, ...[input]: Arguments<O>): AsyncGenerator<Item<O>, void> {
    let cursor: string | null | undefined;
    do {
      const asked = { ...input, query: { ...input?.query, ...(cursor ? { cursor } : {}) } } as Input<O>;
      const page = (await this.request(operation, ...([asked] as unknown as Arguments<O>))) as unknown as { data: Item<O>[]; next_cursor: string | null };
      yield* page.data;
      cursor = page.next_cursor;
    } while (cursor);
  }

  /**
   * Follows what happens, from now on or from behind a sequence. A lost connection is taken up again where it ended, without a
   * gap; end it by leaving the loop or with the signal. Throws SoniqError for refusals, such as insufficient_scope. heard is called for
   * whatever arrives, the signs of life included, and lost when the connection ends.
   */
  async *events(options: { events?: NonNullable<Query<"events.stream">["events"]>; after?: string; signal?: AbortSignal; heard?: () => void; lost?: () => void } = {}): AsyncGenerator<StreamedEvent, void> {
    let last = options.after;
    const address = this.#address("events.stream", { query: { events: options.events } });
    for (let failures = 0; !options.signal?.aborted; failures++) {
      const lost = new AbortController();
      const end = () => lost.abort();
      let silence = setTimeout(end, silent);
      options.signal?.addEventListener("abort", end);
      try {
        const headers: Record<string, string> = { ...this.#headers(), Accept: "text/event-stream" };
        if (last !== undefined) headers["Last-Event-ID"] = last;
        const answer = await this.#options.fetch(address, { headers, signal: lost.signal });
        if (!answer.ok) throw await errorOf(answer);
        if (!answer.body) return;
        failures = 0;
        options.heard?.();
        for await (const e of readEvents(answer.body, () => { clearTimeout(silence); silence = setTimeout(end, silent); options.heard?.(); })) {
          if (e.id) last = e.id;
          if (e.event) yield { id: e.id, event: e.event, data: JSON.parse(e.data) as Record<string, unknown> };
        }
      } catch (cause) {
        if (options.signal?.aborted) return;
        if (cause instanceof SoniqError && cause.status !== 429 && cause.status !== 503) throw cause;
        if (!(cause instanceof SoniqError) && !(cause instanceof TypeError) && !lost.signal.aborted) throw cause;
      } finally {
        clearTimeout(silence);
        options.signal?.removeEventListener("abort", end);
        lost.abort();
      }
      options.lost?.();
      await pause(backoff(failures), options.signal);
    }
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { Accept: "application/json, */*;q=0.5" };
    if (this.#options.apiKey === undefined) headers["Soniq-Page"] = "1";
    else headers["Authorization"] = `Bearer ${this.#options.apiKey}`;
    if (this.#options.onBehalfOf) headers["On-Behalf-Of"] = this.#options.onBehalfOf;
    return headers;
  }

  #address(operation: Operation, asked: Loose): string {
    let path: string = routes[operation][1];
    if (this.#options.environment === "sandbox") path = path.replace(/^\/api\/v1/, "/sandbox/v1");
    path = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = asked.path?.[name];
      if (!value) throw new TypeError(`${operation} needs ${name}`); // an empty one would ask another operation
      return encodeURIComponent(value);
    });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(asked.query ?? {})) {
      if (value !== undefined && value !== null) query.set(name, Array.isArray(value) ? value.join(",") : String(value));
    }
    return this.#options.baseUrl + path + (query.size > 0 ? `?${query}` : "");
  }

  /** Tries until there is an answer that another try would not better. */
  async #persist(address: string, request: RequestInit, signal: AbortSignal | undefined): Promise<Response> {
    for (let tries = 0; ; tries++) {
      const bound = AbortSignal.timeout(this.#options.timeout);
      let wait = backoff(tries);
      try {
        const answer = await this.#options.fetch(address, { ...request, signal: signal ? AbortSignal.any([signal, bound]) : bound });
        if (answer.ok) return answer;
        const error = await errorOf(answer);
        if (tries >= this.#options.retries || !passing(error)) throw error;
        if (error.retryAfter !== undefined) wait = Math.min(error.retryAfter, 60) * 1000;
      } catch (cause) {
        if (cause instanceof SoniqError || signal?.aborted || tries >= this.#options.retries) throw cause;
      }
      await pause(wait, signal);
      signal?.throwIfAborted();
    }
  }
}

/** Whether the same request may succeed in a moment; its idempotency key keeps it from having two effects. */
function passing(e: SoniqError): boolean {
  return e.status === 503 || e.code === "rate_limited" || e.code === "idempotency_in_progress";
}

/** Milliseconds before try n+1: doubled each time up to 8 s, and spread. */
function backoff(n: number): number { return Math.min(8000, 250 * 2 ** n) * (0.5 + Math.random() / 2); }

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, ms);
    function done() { clearTimeout(timer); signal?.removeEventListener("abort", done); resolve(); }
    signal?.addEventListener("abort", done);
  });
}
