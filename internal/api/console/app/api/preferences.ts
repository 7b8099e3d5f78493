import { request, soniq, SoniqError } from "./client";
import { queries, useRead } from "./query";

/** What the console keeps for a person on the server. Members that this page does not know are kept too. */
export interface Preferences {
  theme?: string;
  language?: string;
  /** Ids of colleagues, in the order in which they were chosen. */
  favourites?: string[];
  /** Whether the list of what a new organisation needs was put away. */
  startHidden?: boolean;
  ringtone?: string;
  /** From 0 to 1. */
  ringVolume?: number;
}

const key = ["me.preferences.get", {}];

/** The preferences of the person; undefined until they are known. */
export function usePreferences(): Preferences | undefined {
  return useRead("me.preferences.get", undefined, { staleTime: 60_000 }).data as Preferences | undefined;
}

/** How often a change is made again after another window has changed the preferences. */
const attempts = 4;

let last: Promise<unknown> = Promise.resolve();

/** Changes the preferences. What is shown changes at once; if the server refuses, it changes back. */
export function changePreferences(change: (before: Preferences) => Preferences): Promise<void> {
  queries.setQueryData(key, (before: Preferences | undefined) => change(before ?? {}));
  const done = last.then(() => store(change)).catch((cause: unknown) => {
    void queries.invalidateQueries({ queryKey: key });
    throw cause;
  });
  last = done.catch(() => undefined);
  return done;
}

/** Reads the preferences, changes them, and writes them if nobody else has written in between. */
async function store(change: (before: Preferences) => Preferences): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const read = await soniq.response("me.preferences.get");
    const before = (await read.json()) as Preferences;
    try {
      const body = change(before) as Record<string, unknown>;
      await request("me.preferences.set", { body, headers: { "If-Match": read.headers.get("etag") ?? "*" } } as never);
      return;
    } catch (cause) {
      if (!(cause instanceof SoniqError) || cause.status !== 412 || attempt === attempts) throw cause;
    }
  }
}
