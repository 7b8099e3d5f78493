import { useMutation } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { request } from "../../api/client";
import { otherParty, queries, useRead, useScope } from "../../api/query";
import { CallButton } from "../../parts/CallButton";
import { Icon, type IconName } from "../../parts/Icon";
import { asName, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { duration, moment, t, type Key } from "../../words/words";

const kinds = ["calls", "voicemail", "texts"] as const;
type Kind = (typeof kinds)[number];

interface Item { key: string; kind: Kind; icon: IconName; address: string; name: string | undefined; number: string; at: string; text: string; machine: boolean; done: ReactNode }

/** What waits for somebody: missed calls that nobody has returned, new voicemail and unread texts, the newest first. */
export function Todo() {
  const { items, error, ready } = useItems();
  const [kind, choose] = useState<Kind | undefined>();
  const shown = items.filter((i) => !kind || i.kind === kind);
  const present = kinds.filter((k) => items.some((i) => i.kind === k));
  return (
    <>
      <h2>{t("desk.todo")} <span className="soft">{ready ? items.length : ""}</span></h2>
      {error && <Problem error={error} />}
      {present.length > 1 && (
        <div className="segments views" role="group" aria-label={t("desk.todo.show")}>
          <button type="button" aria-pressed={!kind} onClick={() => choose(undefined)}>{t("filter.all")}</button>
          {present.map((k) => <button type="button" key={k} aria-pressed={k === kind} onClick={() => choose(k)}>{t(`desk.todo.${k}` as Key)}</button>)}
        </div>
      )}
      {ready && shown.length === 0 && <p className="soft">{t("desk.todo.none")}</p>}
      <ul>{shown.map((i) => <Row key={i.key} item={i} />)}</ul>
    </>
  );
}

function Row({ item: i }: { item: Item }) {
  return (
    <li>
      <span className={i.kind === "calls" ? "direction lost" : "direction"}><Icon name={i.icon} /></span>
      <div>
        <p className="line"><Link href={i.address}>{i.name ?? spaced(i.number)}</Link><time className="soft small" dateTime={i.at}>{moment(i.at)}</time></p>
        <p className="small">{i.machine && <span className="machine"><Icon name="sparkles" size={13} /> </span>}{i.text}</p>
        <p className="todo-actions"><CallButton number={i.number} name={i.name} label="desk.call_back" quiet />{i.done}</p>
      </div>
    </li>
  );
}

function useItems(): { items: Item[]; error: Error | null; ready: boolean } {
  const texts = useScope("sms:read"), answers = useScope("sms:write");
  const missed = useRead("calls.missed", { query: { handled: "false", limit: 30 } as never });
  const left = useRead("voicemail.list", { query: { status: ["new"], limit: 30 } });
  const unread = useRead("sms.conversations.list", { query: { unread: "true", limit: 30 } }, { enabled: texts });
  const messages = left.data?.data ?? [];
  const items: Item[] = [
    // A missed call that left a message is one thing to do: the message.
    ...(missed.data?.data ?? []).filter((c) => c.missed_reason !== "voicemail").map((c): Item => ({
      key: c.id, kind: "calls", icon: "missed", address: "/calls/" + c.id, ...named(otherParty(c)), at: c.started_at, text: c.ai_summary || t("desk.missed"), machine: !!c.ai_summary, done: null,
    })),
    ...messages.map((v): Item => ({
      key: v.id, kind: "voicemail", icon: "voicemail", address: "/voicemail/" + v.id, name: v.contact?.name || undefined, number: v.from_number, at: v.received_at,
      text: v.ai_summary || (v.transcript?.text ? `“${v.transcript.text}”` : t("desk.voicemail", { time: duration(v.duration_seconds) })), machine: !!v.ai_summary, done: <Done kind="voicemail" id={v.id} />,
    })),
    ...(unread.data?.data ?? []).map((c): Item => ({
      key: c.id, kind: "texts", icon: "message", address: "/messages/" + c.id, name: c.contact?.name || undefined, number: c.peer_number, at: c.last_message_at, text: c.last_message.body || t("messages.attachment"), machine: false,
      done: answers ? <Done kind="texts" id={c.id} /> : null,
    })),
  ];
  items.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  return { items, error: missed.error ?? left.error ?? unread.error, ready: missed.isSuccess && left.isSuccess && (unread.isSuccess || !texts) };
}

/** Leaves out a name without letters. */
const named = ({ name, number }: { name: string | undefined; number: string }) => ({ number, name: asName(name) });

/** Takes a message off the list: it counts as heard, or read. */
function Done({ kind, id }: { kind: "voicemail" | "texts"; id: string }) {
  const done = useMutation<unknown>({
    mutationFn: () => (kind === "voicemail" ? request("voicemail.update", { path: { id }, body: { status: "read" } }) : request("sms.conversations.update", { path: { id }, body: { read: true } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: [kind === "voicemail" ? "voicemail.list" : "sms.conversations.list"] }),
  });
  return <><button type="button" className="button quiet" disabled={done.isPending} onClick={() => done.mutate()}><Icon name="check" size={15} />{t(kind === "voicemail" ? "voicemail.mark_heard" : "desk.mark_read")}</button>{done.error && <Problem error={done.error} />}</>;
}
