import { serverTime, soniq, SoniqError } from "../api/client";
import { queries } from "../api/query";
import { store } from "./store";

// One tab of a browser holds the lock and reads the stream; it passes the events to the others. A browser has six connections to a host
// with HTTP/1.1, so a stream for each tab would stop the seventh.

export interface LiveEvent { kind: string; data: Record<string, unknown> }

type Message = { event: LiveEvent } | { state: LiveState["state"] };

/** Whether what is shown is up to date, and when the server was heard last. */
export interface LiveState { state: "connecting" | "live" | "lost"; heardAt: number }

export const live = store<LiveState>({ state: "connecting", heardAt: serverTime() });

/** The kinds of events that the console follows. */
const kinds = ["call.started", "call.ringing", "call.answered", "call.ended", "call.missed", "call.held", "call.unheld", "call.recording",
  "call.transcription", "call.transfer", "call.quality", "sms.received", "sms.sent", "sms.status", "conversation.updated", "voicemail.received",
  "voicemail.updated", "screen_pop", "agent.presence", "device.registration", "user.created", "number.allocated"];

/** Milliseconds without a byte after which the stream is taken for lost. The server sends one each 15 s. */
const silence = 32_000;
const followersToldEvery = 5000;

const listeners = new Set<(event: LiveEvent) => void>();

/** Calls a function for every event until the returned function is called. */
export function onEvent(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let channel: BroadcastChannel | undefined;

/** Follows the stream until the page is closed. */
export function startLive(): void {
  channel = new BroadcastChannel("soniq-live");
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if ("event" in data) take(data.event);
    else setState(data.state);
  };
  setInterval(() => {
    if (live.get().state === "live" && serverTime() - live.get().heardAt > silence) setState("lost");
  }, 2000);
  void navigator.locks.request("soniq-stream", lead);
}

/** Reads the stream. It ends when the server refuses the session. */
async function lead(): Promise<void> {
  let toldAt = 0;
  const heard = () => {
    const changed = live.get().state !== "live";
    setState("live");
    if (!changed && serverTime() - toldAt < followersToldEvery) return;
    toldAt = serverTime();
    channel?.postMessage({ state: "live" } satisfies Message);
  };
  const lost = () => {
    setState("lost");
    channel?.postMessage({ state: "lost" } satisfies Message);
  };
  try {
    for await (const e of soniq.events({ events: kinds, heard, lost })) {
      const event = { kind: e.event, data: e.data };
      take(event);
      channel?.postMessage({ event } satisfies Message);
    }
  } catch (cause) {
    lost();
    if (!(cause instanceof SoniqError)) throw cause;
  }
}

function setState(state: LiveState["state"]): void {
  const before = live.get();
  live.set({ state, heardAt: state === "live" ? serverTime() : before.heardAt });
  // What happened in between is in the stream, but figures that no event changes may be old.
  if (before.state === "lost" && state === "live") void queries.invalidateQueries();
}

/** Operations whose answers the kinds of events change. */
const changes: [prefix: string, operations: string[]][] = [
  ["call.", ["calls.list", "calls.missed", "calls.get", "calls.events", "calls.recording", "calls.transcript", "calls.summary", "calls.quality",
    "calls.trace"]],
  ["sms.", ["sms.conversations.list", "sms.conversations.get", "sms.conversations.messages", "contacts.timeline"]],
  ["conversation.", ["sms.conversations.list", "sms.conversations.get"]],
  ["voicemail.", ["voicemail.list", "voicemail.get", "contacts.timeline"]],
  ["call.ended", ["contacts.timeline"]],
  ["agent.", ["agents.list", "agents.get", "me.devices.list"]],
  ["device.", ["devices.list", "me.devices.list"]],
  ["user.", ["users.list", "agents.list"]],
  ["number.", ["numbers.list", "me.numbers.list"]],
];

const refreshEvery = 1000;
const waiting = new Set<string>();
let refreshTimer: ReturnType<typeof setTimeout> | undefined;

function take(event: LiveEvent): void {
  setState("live");
  for (const [prefix, operations] of changes) {
    if (event.kind.startsWith(prefix)) operations.forEach((o) => waiting.add(o));
  }
  if (waiting.size > 0) refreshTimer ??= setTimeout(refresh, refreshEvery / 4);
  for (const listener of [...listeners]) listener(event);
}

/** Refreshes what is shown, at most once a second however many events there are. */
function refresh(): void {
  const operations = new Set(waiting);
  waiting.clear();
  void queries.invalidateQueries({ predicate: (q) => operations.has(String(q.queryKey[0])) });
  refreshTimer = setTimeout(() => {
    refreshTimer = undefined;
    if (waiting.size > 0) refreshTimer = setTimeout(refresh, 0);
  }, refreshEvery);
}
