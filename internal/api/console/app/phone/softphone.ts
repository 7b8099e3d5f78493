import JsSIP from "jssip";
import type { RTCSessionEvent, UA } from "jssip/lib/UA.js";
import { request, SoniqError, type Result } from "../api/client";
import { onEvent } from "../live/stream";
import { answer, begin, dial, endRinging, hangUp, mute, reachAgain, restartMedia, switchTo, tone } from "./calls";
import { followMicrophone, type MicrophoneFault } from "./microphone";
import { comeBack, keepCallsOf, keepForReload } from "./reload";
import { TokenSocket } from "./socket";
import { callsOf, change, changeCalls, controls, phone, signOff } from "./state";

export type Token = Result<"users.webrtc_token">;

/** Milliseconds between two questions whether the server answers, and the age of its last answer that is too old. */
const askEvery = 10_000, tooOld = 40_000;
/** Milliseconds before a registration that failed is tried again. */
const registerAgainAfter = 5000;
/** Milliseconds after a change of the network before the media are restarted: the server may renew them itself. */
const settle = 1500;

/** What the badge depends on. */
const facts = { registered: false, heardAt: 0, microphone: undefined as MicrophoneFault | undefined };

/** The agent of the telephone, and whether it is not registered because there is no microphone. */
const current = { agent: undefined as UA | undefined, withheld: false };

/** What a REGISTER says that ends the registration for want of a microphone: the person did not turn the telephone off. */
const withoutMicrophone = 'Reason: SIP;cause=480;text="No microphone"';

/** Whether the network has changed since the last registration. */
let moved = false;

/** Says what is missing for calls to reach this browser; nothing is missing if they do. */
function tell(): void {
  if (phone.get().reach === "refused") return;
  const silent = facts.heardAt > 0 && Date.now() - facts.heardAt > tooOld;
  const connected = facts.registered || (current.withheld && current.agent?.isConnected());
  change({ reach: silent ? "no_answer" : !connected ? "connecting" : (facts.microphone ?? "ready") });
}

/** Ends the registration while there is no microphone, unless there is a call: nobody would be heard who answers. */
function followFacts(): void {
  tell();
  const { agent, withheld } = current;
  if (!agent?.isConnected()) return;
  if (facts.microphone && facts.registered && !withheld && callsOf(phone.get()).length === 0) {
    current.withheld = true;
    agent.registrator().setExtraHeaders([withoutMicrophone]);
    agent.unregister();
  } else if (!facts.microphone && withheld && !facts.registered) {
    current.withheld = false;
    agent.registrator().setExtraHeaders([]);
    agent.register();
  }
}

/** Milliseconds that the server may take to end the registration. */
const signOffTime = 2000;

/** Ends the registration of a telephone that its person turns off, so that they are offline at once. */
async function endRegistration(agent: UA): Promise<void> {
  const { withheld } = current;
  current.agent = undefined;
  await new Promise<void>((resolve) => {
    setTimeout(resolve, signOffTime);
    agent.on("unregistered", () => resolve());
    agent.registrator().setExtraHeaders([]);
    if (!withheld) return agent.unregister();
    agent.on("registered", () => agent.unregister());
    agent.register();
  });
}

/** Runs the telephone until the server refuses it. */
export async function run(userID: string): Promise<void> {
  onEvent(({ kind, data }) => {
    if (data["held_by"] === "api" && (kind === "call.held" || kind === "call.unheld")) changeCalls((call) => call.id === data["call_id"], { held: kind === "call.held" });
  });
  addEventListener("beforeunload", (e) => { if (callsOf(phone.get()).some((call) => call.state !== "ringing")) e.preventDefault(); });
  keepCallsOf(userID);
  addEventListener("pagehide", keepForReload);
  await followMicrophone((fault) => { facts.microphone = fault; followFacts(); });
  setInterval(followFacts, 1000);
  for (let token: Token | undefined; ;) {
    token = await connected(userID, token);
    if (!token) return;
  }
}

/** Takes a token for the phone of this browser. */
async function takeToken(userID: string): Promise<Token> {
  return request("users.webrtc_token", { path: { id: userID }, body: { device_name: deviceName() } });
}

