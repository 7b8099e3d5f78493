import { playRingtone } from "./sound";

/** How often the ringtone sounds: for about three minutes. */
const times = 60;

/** The part of the chosen volume that is left during a call. */
const quietly = 0.2;

/** Rings until the returned function is called; during a call it is quiet. The title of the tab shows it too. */
export function ring(quiet = false): () => void {
  const title = document.title;
  document.title = "☎ " + title;
  let end: (() => void) | undefined;
  try {
    end = playRingtone(times, quiet ? quietly : 1);
  } catch {
    // no device for sound: the card is seen
  }
  return () => {
    if (document.title.startsWith("☎ ")) document.title = document.title.slice(2);
    end?.();
    end = undefined;
  };
}
