import type { ErrorCode } from "./generated/operations.js";

/** One thing wrong with a request. */
export interface Violation { field: string; code: string; message: string }

/** A refusal (RFC 9457): what a program needs is its code. */
export class SoniqError extends Error {
  override readonly name = "SoniqError";
  constructor(
    readonly status: number,
    readonly code: ErrorCode | (string & {}),
    /** The whole problem, with members such as current_status. */
    readonly problem: Record<string, unknown>,
    /** Seconds after which it may be tried again. */
    readonly retryAfter: number | undefined,
  ) {
    super(`${code}: ${String(problem["detail"] ?? problem["title"] ?? `HTTP ${status}`)}`);
  }
  /** Everything wrong with the request. */
  get violations(): Violation[] { return (this.problem["errors"] as Violation[] | undefined) ?? []; }
  /** Name it when asking for help. */
  get requestId(): string | undefined { return this.problem["request_id"] as string | undefined; }
}

/** Makes the error of an answer that is none of success. */
export async function errorOf(answer: Response): Promise<SoniqError> {
  let problem: Record<string, unknown> = {};
  try {
    problem = JSON.parse(await answer.text()) as Record<string, unknown>;
  } catch {
    // something between us and the server answered
  }
  const after = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new SoniqError(answer.status, String(problem["code"] ?? `http_${answer.status}`), problem, Number.isFinite(after) ? after : undefined);
}
