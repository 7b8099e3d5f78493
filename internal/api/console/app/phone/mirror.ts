import { callsOf, change, controls, phone, signOff, type Controls, type PhoneState } from "./state";

// One tab of a browser is the telephone. It tells the other tabs of its calls, and does what they ask for.

type Action = { [K in keyof Controls]: { name: K; with: Parameters<Controls[K]> } }[keyof Controls];

type Message =
  | { kind: "calls"; user: string; calls: Pick<PhoneState, "call" | "others" | "wrapUp">; ready: boolean }
  | { kind: "ask" | "off"; user: string }
  | { kind: "act"; user: string; action: Action };

let channel: BroadcastChannel | undefined, user = "", isPhone = false;
/** Lets this tab wait to become the telephone no more. */
let stopWaiting = (): void => undefined;

const post = (m: Message): void => channel?.postMessage(m);

/**
 * Shows the calls of the tab that is the telephone, until this tab becomes it. turnedOn is called when another tab tells of its calls,
 * turnedOff when the telephone was turned off.
 */
export function followPhone(userID: string, turnedOn: () => void, turnedOff: () => void): void {
  if (channel) return;
  user = userID;
  stopWaiting = turnedOff;
  channel = new BroadcastChannel("soniq-phone");
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.user !== user) return;
    if (data.kind === "off") leave();
    else if (isPhone && data.kind === "ask") tell();
    else if (isPhone && data.kind === "act") run(data.action);
    else if (!isPhone && data.kind === "calls") {
      if (phone.get().reach === "off") turnedOn();
      change(data.calls);
      controls.set(data.ready ? remote : null);
    }
  };
  post({ kind: "ask", user });
}

/** Makes this tab the telephone: what was shown of another tab is forgotten, and the other tabs are told of each change. */
export function becomePhone(): void {
  isPhone = true;
  controls.set(null);
  change({ call: null, others: [], wrapUp: null });
  phone.subscribe(tell);
  controls.subscribe(tell);
}

/** Turns the telephone off in all tabs. */
export function turnOffAll(): void {
  post({ kind: "off", user });
  leave();
}

/** Ends the telephone in this tab. The tab that is it begins again; a call keeps it until the page is closed. */
function leave(): void {
  if (!isPhone) {
    stopWaiting();
    controls.set(null);
    change({ reach: "off", call: null, others: [] });
  } else if (callsOf(phone.get()).length === 0) void (signOff.get()?.() ?? Promise.resolve()).finally(() => location.reload());
}

function tell(): void {
  const { call, others, wrapUp } = phone.get();
  post({ kind: "calls", user, calls: { call, others, wrapUp }, ready: controls.get() !== null });
}

function run({ name, with: given }: Action): void { (controls.get()?.[name] as ((...given: unknown[]) => void) | undefined)?.(...given); }

const ask = <K extends keyof Controls>(name: K) => (...given: Parameters<Controls[K]>): void => post({ kind: "act", user, action: { name, with: given } as Action });

/** The telephone in the other tab. */
const remote: Controls = {
  dial: ask("dial"), answer: ask("answer"), hangUp: ask("hangUp"), switchTo: ask("switchTo"), mute: ask("mute"), tone: ask("tone"), wrappedUp: ask("wrappedUp"),
};
