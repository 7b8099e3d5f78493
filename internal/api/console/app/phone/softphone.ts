import JsSIP from "jssip";
import type { RTCSession } from "jssip/lib/RTCSession.js";
import type { RTCSessionEvent, UA } from "jssip/lib/UA.js";
import { request, serverTime, SoniqError, type Result } from "../api/client";
import { onEvent } from "../live/stream";
import { ring } from "./ring";
import { followOutput, microphone } from "./sound";
import { change, changeCall, controls, phone } from "./state";

type Token = Result<"users.webrtc_token">;

/** Milliseconds before the next attempt to connect: doubled after each, up to the last. */
const firstWait = 500, lastWait = 15_000;

const now = (): string => new Date(serverTime()).toISOString();

/** Runs the telephone until the server refuses it. A token connects once, so each connection takes another. */
export async function run(userID: string): Promise<void> {
  onEvent(({ kind, data }) => {
    if (data["call_id"] !== phone.get().call?.id) return;
    if (kind === "call.held") changeCall({ held: true });
    if (kind === "call.unheld") changeCall({ held: false });
  });
  addEventListener("beforeunload", (e) => { if (phone.get().call) e.preventDefault(); });
  for (let wait = firstWait; ; wait = Math.min(wait * 2, lastWait)) {
    try {
      const token = await request("users.webrtc_token", { path: { id: userID }, body: { device_name: deviceName() } });
      if (await connected(token)) wait = firstWait;
    } catch (cause) {
      if (cause instanceof SoniqError && (cause.status === 401 || cause.status === 403 || cause.status === 409)) {
        change({ reach: "refused", fault: String(cause.problem["detail"] ?? cause.code) });
        return;
      }
    }
    change({ reach: "connecting" });
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** The name of the phone of this browser, which stays the same. */
function deviceName(): string {
  const key = "soniq-device", kept = localStorage.getItem(key);
  if (kept) return kept;
  const name = "Browser " + crypto.randomUUID().slice(0, 4);
  localStorage.setItem(key, name);
  return name;
}

/** Connects and registers, and waits until the connection ends. Returns whether it had registered. */
function connected(token: Token): Promise<boolean> {
  return new Promise((resolve) => {
    let registered = false, over = false;
    // The address is that of this page: the policy allows no other, and proxies may have changed it.
    const at = new URL("/ws/sip", location.href);
    at.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    at.searchParams.set("token", token.token);
    const ua = new JsSIP.UA({
      sockets: [new JsSIP.WebSocketInterface(at.href)], uri: `sip:${token.username}@${token.domain}`, register: true, session_timers: false,
      connection_recovery_max_interval: 86_400, connection_recovery_min_interval: 86_400,
    });
    const end = () => {
      if (over) return;
      over = true;
      controls.set(null);
      ua.stop();
      resolve(registered);
    };
    ua.on("registered", () => {
      registered = true;
      change({ reach: "ready", fault: undefined });
      controls.set(controlsOf(ua, token));
    });
    ua.on("unregistered", () => { if (!over) change({ reach: "connecting" }); });
    ua.on("registrationFailed", end);
    ua.on("disconnected", end);
    ua.on("newRTCSession", (e: RTCSessionEvent) => begin(e));
    ua.start();
  });
}

let current: RTCSession | undefined;
const speaker = new Audio();
followOutput(speaker);

const media = (token: Token) => ({
  mediaConstraints: { audio: microphone(), video: false },
  pcConfig: { iceServers: token.ice_servers as RTCIceServer[] },
});

function controlsOf(ua: UA, token: Token) {
  return {
    dial(target: string, name?: string) {
      if (phone.get().call) return;
      const number = target.replace(/[^\d+*#a-zA-Z._-]/g, "");
      if (number === "") return;
      change({ call: { id: undefined, incoming: false, number: target, name, state: "calling", since: now(), muted: false, held: false }, wrapUp: null, fault: undefined });
      ua.call(`sip:${encodeURIComponent(number)}@${token.domain}`, media(token));
    },
    answer() { current?.answer(media(token)); },
    hangUp() { if (current && !current.isEnded()) current.terminate(); },
    mute(muted: boolean) {
      if (muted) current?.mute({ audio: true });
      else current?.unmute({ audio: true });
      changeCall({ muted });
    },
    tone(digit: string) { current?.sendDTMF(digit, { transportType: JsSIP.C.DTMF_TRANSPORT.RFC2833 } as never); },
  };
}

/** Follows a call of the telephone from its beginning. A second call is refused as busy. */
function begin({ session, originator, request: invite }: RTCSessionEvent): void {
  const incoming = originator === "remote";
  if (incoming && phone.get().call) {
    session.terminate({ status_code: 486 });
    return;
  }
  current = session;
  const stopRinging = incoming ? ring() : () => undefined;
  if (incoming) {
    const { remote_identity: from } = session;
    change({
      call: {
        id: (invite as { getHeader(name: string): string | undefined }).getHeader("X-Soniq-Call"), incoming: true, number: from.uri.user,
        name: from.display_name || undefined, state: "ringing", since: now(), muted: false, held: false,
      }, wrapUp: null, fault: undefined,
    });
    session.on("peerconnection", ({ peerconnection }: { peerconnection: RTCPeerConnection }) => listen(peerconnection));
  } else {
    listen(session.connection);
  }
  const learn = (e: { response?: unknown }) => {
    const id = (e.response as { getHeader?(name: string): string | undefined } | undefined)?.getHeader?.("X-Soniq-Call");
    if (id) changeCall({ id });
  };
  session.on("progress", learn);
  session.on("accepted", (e: { response?: unknown }) => {
    stopRinging();
    learn(e);
    changeCall({ state: "talking", since: now() });
  });
  const over = (fault: string | undefined) => {
    stopRinging();
    if (current === session) current = undefined;
    const { call } = phone.get();
    change({ call: null, fault, wrapUp: call?.id && call.state === "talking" ? { id: call.id, name: call.name, number: call.number } : null });
  };
  session.on("ended", () => over(undefined));
  session.on("failed", (e: { cause: string; originator: string }) => over(incoming || e.originator === "local" ? undefined : e.cause));
}

function listen(connection: RTCPeerConnection): void {
  connection.addEventListener("track", (e) => {
    speaker.srcObject = e.streams[0] ?? new MediaStream([e.track]);
    void speaker.play().catch(() => undefined); // the first click starts it
  });
}
