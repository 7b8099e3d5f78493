import type { Agent } from "../api/client";
import { textOf } from "../words/words";

type Status = Agent["presence"]["status"];

/** Colours of the states. A word always stands beside the colour. */
export const presenceColours: Record<Status, string> = {
  available: "green", ringing: "amber", busy: "accent", wrap_up: "amber", away: "grey", dnd: "red", offline: "grey",
};

/** Returns why somebody is in a state: the words of the person, or those for a reason of the platform. */
export const reasonName = (reason: string | null | undefined): string => (reason ? (textOf("presence.reason." + reason) ?? reason) : "");

/** Returns the name of a state, with the reason why. */
export const presenceText = ({ status, reason }: Agent["presence"]): string => [presenceName(status), reasonName(reason)].filter(Boolean).join(" · ");

/** Returns the name of a state. */
export const presenceName = (status: Status): string => textOf("presence." + status) ?? status;
