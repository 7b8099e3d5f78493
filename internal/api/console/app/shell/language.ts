import { changePreferences } from "../api/preferences";
import { takeLanguage, type Language } from "../words/words";

/** Shows the console in another language, and keeps it for the person in all browsers. */
export function setLanguage(chosen: Language): void {
  takeLanguage(chosen);
  // A refusal shows by itself: what the server keeps is read and applied again.
  changePreferences((before) => ({ ...before, language: chosen })).catch(() => undefined);
}
