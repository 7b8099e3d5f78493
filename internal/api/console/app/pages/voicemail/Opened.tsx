import { useMutation } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { Link, useLocation } from "wouter";
import { request, type Input, type Voicemail } from "../../api/client";
import { queries, useRead, useReadIfPresent, useScope } from "../../api/query";
import { useStore } from "../../live/store";
import { AddContact } from "../../parts/AddContact";
import { Assignee } from "../../parts/Assignee";
import { Avatar } from "../../parts/Avatar";
import { CallButton } from "../../parts/CallButton";
import { Confirm } from "../../parts/Confirm";
import { Icon } from "../../parts/Icon";
import { PhoneNumber, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { TextButton } from "../../parts/TextButton";
import { duration, moment, t, type Key } from "../../words/words";
import { useMoment } from "../call/Conversation";
import { Player, usePlayer } from "../call/Player";
import { WhatWasSaid } from "../call/WhatWasSaid";

type Patch = Input<"voicemail.update">["body"];

const refresh = () => queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("voicemail.") });

/** One voicemail message: its sound with its words, who looks after it, and what can be done. */
export function Opened({ id, back }: { id: string; back: string }) {
  const found = useRead("voicemail.get", { path: { id } });
  const write = useScope("calls:write");
  const change = useMutation({
    mutationFn: (body: Patch) => request("voicemail.update", { path: { id }, body }),
    onSuccess: (v) => {
      queries.setQueryData(["voicemail.get", { path: { id } }], v);
      return refresh();
    },
  });
  if (found.error && !found.data) return <div className="thread"><Back to={back} /><Problem error={found.error} retry={() => void found.refetch()} /></div>;
  if (!found.data) return <p className="loading" role="status">{t("loading")}</p>;
  const v = found.data;
  if (v.status === "deleted") return <div className="thread"><Back to={back} /><p className="empty">{t("voicemail.deleted")}</p></div>;
  return (
    <div className="thread">
      <Head message={v} back={back} busy={change.isPending} onChange={write ? (body) => change.mutate(body) : undefined} />
      <div className="log voicemail">
        {change.error && <Problem error={change.error} />}
        <Content message={v} onHeard={write && v.status === "new" ? () => change.mutate({ status: "read" }) : undefined} />
      </div>
    </div>
  );
}

const Back = ({ to }: { to: string }) => <Link className="back" href={to}><Icon name="left" size={16} />{t("voicemail.title")}</Link>;

function Head({ message: v, back, busy, onChange }: { message: Voicemail; back: string; busy: boolean; onChange: ((body: Patch) => void) | undefined }) {
  const name = v.contact?.name || undefined;
  return (
    <header className="thread-head">
      <Back to={back} />
      <div className="person">
        <Avatar name={name ?? v.from_number} />
        <div>
          <h1>{name ? (v.contact?.id.startsWith("con_") ? <Link href={"/contacts/" + v.contact.id}>{name}</Link> : name) : <PhoneNumber number={v.from_number} />}</h1>
          <p className="facts small">
            {name && <PhoneNumber number={v.from_number} />}<span>{moment(v.received_at)}</span><span className="figures">{duration(v.duration_seconds)}</span><span>{t("voicemail.for", { mailbox: v.mailbox.name })}</span>
            <Urgency of={v} />
          </p>
        </div>
      </div>
      <div className="tools">
        <Assignee id={v.assignee_id} busy={busy} onChoose={onChange && ((id) => onChange({ assignee_id: id }))} />
        <CallButton number={v.from_number} name={name} label="desk.call_back" />
        <TextButton number={v.from_number} name={name} />
        {!v.contact && <AddContact number={v.from_number} />}
        {onChange && (v.status === "new"
          ? <button type="button" className="button" onClick={() => onChange({ status: "read" })}><Icon name="check" size={16} />{t("voicemail.mark_heard")}</button>
          : <button type="button" className="button" onClick={() => onChange({ status: "new" })}>{t("voicemail.mark_new")}</button>)}
        {onChange && <Delete message={v} back={back} />}
      </div>
    </header>
  );
}

