import { request } from "../api/client";
import { queries, useMe, useScope } from "../api/query";
import { useStore } from "../live/store";
import { presenceName } from "../parts/presence";
import { startPhone } from "../phone/phone";
import { controls, phone } from "../phone/state";
import { setLanguage } from "../shell/language";
import { useEntries, useHasPage } from "../shell/Shell";
import { setTheme, themes } from "../shell/theme";
import { languages, t, type Key, type Language } from "../words/words";
import type { Found, Section } from "./found";

const states = ["available", "away", "dnd"] as const;

/** The pages and actions of the person that match a text. */
export function useCommands(text: string, go: (address: string) => void): Section[] {
  const { user } = useMe();
  const entries = useEntries(), works = useScope("calls:write");
  const { reach, call } = useStore(phone), act = useStore(controls);
  const become = (status: string) => request("agents.presence.set", { path: { id: user?.id ?? "" }, body: { status } })
    .then(() => void queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("agents.") }));
  const pages: Found[] = [
    ...entries.map((e): Found => ({ id: e.path, icon: e.icon, name: t(e.name), act: () => go(e.path) })),
    ...(user ? [{ id: "/profile", icon: "user" as const, name: t("profile.title"), act: () => go("/profile") }] : []),
    { id: "account", icon: "user", name: t("account.page"), act: () => location.assign("/account") },
    { id: "reference", icon: "code", name: t("account.reference"), act: () => { window.open("/docs", "_blank", "noreferrer"); } },
  ];
  const actions: Found[] = [
    ...(user ? states.map((status): Found => ({ id: status, icon: "user", name: t("find.become", { state: presenceName(status) }), act: () => become(status) })) : []),
    ...(user && works && reach === "off" ? [{ id: "phone", icon: "headphones" as const, name: t("phone.turn_on"), act: () => void startPhone(user.id) }] : []),
    ...themes.map((name): Found => ({ id: "theme-" + name, icon: "activity", name: `${t("theme")}: ${t(`theme.${name}` as Key)}`, act: () => setTheme(name) })),
    ...Object.entries(languages).map(([id, native]): Found => ({ id: "language-" + id, icon: "code", name: `${t("language")}: ${native}`, act: () => setLanguage(id as Language) })),
  ];
  const number = text.trim(), has = useHasPage();
  if (has("/messages") && /^\+[\d()\s./-]{6,}$/.test(number)) actions.unshift({ id: "text", icon: "message", name: t("find.text", { number }), act: () => go("/messages/new?to=" + encodeURIComponent(number)) });
  if (act && !call && /^[+\d*#][\d*#()\s./-]+$/.test(number)) actions.unshift({ id: "dial", icon: "phone", name: t("desk.call_person", { name: number }), act: () => act.dial(number) });
  const wanted = fold(text).split(/\s+/).filter(Boolean);
  const matches = (f: Found) => f.id === "dial" || f.id === "text" || wanted.every((word) => fold(f.name).includes(word));
  return [{ id: "pages", found: pages.filter(matches) }, { id: "actions", found: actions.filter(matches).slice(0, wanted.length > 0 ? 8 : 4) }];
}

/** Returns a text without case and without marks on letters, so that "ubersicht" finds "Übersicht". */
const fold = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
