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

/**
 * Colleagues and contacts that a text finds, and queues if they are wanted. While the server is asked, those of the text before remain that
 * have the new text in their name: nobody else is offered.
 */
export function useTargets(text: string, withQueues = false): { targets: Target[]; busy: boolean } {
  const [q, setQ] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQ(isName(text) ? text.trim() : ""), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [text]);
  const agents = useRead("agents.list", { query: { q, limit: 5 } }, { enabled: q !== "", keep: true });
  const contacts = useRead("contacts.list", { query: { q, limit: 8 } }, { enabled: useScope("contacts:read") && q !== "", keep: true });
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: useScope("queues:read") && withQueues, staleTime: 5000 });
  const wanted = isName(text) ? text.trim() : "", late = q !== wanted;
  if (wanted === "") return { targets: [], busy: false };
  const fits = (stale: boolean) => ({ name }: Target) => !stale || name.toLowerCase().includes(wanted.toLowerCase());
  const people: Target[] = (agents.data?.data ?? []).flatMap((a) => (a.extension ? [{ id: a.id, name: a.name, number: a.extension, to: "user:" + a.id, kind: "person" }] : []));
  const others: Target[] = (contacts.data?.data ?? []).flatMap((c) => {
    const phoneOf = c.phones.find((p) => p.primary) ?? c.phones[0];
    return phoneOf ? [{ id: c.id, name: c.name || c.company, number: phoneOf.number, to: phoneOf.number, kind: "contact" }] : [];
  });
  const lines: Target[] = (withQueues ? queues.data?.data ?? [] : []).map((x) => ({ id: x.id, name: x.name, number: "", to: "queue:" + x.id, kind: "queue" }));
  return {
    targets: [...people.filter(fits(late || agents.isPlaceholderData)), ...lines.filter(fits(true)), ...others.filter(fits(late || contacts.isPlaceholderData))],
    busy: late || agents.isFetching || contacts.isFetching,
  };
}

/** Returns what the API calls a number that was typed, or undefined if the text is none. Short numbers are extensions. */
export function typedNumber(text: string): string | undefined {
  if (!/^[+\d*#()\s./-]+$/.test(text)) return undefined;
  const digits = text.replace(/[^\d+*#]/g, "");
  return digits === "" ? undefined : /^\d{2,6}$/.test(digits) ? "ext:" + digits : digits;
}