/** How urgent the words are. A machine has judged it. */
function Urgency({ of: { urgency } }: { of: Voicemail }) {
  if (!urgency || urgency === "low") return null;
  return <span className={urgency === "high" ? "tag red" : "tag"} title={t("voicemail.urgency.help")}><span className="machine"><Icon name="sparkles" size={13} /></span>{t(`voicemail.urgency.${urgency}` as Key)}</span>;
}

function Delete({ message: v, back }: { message: Voicemail; back: string }) {
  const [, go] = useLocation();
  const remove = useMutation({
    mutationFn: () => request("voicemail.delete", { path: { id: v.id } }),
    onSuccess: async () => {
      go(back);
      queries.removeQueries({ queryKey: ["voicemail.get", { path: { id: v.id } }] });
      await queries.invalidateQueries({ queryKey: ["voicemail.list"] });
    },
  });
  const name = v.contact?.name || spaced(v.from_number);
  return (
    <Confirm label={t("voicemail.delete")} icon="trash" title={t("voicemail.delete.title", { name })} action={t("voicemail.delete")} busy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()}>
      <p>{t("voicemail.delete.help")}</p>
    </Confirm>
  );
}

/** The sound and the words. The words follow the sound where the engine told their times. */
function Content({ message: v, onHeard }: { message: Voicemail; onHeard: (() => void) | undefined }) {
  const path = { id: v.call_id };
  const own = !!v.transcript?.id; // then the transcript of the call is that of the message
  const transcript = useReadIfPresent("calls.transcript", { path, query: { words: true } }, own);
  const segments = useMemo(() => [...(transcript.data?.segments ?? [])].sort((a, b) => a.start_ms - b.start_ms), [transcript.data]);
  const player = usePlayer(`/api/v1/voicemail/${v.id}/audio`);
  const playing = useStore(player.playing), heard = useRef(onHeard);
  heard.current = onHeard;
  useEffect(() => { if (playing) heard.current?.(); }, [playing]);
  useMoment(true, player.seek);
  const speakers = () => v.contact?.name || spaced(v.from_number);
  return (
    <>
      <Player player={player} recording={{ call_id: v.call_id, duration_seconds: v.duration_seconds, pauses: [] }} segments={segments} speakers={speakers} single />
      {v.ai_summary && <Summary message={v} own={own} />}
      {transcript.error && <Problem error={transcript.error} />}
      {segments.length > 0
        ? <WhatWasSaid segments={segments} engine={transcript.data?.engine} player={player} speakers={speakers} />
        : <Words message={v} />}
      <p><Link href={"/calls/" + v.call_id}>{t("voicemail.call")}</Link></p>
    </>
  );
}

function Words({ message: v }: { message: Voicemail }) {
  if (!v.transcript) return <p className="card empty">{t("voicemail.words.none")}</p>;
  if (v.transcript.text) return <section className="card" aria-labelledby="said"><header><h2 id="said">{t("words.title")}</h2></header><p className="inside">{v.transcript.text}</p></section>;
  return <p className="card empty">{t(`voicemail.words.${v.transcript.status}` as Key)}</p>;
}

/** What a machine wrote about the message, with its engine where it is known. */
function Summary({ message: v, own }: { message: Voicemail; own: boolean }) {
  const summary = useReadIfPresent("calls.summary", { path: { id: v.call_id } }, own);
  return (
    <section className="card" aria-labelledby="summary">
      <header><h2 id="summary"><span className="machine"><Icon name="sparkles" /></span> {t("summary.title")}</h2><span className="soft">{summary.data?.engine ? t("summary.engine", { engine: summary.data.engine.name }) : t("voicemail.machine")}</span></header>
      <p className="inside">{v.ai_summary}</p>
    </section>
  );
}
