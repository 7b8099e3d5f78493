import type { Agent } from "../api/client";
import { textOf } from "../words/words";

type Status = Agent["presence"]["status"];

/** Colours of the states. A word always stands beside the colour. */
export const presenceColours: Record<Status, string> = {
  available: "green", ringing: "amber", busy: "accent", wrap_up: "amber", away: "grey", dnd: "red", offline: "grey",
};

/** Returns the name of a state. */
export const presenceName = (status: Status): string => textOf("presence." + status) ?? status;
