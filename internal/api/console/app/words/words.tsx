import { i18n, type Messages } from "@lingui/core";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import type { ReactNode } from "react";
import { store, useStore } from "../live/store";
import en from "./en.json";
import translations from "./translations";

/** A key of the catalogues. en.json is the source; a test compares the keys of the others with it. */
export type Key = keyof typeof en;

/** The tag of a language. */
export type Language = string;

/** The languages by tag, each with its own name for itself. */
export const languages: Record<Language, string> = Object.fromEntries(["en", ...Object.keys(translations)].map((tag) => [tag, ownName(tag)]));

function ownName(tag: Language): string {
  const name = new Intl.DisplayNames(tag, { type: "language" }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

/** Loads the texts of a language. English is part of the script and stands for what is not translated; the others are loaded when they are chosen. */
async function load(tag: Language): Promise<Messages> { return { ...en, ...(await translations[tag]?.())?.default }; }

i18n.setMessagesCompiler(compileMessage);

const language = store<Language>("en");

/** Loads the language that this browser prefers. */
export async function startLanguage(): Promise<void> { await apply(preferred()); }

function preferred(): Language {
  for (const wanted of [localStorage.getItem("soniq-language") ?? "", ...navigator.languages]) {
    const short = wanted.slice(0, 2);
    if (short in languages) return short;
  }
  return "en";
}

async function apply(l: Language): Promise<void> {
  i18n.loadAndActivate({ locale: l, messages: await load(l) });
  document.documentElement.lang = l;
  language.set(l);
}

/** Shows the console in another language, if it is a known one, and stores it in this browser for the next start. */
export function takeLanguage(kept: unknown): void {
  if (typeof kept !== "string" || !(kept in languages) || kept === language.get()) return;
  localStorage.setItem("soniq-language", kept);
  void apply(kept);
}

/** Returns the text of a key. */
export function t(key: Key, values?: Record<string, string | number>): string { return i18n._(key, values); }

/** Returns the text of a key that is made at run time, such as that of a state; undefined if there is none. */
export function textOf(key: string): string | undefined { return key in en ? i18n._(key) : undefined; }

export const useLanguage = (): Language => useStore(language);

/** Renders its content again when the language changes. */
export function Words({ children }: { children: (language: Language) => ReactNode }) { return <>{children(useLanguage())}</>; }

/** Returns a length of time, such as 6:12 or 1:02:03. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds)), pad = (n: number) => String(n).padStart(2, "0");
  return s < 3600 ? `${Math.floor(s / 60)}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`;
}

/** The language with the country that the browser prefers for it, such as en-GB: they write dates differently. */
const locale = (): string => navigator.languages.find((l) => l.startsWith(language.get())) ?? language.get();

const formatted = (at: string | number, options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale(), options).format(new Date(at));

/** Returns the time of day with seconds. */
export const clock = (at: string | number): string => formatted(at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Returns day and time, such as "today 09:31", or "Fri, 21 Nov, 09:31". */
export function moment(at: string, seconds = false): string {
  const time: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) };
  const day = new Date(at), today = new Date();
  if (day.toDateString() === today.toDateString()) return t("time.today", { time: formatted(at, time) });
  const year: Intl.DateTimeFormatOptions = day.getFullYear() === today.getFullYear() ? {} : { year: "numeric" };
  return formatted(at, { weekday: "short", day: "numeric", month: "short", ...year, ...time });
}

/** Returns a date, such as 24 Nov 2027. */
export const date = (at: string): string => formatted(at, { day: "numeric", month: "short", year: "numeric" });

/** Returns a number with digits behind the point. */
export const number = (n: number, digits = 0): string =>
  new Intl.NumberFormat(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(n);
