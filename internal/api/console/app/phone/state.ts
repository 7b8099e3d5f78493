import { store } from "../live/store";

/** Whether calls reach this browser, and why not. */
export type Reach = "off" | "other_tab" | "connecting" | "ready" | "no_microphone" | "microphone_refused" | "refused";

/** A call of the telephone in this page. */
export interface PhoneCall {
  /** Id of the call in the API; undefined until the server has told it. */
  id: string | undefined;
  incoming: boolean;
  number: string;
  name: string | undefined;
  state: "ringing" | "calling" | "talking";
  since: string;
  muted: boolean;
  held: boolean;
}

export interface PhoneState {
  reach: Reach;
  call: PhoneCall | null;
  /** The call that has ended and is not wrapped up. */
  wrapUp: { id: string; name: string | undefined; number: string } | null;
  /** Why the last attempt failed. */
  fault: string | undefined;
}

export const phone = store<PhoneState>({ reach: "off", call: null, wrapUp: null, fault: undefined });

/** Changes members of the state. */
export const change = (members: Partial<PhoneState>): void => phone.set((now) => ({ ...now, ...members }));

/** Changes members of the call, if there is one. */
export const changeCall = (members: Partial<PhoneCall>): void => phone.set((now) => (now.call ? { ...now, call: { ...now.call, ...members } } : now));

/** What the page does with the telephone. The one tab that is the telephone sets it. */
export interface Controls {
  dial(target: string, name?: string): void;
  answer(): void;
  hangUp(): void;
  mute(muted: boolean): void;
  tone(digit: string): void;
}

export const controls = store<Controls | null>(null);
