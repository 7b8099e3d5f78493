import { askForMicrophone } from "./microphone";
import { becomePhone, followPhone, turnOffAll } from "./mirror";
import { change } from "./state";

const chosen = "soniq-phone";
let started = false, waiting = new AbortController();

/** Starts the telephone if it was turned on in this browser before, or as soon as another tab turns it on. */
export function resumePhone(userID: string): void {
  followPhone(userID, () => resumePhone(userID), () => {
    waiting.abort();
    waiting = new AbortController();
    started = false;
  });
  if (localStorage.getItem(chosen) === userID) void startPhone(userID);
}

/** Turns the telephone on, in one tab of the browser. Other tabs show its calls, and take over when that tab is closed. */
export async function startPhone(userID: string): Promise<void> {
  if (started) return;
  started = true;
  localStorage.setItem(chosen, userID);
  const missing = await askForMicrophone();
  if (missing) {
    change({ reach: missing });
    started = false;
    // Another attempt when a microphone is connected.
    navigator.mediaDevices?.addEventListener("devicechange", () => resumePhone(userID), { once: true });
    return;
  }
  change({ reach: "other_tab" });
  await navigator.locks.request("soniq-phone", { signal: waiting.signal }, async () => {
    becomePhone();
    change({ reach: "connecting" });
    const { run } = await import("./softphone");
    // The lock is held until the page is left: browsers do not suspend pages that hold one.
    await Promise.race([run(userID), pageLeft()]);
  }).catch((cause: unknown) => { if (!(cause instanceof DOMException && cause.name === "AbortError")) throw cause; });
}

/** Resolves when the page is left, so that another tab becomes the telephone at once. A page that the browser shows again is loaded anew. */
function pageLeft(): Promise<unknown> {
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
  return new Promise((resolve) => addEventListener("pagehide", resolve));
}

/** Turns the telephone off in this browser. During a call it stays on until the page is closed. */
export function stopPhone(): void {
  localStorage.removeItem(chosen);
  turnOffAll();
}