/** The name of the phone of this browser, which stays the same. */
function deviceName(): string {
  const key = "soniq-device", kept = localStorage.getItem(key);
  if (kept) return kept;
  const name = "Browser " + crypto.randomUUID().slice(0, 4);
  localStorage.setItem(key, name);
  return name;
}

const isRefusal = (cause: unknown): cause is SoniqError => cause instanceof SoniqError && [401, 403, 409].includes(cause.status);

/** Waits for the first token: the server may be away. */
async function firstToken(userID: string): Promise<Token> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      return await takeToken(userID);
    } catch (cause) {
      if (isRefusal(cause)) throw cause;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/**
 * Runs the telephone of one SIP account. Calls go on while the connection is renewed. Returns the token of another account, if the phone
 * of this browser is a new one, or nothing if the server refuses it.
 */
async function connected(userID: string, first: Token | undefined): Promise<Token | undefined> {
  let token: Token;
  const refused = (cause: SoniqError) => change({ reach: "refused", fault: String(cause.problem["detail"] ?? cause.code) });
  try {
    token = first ?? await firstToken(userID);
  } catch (cause) {
    refused(cause as SoniqError);
    return undefined;
  }
  return new Promise((resolve) => {
    let unused: string | undefined = token.token, agent: UA | undefined;
    const end = (next: Token | undefined) => {
      clearInterval(asking);
      removeEventListener("offline", disconnect);
      removeEventListener("online", connectAgain);
      removeEventListener("pagehide", leave);
      facts.registered = false;
      controls.set(null);
      signOff.set(null);
      current.agent = undefined;
      agent?.stop();
      tell();
      resolve(next);
    };
    const nextToken = async (): Promise<string> => {
      const ready = unused;
      unused = undefined;
      if (ready !== undefined) return ready;
      try {
        const next = await takeToken(userID);
        if (next.username !== token.username) end(next);
        return next.token;
      } catch (cause) {
        if (isRefusal(cause)) {
          refused(cause);
          end(undefined);
        }
        throw cause;
      }
    };
    const socket = new TokenSocket(nextToken, () => { facts.heardAt = Date.now(); tell(); });
    const asking = setInterval(() => ask(agent, socket, token), askEvery);
    const connectAgain = () => {
      moved = true;
      socket.drop();
    };
    const disconnect = () => socket.drop();
    // Chromium keeps the connections of a page for half a minute after the page is left. Calls would ring there meanwhile.
    const leave = () => socket.disconnect();
    addEventListener("offline", disconnect);
    addEventListener("online", connectAgain);
    addEventListener("pagehide", leave);
    const made = agent = newAgent(socket, token);
    current.agent = made;
    current.withheld = false;
    signOff.set(() => () => endRegistration(made));
    made.start();
  });
}

/** Asks the server for an answer. A connection on which none comes is given up. */
function ask(agent: UA | undefined, socket: TokenSocket, token: Token): void {
  if (facts.registered && Date.now() - facts.heardAt > tooOld) socket.drop();
  else if (facts.registered || (current.withheld && agent?.isConnected())) (agent as UA & { sendOptions(target: string): void }).sendOptions(`sip:${token.domain}`);
}

function newAgent(socket: TokenSocket, token: Token): UA {
  const agent = new JsSIP.UA({
    sockets: [socket as never], uri: `sip:${token.username}@${token.domain}`, register: true, session_timers: false,
    connection_recovery_min_interval: 1, connection_recovery_max_interval: 8,
  });
  const registered = (is: boolean) => {
    facts.registered = is;
    tell();
  };
  agent.on("registered", () => {
    registered(true);
    change({ fault: undefined });
    controls.set({ dial: (target, name) => dial(agent, token, target, name), answer: (key) => void answer(key, token), hangUp, switchTo: (key) => void switchTo(key), mute, tone, wrappedUp: () => change({ wrapUp: null }) });
    reachAgain();
    if (moved) setTimeout(restartMedia, settle);
    moved = false;
    void comeBack();
  });
  agent.on("unregistered", () => registered(false));
  agent.on("registrationFailed", () => {
    registered(false);
    setTimeout(() => { if (agent.isConnected() && !agent.isRegistered() && !current.withheld) agent.register(); }, registerAgainAfter);
  });
  agent.on("disconnected", () => {
    registered(false);
    endRinging();
  });
  agent.on("newRTCSession", (e: RTCSessionEvent) => begin(e, token));
  return agent;
}
