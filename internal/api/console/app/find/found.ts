import { useEffect, useState } from "react";
import { otherParty, useRead, useScope } from "../api/query";
import type { IconName } from "../parts/Icon";
import { spaced } from "../parts/PhoneNumber";
import { presenceText } from "../parts/presence";
import { useHasPage } from "../shell/Shell";
import { moment, t } from "../words/words";

/** Something that Find offers. act may return a promise, which is refused with the reason if it fails. */
export interface Found { id: string; icon: IconName; name: string; detail?: string; act: () => unknown }

/** A kind of what Find offers. */
export interface Section { id: "pages" | "actions" | "people" | "contacts" | "queues" | "numbers" | "calls"; found: Found[] }

/** Milliseconds after the last key until the server is asked. */
const waitBeforeSearch = 150;

const most = 5;

/** The records of the server that match a text, one request for each kind. failed has the first failure. */
export function useRecords(text: string, go: (address: string) => void): { sections: Section[]; busy: boolean; failed: Error | null } {
  const q = useSettled(text.trim());
  const has = useHasPage();
  const asked = q.length > 1, digits = q.replace(/[^+\d]/g, ""), isNumber = /^[+\d()\s./-]+$/.test(q) && digits.length > 2;
  const seesCalls = useScope("calls:read"), seesQueues = useScope("queues:read");
  const people = useRead("agents.list", { query: { q, limit: most } }, { enabled: asked && (seesCalls || seesQueues), keep: true });
  const contacts = useRead("contacts.list", { query: { q, limit: most } }, { enabled: useScope("contacts:read") && asked, keep: true });
  const queues = useRead("queues.list", { query: { q, limit: most } }, { enabled: seesQueues && asked, keep: true });
  const numbers = useRead("numbers.list", { query: { q: isNumber ? digits : q, limit: most } }, { enabled: useScope("numbers:admin") && asked, keep: true });
  const calls = useRead("calls.list", { query: { phone: digits, limit: most } }, { enabled: seesCalls && isNumber, keep: true });
  const all = [people, contacts, queues, numbers, calls];
  const calledBy = (number: string) => "/calls?phone=" + encodeURIComponent(number);
  const sections: Section[] = !asked ? [] : [
    { id: "people", found: (people.data?.data ?? []).map((a) => ({
      id: a.id, icon: "user", name: a.name, detail: [a.extension, presenceText(a.presence)].filter(Boolean).join(" · "),
      act: () => go("/team?q=" + encodeURIComponent(a.name)),
    })) },
    { id: "contacts", found: (contacts.data?.data ?? []).flatMap((c): Found[] => {
      const number = (c.phones.find((p) => p.primary) ?? c.phones[0])?.number;
      const address = has("/contacts") ? "/contacts/" + c.id : number && seesCalls ? calledBy(number) : undefined;
      if (!address) return [];
      return [{ id: c.id, icon: "users", name: c.name, detail: [c.company === c.name ? "" : c.company, number ? spaced(number) : ""].filter(Boolean).join(" · "), act: () => go(address) }];
    }) },
    { id: "queues", found: (queues.data?.data ?? []).map((k) => ({
      id: k.id, icon: "headphones", name: k.name, detail: k.extension ?? "", act: () => go(has("/queues") ? "/queues/" + k.id : "/calls?queue_id=" + k.id),
    })) },
    { id: "numbers", found: (numbers.data?.data ?? []).map((n) => ({
      id: n.id, icon: "keypad", name: spaced(n.number), detail: n.label, act: () => go(has("/numbers") ? "/numbers/" + n.id : calledBy(n.number)),
    })) },
    { id: "calls", found: !isNumber ? [] : (calls.data?.data ?? []).map((c) => {
      const { name, number } = otherParty(c);
      return { id: c.id, icon: c.direction === "outbound" ? "outgoing" : c.status === "missed" ? "missed" : "incoming", name: name ?? spaced(number),
        detail: [name ? spaced(number) : "", t(`direction.${c.direction}`), moment(c.started_at)].filter(Boolean).join(" · "), act: () => go("/calls/" + c.id) };
    }) },
  ];
  return { sections, busy: q !== text.trim() || all.some((r) => r.isFetching), failed: all.find((r) => r.error)?.error ?? null };
}

/** Returns a text that has not changed for a moment. */
function useSettled(text: string): string {
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
