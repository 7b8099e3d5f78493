import { changePreferences } from "../api/preferences";
import { store } from "../live/store";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

export const theme = store<Theme>("system");

const isTheme = (name: unknown): name is Theme => themes.some((known) => known === name);

/** Applies the theme that was shown last in this browser, before the server is asked. */
export function startTheme(): void {
  const kept = localStorage.getItem("soniq-theme");
  if (isTheme(kept)) apply(kept);
}

/** Shows a theme, and keeps it for the person in all browsers. */
export function setTheme(chosen: Theme): void {
  takeTheme(chosen);
  // A refusal shows by itself: what the server keeps is read and applied again.
  changePreferences((before) => ({ ...before, theme: chosen })).catch(() => undefined);
}

/** Shows the theme that the server keeps, if it is a known one. */
export function takeTheme(kept: unknown): void {
  if (!isTheme(kept) || kept === theme.get()) return;
  localStorage.setItem("soniq-theme", kept);
  apply(kept);
}

function apply(chosen: Theme): void {
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
  theme.set(chosen);
}
