import { store } from "../live/store";

/** Whether calls reach this browser, and why not. */
export type Reach = "off" | "other_tab" | "connecting" | "ready" | "no_answer" | "no_microphone" | "microphone_refused" | "refused";

/** A direction in which a call sounds bad: what is heard here, or what the other side hears. */
export interface BadSound { side: "here" | "there"; loss: number; jitter: number }

/** A call of the telephone in this page. */
export interface PhoneCall {
  /** Names the call in this page. */
  key: string;
  /** Id of the call in the API; undefined until the server has told it. */
  id: string | undefined;
  incoming: boolean;
  number: string;
  name: string | undefined;
  state: "ringing" | "calling" | "talking";
  since: string;
  muted: boolean;
  held: boolean;
  /** What is wrong with the sound now. */
  bad: BadSound | undefined;
}

/** A call that has ended and is not wrapped up. */
export interface WrapUpCall { id: string; name: string | undefined; number: string }

export interface PhoneState {
  reach: Reach;
  /** The call in front: the one that is spoken in, or the only one. */
  call: PhoneCall | null;
  /** The calls beside it, which ring or are on hold. */
  others: PhoneCall[];
  wrapUp: WrapUpCall | null;
  /** Why the last attempt failed. */
  fault: string | undefined;
  /** Why the last action on a call failed. */
  problem: Error | undefined;
  /** Whether a call is fetched back after the page was loaded again. */
  fetching: boolean;
}

export const phone = store<PhoneState>({ reach: "off", call: null, others: [], wrapUp: null, fault: undefined, problem: undefined, fetching: false });

/** Changes members of the state. */
export const change = (members: Partial<PhoneState>): void => phone.set((now) => ({ ...now, ...members }));

/** The calls of the telephone, the one in front first. */
export const callsOf = ({ call, others }: PhoneState): PhoneCall[] => (call ? [call, ...others] : others);

/** Changes members of the calls that a function chooses. */
export function changeCalls(chosen: (call: PhoneCall) => boolean, members: Partial<PhoneCall>): void {
  const changed = (call: PhoneCall): PhoneCall => (chosen(call) ? { ...call, ...members } : call);
  phone.set((now) => ({ ...now, call: now.call && changed(now.call), others: now.others.map(changed) }));
}

/** Changes members of one call. */
export const changeCall = (key: string, members: Partial<PhoneCall>): void => changeCalls((call) => call.key === key, members);

/** What the page does with the telephone, in this tab or in the one that is the telephone. */
export interface Controls {
  dial(target: string, name?: string): void;
  /** Answers a call that rings. A call in progress is put on hold first. */
  answer(key: string): void;
  hangUp(key: string): void;
  /** Puts the call in front on hold and goes on with another one. */
  switchTo(key: string): void;
  mute(muted: boolean): void;
  tone(digit: string): void;
  /** Ends the wrap-up on the page. */
  wrappedUp(): void;
}

/** Ends the registration of the telephone in this tab; null while it has none. */
export const signOff = store<(() => Promise<void>) | null>(null);

export const controls = store<Controls | null>(null);
