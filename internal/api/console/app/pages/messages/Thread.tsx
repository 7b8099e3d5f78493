import { useMutation } from "@tanstack/react-query";
import { useEffect, useLayoutEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { request, type Conversation, type Input, type Message } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries, useNames, useRead, useScope } from "../../api/query";
import { AddContact } from "../../parts/AddContact";
import { Assignee } from "../../parts/Assignee";
import { Avatar } from "../../parts/Avatar";
import { CallButton } from "../../parts/CallButton";
import { Icon } from "../../parts/Icon";
import { PhoneNumber, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { t } from "../../words/words";
import { Bubble } from "./Bubble";
import { Composer } from "./Composer";
import { OptedOut } from "./OptedOut";

type Patch = Input<"sms.conversations.update">["body"];

/** One conversation: who it is with, its messages, and a field for the next one. */
export function Thread({ id, back }: { id: string; back: string }) {
  const found = useRead("sms.conversations.get", { path: { id } });
  const write = useScope("sms:write");
  const change = useMutation({
    mutationFn: (body: Patch) => request("sms.conversations.update", { path: { id }, body }),
    onSuccess: (c) => {
      queries.setQueryData(["sms.conversations.get", { path: { id } }], c);
      return queries.invalidateQueries({ queryKey: ["sms.conversations.list"] });
    },
  });
  const { mutate } = change, unread = found.data?.unread_count ?? 0;
  useSeen(write && unread > 0, unread, () => mutate({ read: true }));
  if (found.error && !found.data) return <div className="thread"><Back to={back} /><Problem error={found.error} retry={() => void found.refetch()} /></div>;
  if (!found.data) return <p className="loading" role="status">{t("loading")}</p>;
  const c = found.data;
  return (
    <div className="thread">
      <Head conversation={c} back={back} busy={change.isPending} onChange={write ? (body) => mutate(body) : undefined} />
      {change.error && <Problem error={change.error} />}
      <Log conversation={c} />
      {c.opted_out ? <OptedOut conversation={c} /> : write && (c.number_id ? <Composer key={c.id} draft={c.id} from={c.org_number} to={c.peer_number} /> : <p className="closing soft">{t("messages.phones")}</p>)}
    </div>
  );
}

/** Calls a function when unread messages are seen: at once, or when the page comes to the front. */
function useSeen(unread: boolean, count: number, seen: () => void): void {
  const tell = useRef(seen);
  tell.current = seen;
  useEffect(() => {
    if (!unread) return;
    const look = () => { if (document.visibilityState === "visible") tell.current(); };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [unread, count]);
}

const Back = ({ to }: { to: string }) => <Link className="back" href={to}><Icon name="left" size={16} />{t("messages.title")}</Link>;

function Head({ conversation: c, back, busy, onChange }: { conversation: Conversation; back: string; busy: boolean; onChange: ((body: Patch) => void) | undefined }) {
  const [, go] = useLocation();
  const name = c.contact?.name || undefined;
  return (
    <header className="thread-head">
      <Back to={back} />
      <div className="person">
        <Avatar name={name ?? c.peer_number} />
        <div>
          <h1>{name ? (c.contact?.id.startsWith("con_") ? <Link href={"/contacts/" + c.contact.id}>{name}</Link> : name) : <PhoneNumber number={c.peer_number} />}</h1>
          <p className="facts small">
            {name && <PhoneNumber number={c.peer_number} />}{c.contact?.company && c.contact.company !== name && <span>{c.contact.company}</span>}
            <span>{t("messages.over", { number: spaced(c.org_number) })}</span>
            {c.status === "closed" && <span className="tag">{t("messages.closed")}</span>}
          </p>
        </div>
      </div>
      <div className="tools">
        <Assignee id={c.assignee_id} busy={busy} onChoose={onChange && ((id) => onChange({ assignee_id: id }))} />
        <CallButton number={c.peer_number} name={name} />
        {!c.contact && <AddContact number={c.peer_number} />}
        {onChange && <button type="button" className="button" onClick={() => { onChange({ read: false }); go(back); }}>{t("messages.mark_unread")}</button>}
        {onChange && <button type="button" className="button" onClick={() => onChange({ status: c.status === "closed" ? "open" : "closed" })}>{t(c.status === "closed" ? "messages.reopen" : "messages.close")}</button>}
      </div>
    </header>
  );
}

/** The messages, the newest at the bottom. Older ones are read when the beginning is reached. */
function Log({ conversation: c }: { conversation: Conversation }) {
  const log = usePages("sms.conversations.messages", { path: { id: c.id } });
  const box = useRef<HTMLDivElement>(null), atEnd = useRef(true), height = useRef(0);
  const nameOf = useNames();
  const all = [...log.rows].reverse();
  const newest = log.rows[0]?.id, oldest = all[0]?.id;
  useLayoutEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [newest, log.dataUpdatedAt]);
  useLayoutEffect(() => { // older messages appear above what is read
    const b = box.current;
    if (b && !atEnd.current) b.scrollTop += b.scrollHeight - height.current;
    height.current = b?.scrollHeight ?? 0;
  }, [oldest]);
  useEffect(() => { // the end stays in view when the window or the field below changes
    const b = box.current;
    if (!b) return;
    const resized = new ResizeObserver(() => { if (atEnd.current) b.scrollTop = b.scrollHeight; });
    resized.observe(b);
    return () => resized.disconnect();
  }, []);
  const scrolled = () => {
    const b = box.current;
    if (!b) return;
    atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 60;
    height.current = b.scrollHeight;
    if (b.scrollTop < 80 && log.hasNextPage && !log.isFetchingNextPage) void log.fetchNextPage();
  };
  const name = c.contact?.name || spaced(c.peer_number);
  return (
    <div className="log" ref={box} onScroll={scrolled} role="log" aria-label={t("messages.log", { name })} tabIndex={0}>
      {log.error && <Problem error={log.error} retry={() => void log.refetch()} />}
      {log.hasNextPage && <p className="more"><button type="button" className="button" disabled={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>{t("messages.older")}</button></p>}
      {all.map((m, i) => <Bubble key={m.id} message={m} last={isLast(m, all[i + 1])} author={nameOf(m.user_id)} />)}
    </div>
  );
}

/** Whether a message is the last of those of one side within a few minutes. The others show no time. */
function isLast(m: Message, next: Message | undefined): boolean {
  return !next || next.direction !== m.direction || next.user_id !== m.user_id || Date.parse(next.created_at) - Date.parse(m.created_at) > 300_000;
}
