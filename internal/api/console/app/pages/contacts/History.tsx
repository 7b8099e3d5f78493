import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { request, type Contact, type Schema } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries, useNames, useScope } from "../../api/query";
import { Icon, type IconName } from "../../parts/Icon";
import { More } from "../../parts/More";
import { Problem } from "../../parts/Problem";
import { duration, moment, t, textOf, type Key } from "../../words/words";

type Item = Schema<"ContactItem">;

const kinds = ["call", "message", "voicemail", "note"] as const;

/** Calls, messages, voicemail and notes of a contact, the newest first. */
export function History({ contact }: { contact: Contact }) {
  const [kind, choose] = useState<(typeof kinds)[number] | undefined>();
  const items = usePages("contacts.timeline", { path: { id: contact.id }, query: kind ? { kinds: [kind] } : {} }, { size: 30 });
  const write = useScope("contacts:write"), nameOf = useNames();
  return (
    <section className="card" aria-labelledby="history">
      <header>
        <h2 id="history">{t("contacts.history")}</h2>
        <span className="segments" role="group" aria-label={t("contacts.history.show")}>
          <button type="button" aria-pressed={!kind} onClick={() => choose(undefined)}>{t("filter.all")}</button>
          {kinds.map((k) => <button type="button" key={k} aria-pressed={k === kind} onClick={() => choose(k)}>{t(`contacts.kind.${k}` as Key)}</button>)}
        </span>
      </header>
      {write && <NewNote contactID={contact.id} />}
      {items.error && <Problem error={items.error} retry={() => void items.refetch()} />}
      {items.isSuccess && items.rows.length === 0 && <p className="empty">{t("contacts.history.none")}</p>}
      <ul className="history">{items.rows.map((i) => <Row key={i.kind + i.id} item={i} author={nameOf(i.agent?.id) ?? i.agent?.name} />)}</ul>
      {items.hasNextPage && <More busy={items.isFetchingNextPage} onMore={() => void items.fetchNextPage()} />}
    </section>
  );
}

function Row({ item: i, author }: { item: Item; author: string | undefined }) {
  const outbound = i.direction === "outbound";
  const icon: IconName = i.kind === "call" ? (i.status === "missed" ? "missed" : outbound ? "outgoing" : "incoming") : i.kind === "message" ? "message" : i.kind === "voicemail" ? "voicemail" : "note";
  const address = i.kind === "call" ? "/calls/" + i.id : i.kind === "message" && i.conversation_id ? "/messages/" + i.conversation_id : i.kind === "voicemail" ? "/voicemail/" + i.id : undefined;
  const what = i.kind === "note" ? t("contacts.kind.one.note") : t(`contacts.kind.one.${i.kind}.${outbound ? "out" : "in"}` as Key);
  const state = i.kind === "call" && i.status && i.status !== "completed" ? textOf("status." + i.status) : undefined;
  return (
    <li>
      <span className={i.status === "missed" ? "direction lost" : "direction"}><Icon name={icon} /></span>
      <div>
        <p className="line"><span>{address ? <Link href={address}>{what}</Link> : <strong>{what}</strong>}{author && <span className="soft"> · {author}</span>}{state && <span className="soft"> · {state}</span>}{!!i.talk_duration_seconds && <span className="soft"> · {duration(i.talk_duration_seconds)}</span>}</span><time className="soft small" dateTime={i.at}>{moment(i.at)}</time></p>
        {i.text && <p className="said-text">{i.kind === "call" && <span className="machine"><Icon name="sparkles" size={14} /> </span>}{i.text}</p>}
      </div>
    </li>
  );
}

/** A field for a note about the contact. */
function NewNote({ contactID }: { contactID: string }) {
  const [body, setBody] = useState("");
  const add = useMutation({
    mutationFn: () => request("contacts.notes.add", { path: { id: contactID }, body: { body: body.trim() } }),
    onSuccess: () => {
      setBody("");
      return queries.invalidateQueries({ queryKey: ["contacts.timeline"] });
    },
  });
  return (
    <form className="new-note inside" onSubmit={(e) => { e.preventDefault(); if (body.trim() !== "") add.mutate(); }}>
      <label className="field"><span>{t("notes.new")}</span><textarea value={body} onChange={(e) => setBody(e.currentTarget.value)} /></label>
      {add.error && <Problem error={add.error} />}
      <button type="submit" className="button" disabled={body.trim() === "" || add.isPending}>{t("notes.add")}</button>
    </form>
  );
}
