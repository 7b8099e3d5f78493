import { useEffect, useState } from "react";
import { useRead, useScope } from "../api/query";

/** Somebody or something that can be called, or that a call can be handed to. */
export interface Target {
  id: string;
  name: string;
  /** What is shown beside the name: a number, or nothing. */
  number: string;
  /** What the API calls it in a transfer. */
  to: string;
  kind: "person" | "contact" | "queue";
}

/** Whether a text may be the beginning of a name. Then it is searched for. */
export const isName = (text: string): boolean => /\p{L}/u.test(text);

const waitBeforeSearch = 150;

/** Colleagues and contacts whose names begin with a text, and queues if they are wanted. */
export function useTargets(text: string, withQueues = false): Target[] {
  const [q, setQ] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQ(isName(text) ? text.trim() : ""), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [text]);
  const agents = useRead("agents.list", { query: { q, limit: 5 } }, { enabled: q !== "", keep: true });
  const contacts = useRead("contacts.list", { query: { q, limit: 8 } }, { enabled: useScope("contacts:read") && q !== "", keep: true });
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: useScope("queues:read") && withQueues, staleTime: 5000 });
  if (q === "") return [];
  const people: Target[] = (agents.data?.data ?? []).flatMap((a) => (a.extension ? [{ id: a.id, name: a.name, number: a.extension, to: "user:" + a.id, kind: "person" }] : []));
  const others: Target[] = (contacts.data?.data ?? []).flatMap((c) => {
    const phoneOf = c.phones.find((p) => p.primary) ?? c.phones[0];
    return phoneOf ? [{ id: c.id, name: c.name || c.company, number: phoneOf.number, to: phoneOf.number, kind: "contact" }] : [];
  });
  const lines: Target[] = (withQueues ? queues.data?.data ?? [] : []).filter((x) => x.name.toLowerCase().includes(q.toLowerCase()))
    .map((x) => ({ id: x.id, name: x.name, number: "", to: "queue:" + x.id, kind: "queue" }));
  return [...people, ...lines, ...others];
}

/** Returns what the API calls a number that was typed, or undefined if the text is none. Short numbers are extensions. */
export function typedNumber(text: string): string | undefined {
  if (!/^[+\d*#()\s./-]+$/.test(text)) return undefined;
  const digits = text.replace(/[^\d+*#]/g, "");
  return digits === "" ? undefined : /^\d{2,6}$/.test(digits) ? "ext:" + digits : digits;
}
