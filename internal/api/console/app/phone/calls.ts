import JsSIP from "jssip";
import type { RTCSession } from "jssip/lib/RTCSession.js";
import type { RTCSessionEvent, UA } from "jssip/lib/UA.js";
import { request, serverTime } from "../api/client";
import { queries } from "../api/query";
import { asName } from "../parts/PhoneNumber";
import { watchSound } from "./quality";
import { answersItself, cameBack } from "./reload";
import { ring } from "./ring";
import { followOutput, microphone } from "./sound";
import type { Token } from "./softphone";
import { callsOf, change, changeCall, phone, type PhoneCall } from "./state";

// The SIP sessions of the telephone. One call is in front: its audio is heard. One more may ring or be on hold.

const sessions = new Map<string, RTCSession>();
const streams = new Map<string, MediaStream>();
const speaker = new Audio();
followOutput(speaker);

/** A third call is refused as busy. */
const mostCalls = 2;

const now = (): string => new Date(serverTime()).toISOString();

const media = (token: Token) => ({
  mediaConstraints: { audio: microphone(), video: false },
  pcConfig: { iceServers: token.ice_servers as RTCIceServer[] },
});

const find = (key: string): PhoneCall | undefined => callsOf(phone.get()).find((call) => call.key === key);

/** Calls a number. */
export function dial(agent: UA, token: Token, target: string, name: string | undefined): void {
  if (phone.get().call) return;
  const number = target.replace(/[^\d+*#a-zA-Z._-]/g, "");
  if (number === "") return;
  dialled = { number, name };
  change({ fault: undefined, problem: undefined });
  agent.call(`sip:${encodeURIComponent(number)}@${token.domain}`, media(token));
}

/** Whom the next outgoing session calls. */
let dialled: { number: string; name: string | undefined } = { number: "", name: undefined };

/** Answers a call that rings. The call in front is put on hold before, unless it is. */
export async function answer(key: string, token: Token): Promise<void> {
  await act(async () => {
    const session = sessions.get(key), { call } = phone.get();
    if (!session || !call) return;
    if (call.key !== key) await holdFront(call);
    if (session.isEnded()) return; // the caller has given up meanwhile
    bringToFront(key);
    session.answer(media(token));
  });
}

/** Puts the call in front on hold and goes on with another one. */
export async function switchTo(key: string): Promise<void> {
  await act(async () => {
    const { call } = phone.get(), other = find(key);
    if (!call || !other || call.key === key) return;
    await holdFront(call);
    if (other.held && other.id) {
      await request("calls.unhold", { path: { id: other.id }, body: {} } as never);
      changeCall(key, { held: false });
    }
    bringToFront(key);
  });
}

async function holdFront(call: PhoneCall): Promise<void> {
  if (call.held || call.state !== "talking" || !call.id) return;
  await request("calls.hold", { path: { id: call.id }, body: {} } as never);
  changeCall(call.key, { held: true });
}

/** Runs an action; why it failed is shown in the call bar. */
async function act(action: () => Promise<void>): Promise<void> {
  change({ problem: undefined });
  try {
    await action();
  } catch (cause) {
    change({ problem: cause instanceof Error ? cause : new Error(String(cause)) });
  }
}

function bringToFront(key: string): void {
  phone.set((state) => {
    const all = callsOf(state), front = all.find((call) => call.key === key);
    return front ? { ...state, call: front, others: all.filter((call) => call !== front) } : state;
  });
  listen();
}

export function hangUp(key: string): void {
  const session = sessions.get(key);
  if (session && !session.isEnded()) session.terminate();
}

export function mute(muted: boolean): void {
  const { call } = phone.get(), session = call && sessions.get(call.key);
  if (!call || !session) return;
  if (muted) session.mute({ audio: true });
  else session.unmute({ audio: true });
  changeCall(call.key, { muted });
}

export function tone(digit: string): void {
  const { call } = phone.get();
  if (call) sessions.get(call.key)?.sendDTMF(digit, { transportType: JsSIP.C.DTMF_TRANSPORT.RFC2833 } as never);
}

/** Asks within each call: the server learns over which connection the phone is reached now, and says if it has no such call any more. */
export function reachAgain(): void {
  for (const session of sessions.values()) {
    if (!session.isEstablished()) continue;
    const asks = session as RTCSession & { sendRequest(method: string, options: { eventHandlers: Record<string, () => void> }): void };
    asks.sendRequest(JsSIP.C.OPTIONS, { eventHandlers: { onDialogError: () => { if (!session.isEnded()) session.terminate(); } } });
  }
}

/** Ends the calls that ring: the server rings no phone whose connection is lost, so they cannot be answered any more. */
export function endRinging(): void {
  for (const session of sessions.values()) if (session.direction === "incoming" && session.isInProgress()) session.terminate();
}

/** Finds new paths for the audio of each call, after the network has changed. */
export function restartMedia(): void { sessions.forEach(restart); }

function restart(session: RTCSession): void {
  if (session.isEstablished() && session.isReadyToReOffer()) session.renegotiate({ rtcOfferConstraints: { iceRestart: true } as RTCOfferOptions });
}

/** Follows a session from its beginning. */
export function begin(e: RTCSessionEvent, token: Token): void {
  const { session } = e, incoming = e.originator === "remote";
  if (incoming && callsOf(phone.get()).length >= mostCalls) {
    session.terminate({ status_code: 486 });
    return;
  }
  const key = session.id;
  sessions.set(key, session);
  add(incoming ? callFrom(e, key) : { key, id: undefined, incoming, ...dialled, state: "calling", since: now(), muted: false, held: false, bad: undefined });
  const itself = incoming && answersItself(find(key)?.id);
  const stopRinging = incoming && !itself ? ring(callsOf(phone.get()).length > 1) : () => undefined;
  const connection = (pc: RTCPeerConnection) => pc.addEventListener("track", (track) => {
    streams.set(key, track.streams[0] ?? new MediaStream([track.track]));
    listen();
  });
  if (incoming) session.on("peerconnection", ({ peerconnection }) => connection(peerconnection));
  else connection(session.connection);
  follow(session, key, incoming, stopRinging);
  if (itself) session.answer(media(token));
}

function add(call: PhoneCall): void {
  phone.set((state) => state.call ? { ...state, others: [...state.others, call], fault: undefined } : { ...state, call, wrapUp: null, fault: undefined, problem: undefined });
}

function callFrom({ session, request: invite }: RTCSessionEvent, key: string): PhoneCall {
  const { remote_identity: from } = session;
  return {
    key, id: (invite as { getHeader(name: string): string | undefined }).getHeader("X-Soniq-Call"), incoming: true, number: from.uri.user,
    name: asName(from.display_name), state: "ringing", since: now(), muted: false, held: false, bad: undefined,
  };
}

function follow(session: RTCSession, key: string, incoming: boolean, stopRinging: () => void): void {
  let stopWatching = () => undefined as void;
  const learn = (e: { response?: unknown }) => {
    const id = (e.response as { getHeader?(name: string): string | undefined } | undefined)?.getHeader?.("X-Soniq-Call");
    if (id) changeCall(key, { id });
  };
  session.on("progress", learn);
  session.on("accepted", (e: { response?: unknown }) => {
    stopRinging();
    learn(e);
    changeCall(key, { state: "talking", since: now() });
    session.connection.addEventListener("iceconnectionstatechange", () => { if (session.connection.iceConnectionState === "failed" && phone.get().reach === "ready") restart(session); });
    stopWatching = watchSound(session.connection, (bad) => changeCall(key, { bad }));
    const call = find(key);
    if (call) void act(() => cameBack(call));
  });
  const over = (fault: string | undefined) => {
    stopRinging();
    stopWatching();
    sessions.delete(key);
    streams.delete(key);
    end(key, fault);
  };
  session.on("ended", () => over(undefined));
  session.on("failed", (e: { cause: string; originator: string }) => over(incoming || e.originator === "local" ? undefined : e.cause));
}

/** Removes a call. The other one comes to the front. */
function end(key: string, fault: string | undefined): void {
  const call = find(key);
  phone.set((state) => {
    const rest = callsOf(state).filter((other) => other.key !== key);
    const wrapUp = call?.id && call.state === "talking" ? { id: call.id, name: call.name, number: call.number } : state.wrapUp;
    return { ...state, call: rest[0] ?? null, others: rest.slice(1), wrapUp, ...(fault === undefined ? {} : { fault }), ...(state.call?.key === key ? { problem: undefined } : {}) };
  });
  listen();
  if (call?.id) void queries.invalidateQueries({ queryKey: ["calls.get", { path: { id: call.id } }] });
}

/** Lets the call in front be heard. */
function listen(): void {
  const { call } = phone.get(), stream = (call && streams.get(call.key)) ?? null;
  if (speaker.srcObject === stream) return;
  speaker.srcObject = stream;
  if (stream) void speaker.play().catch(() => undefined); // the first click starts it
}
