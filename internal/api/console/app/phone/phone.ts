import { change, phone } from "./state";

const chosen = "soniq-phone";
let started = false;

/** Starts the telephone if it was turned on in this browser before. */
export function resumePhone(userID: string): void {
  if (localStorage.getItem(chosen) === userID) void startPhone(userID);
}

/** Turns the telephone on, in one tab of the browser. Other tabs wait, and take over when that tab is closed. */
export async function startPhone(userID: string): Promise<void> {
  if (started) return;
  started = true;
  localStorage.setItem(chosen, userID);
  const missing = await microphone();
  if (missing) {
    change({ reach: missing });
    started = false;
    return;
  }
  change({ reach: "other_tab" });
  await navigator.locks.request("soniq-phone", async () => {
    change({ reach: "connecting" });
    const { run } = await import("./softphone");
    // The lock is held for as long as the page lives: browsers do not suspend pages that hold one.
    await run(userID);
  });
}

/** Turns the telephone off in this browser. */
export function stopPhone(): void {
  localStorage.removeItem(chosen);
  if (!phone.get().call) location.reload();
}

/** Asks for the microphone; returns what is missing. */
async function microphone(): Promise<"no_microphone" | "microphone_refused" | undefined> {
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    stream.getTracks().forEach((track) => track.stop());
    return undefined;
  } catch (cause) {
    return cause instanceof DOMException && cause.name === "NotAllowedError" ? "microphone_refused" : "no_microphone";
  }
}
