import { request, SoniqError } from "../api/client";
import { isRunning } from "../parts/CallState";
import { spaced } from "../parts/PhoneNumber";
import { t } from "../words/words";
import { callsOf, change, changeCall, phone, type PhoneCall } from "./state";

// Calls of a page that is loaded again. The old page puts the other side on hold. The new page has the call rung at this phone again, as a
// transfer of the person's own side does. The phone of the old page leaves the call then.

const kept = "soniq-calls", ownTab = "soniq-tab";
/** Milliseconds that a call waits for its page. */
const waitTime = 60_000;

interface Kept { at: number; tab: string; user: string; calls: { id: string; who: string; held: boolean }[] }

/** Calls that are expected to ring again, and what is to be done then. */
const expected = new Map<string, { held: boolean; itself: boolean }>();

function tab(): string {
  const known = sessionStorage.getItem(ownTab) ?? crypto.randomUUID();
  sessionStorage.setItem(ownTab, known);
  return known;
}

let user = "";

/** Stores whose calls are kept. */
export const keepCallsOf = (userID: string): void => { user = userID; };

/** Keeps the calls of a page that goes, and lets the other side of the call in front hear music meanwhile. */
export function keepForReload(): void {
  const calls = callsOf(phone.get()).filter((call) => call.state === "talking" && call.id);
  if (calls.length === 0) return;
  const note: Kept = { at: Date.now(), tab: tab(), user, calls: calls.map((call) => ({ id: call.id ?? "", who: call.name ?? spaced(call.number), held: call.held })) };
  localStorage.setItem(kept, JSON.stringify(note));
  for (const call of calls.filter((c) => !c.held)) {
    // The browser sends this although the page goes.
    void fetch(`/api/v1/calls/${call.id}/hold`, { method: "POST", keepalive: true, headers: { "Soniq-Page": "1", "Content-Type": "application/json" }, body: "{}" });
  }
}

/** Has the calls of the page that went rung at this phone. */
export async function comeBack(): Promise<void> {
  const note = JSON.parse(localStorage.getItem(kept) ?? "null") as Kept | null;
  localStorage.removeItem(kept);
  if (!note || note.user !== user || Date.now() - note.at > waitTime) return;
  change({ fetching: true });
  for (const call of note.calls) {
    try {
      if (!isRunning(await request("calls.get", { path: { id: call.id } }))) throw new Error(t("reload.ended", { who: call.who }));
      expected.set(call.id, { held: call.held, itself: note.tab === tab() });
      await request("calls.transfer", { path: { id: call.id }, body: { to: "user:" + user, timeout_seconds: 20, summary_to_target: false } });
    } catch (cause) {
      expected.delete(call.id);
      change({ problem: cause instanceof SoniqError && cause.status !== 409 ? cause : new Error(t("reload.ended", { who: call.who })) });
    }
  }
  change({ fetching: false });
}

/** Reports whether a call that rings is one that this tab has fetched back: it was answered before. */
export const answersItself = (id: string | undefined): boolean => expected.get(id ?? "")?.itself ?? false;

/** Continues a call that was fetched back: on hold if it was, else the other side is heard again. */
export async function cameBack(call: PhoneCall): Promise<void> {
  const was = expected.get(call.id ?? "");
  if (!was || !call.id) return;
  expected.delete(call.id);
  await request(was.held ? "calls.hold" : "calls.unhold", { path: { id: call.id }, body: {} } as never);
  changeCall(call.key, { held: was.held });
}
