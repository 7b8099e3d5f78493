import { playRingtone } from "./sound";

/** How often the ringtone sounds: for about three minutes. */
const times = 60;

/** Rings until the returned function is called. The title of the tab shows it too. */
export function ring(): () => void {
  const title = document.title;
  document.title = "☎ " + title;
  let end: (() => void) | undefined;
  try {
    end = playRingtone(times);
  } catch {
    // no device for sound: the card is seen
  }
  return () => {
    if (document.title.startsWith("☎ ")) document.title = document.title.slice(2);
    end?.();
    end = undefined;
  };
}
