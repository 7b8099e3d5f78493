import { store } from "../live/store";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

export const theme = store<Theme>("system");

/** Applies the theme that was chosen in this browser. */
export function startTheme(): void {
  const kept = localStorage.getItem("soniq-theme");
  if (themes.some((name) => name === kept)) apply(kept as Theme);
}

export function setTheme(chosen: Theme): void {
  localStorage.setItem("soniq-theme", chosen);
  apply(chosen);
}

function apply(chosen: Theme): void {
  if (chosen === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", chosen);
  theme.set(chosen);
}
