import { useEffect } from "react";
import { usePreferences } from "../api/preferences";
import { takeLanguage } from "../words/words";
import { takeSound } from "../phone/sound";
import { takeTheme } from "./theme";

/** Applies the theme, the language and the ringtone that the server keeps for the person. */
export function Kept() {
  const kept = usePreferences();
  useEffect(() => { takeTheme(kept?.theme); }, [kept?.theme]);
  useEffect(() => { takeLanguage(kept?.language); }, [kept?.language]);
  useEffect(() => { if (kept) takeSound(kept); }, [kept]);
  return null;
}
