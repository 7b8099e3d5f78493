import { useState } from "react";
import { ListBox, ListBoxItem } from "react-aria-components";
import type { Call, Result } from "../../api/client";
import { useNames, useRead, useReadIfPresent } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { clock, duration, number, t } from "../../words/words";
import { lanesOf, read, type Lane, type Message } from "./messages";

type Leg = NonNullable<Result<"calls.get">["legs"]>[number];

/** The SIP messages of a call: a ladder with one lane for each party, or their text. */
export function Signalling({ call }: { call: Call }) {
  const trace = useReadIfPresent("calls.trace", { path: { id: call.id } });
  const legs = useRead("calls.get", { path: { id: call.id }, query: { expand: ["legs"] } });
  const nameOf = useNames();
  const [asText, showText] = useState(false), [chosen, choose] = useState<string>();
  if (trace.error) return <Problem error={trace.error} retry={() => void trace.refetch()} />;
  if (trace.isPending || legs.isPending) return <p className="loading" role="status">{t("loading")}</p>;
  const all = (trace.data?.messages ?? []).map(read);
  if (all.length === 0) return <p className="card empty">{t("ladder.none")}</p>;
  const lanes = lanesOf(all, legs.data?.legs ?? [], (leg) => partyName(leg, nameOf));
  const shown = all.find((m) => m.key === chosen) ?? all[0];
  return (
    <div className="signalling">
      <section className="card messages" aria-labelledby="sip-messages">
        <header>
          <h2 id="sip-messages">{t("ladder.title")}</h2>
          <div className="segments" role="group" aria-label={t("ladder.view")}>
            <button type="button" aria-pressed={!asText} onClick={() => showText(false)}>{t("ladder.ladder")}</button>
            <button type="button" aria-pressed={asText} onClick={() => showText(true)}>{t("ladder.text")}</button>
          </div>
          <a className="button" href={`/api/v1/calls/${call.id}/trace?format=pcap`} download={`${call.id}.pcap`}><Icon name="download" size={16} />pcap</a>
        </header>
        {asText ? <pre className="scroll sip" tabIndex={0} aria-label={t("ladder.text")}>{all.map((m) => `${clock(m.at)} ${m.sent ? "→" : "←"} ${m.remote} ${m.transport}\n\n${m.text.trimEnd()}`).join("\n\n\n")}</pre>
          : <Ladder call={call} all={all} lanes={lanes} chosen={shown?.key} choose={choose} />}
      </section>
      {!asText && shown && <Shown message={shown} lanes={lanes} />}
    </div>
  );
}

/** Returns the name of a party: that of a user, or its number. */
const partyName = (leg: Leg, nameOf: (id: string | null | undefined) => string | undefined): string => nameOf(leg.user_id) ?? (spaced(leg.number) || t("ladder.party"));

/** The sentence that says who sent a message to whom. */
function sentence(m: Message, lanes: Lane[]): string {
  const other = lanes.find((lane) => lane.key === m.lane)?.name ?? m.remote;
  return m.sent ? t("ladder.sent", { what: m.title, to: other }) : t("ladder.received", { what: m.title, from: other });
}

const seconds = (m: Message): string => number(m.seconds, 3);

function Ladder({ call, all, lanes, chosen, choose }: { call: Call; all: Message[]; lanes: Lane[]; chosen: string | undefined; choose: (key: string) => void }) {
  const ours = lanes.findIndex((lane) => lane.ours), bye = all.find((m) => m.title === "BYE");
  const columns = { gridTemplateColumns: `68px repeat(${lanes.length * 2}, minmax(72px, 1fr))` };
  return (
    <div className="scroll ladder">
      <div className="lanes-head" style={columns} aria-hidden="true">
        {lanes.map((lane, i) => <p key={lane.key} style={{ gridColumn: `${2 + 2 * i} / span 2` }}><strong>{lane.name}</strong><small>{lane.address}</small></p>)}
      </div>
      <ListBox aria-label={t("ladder.title")} selectionMode="single" selectionBehavior="replace" disallowEmptySelection selectedKeys={chosen ? [chosen] : []}
        onSelectionChange={(keys) => choose(String([...keys][0]))}>
        {all.map((m) => (
          <ListBoxItem key={m.key} id={m.key} textValue={`${m.title} ${seconds(m)}`} className="step">
            {m === bye && call.talk_duration_seconds > 0 && <span className="talk" style={columns}><span style={{ gridColumn: `3 / ${1 + lanes.length * 2}` }}>{t("call.talked", { time: duration(call.talk_duration_seconds) })}</span></span>}
            <span className="row" style={columns}>
              <time className="soft">{seconds(m)}</time>
              {lanes.map((lane, i) => <span key={lane.key} className="lane" style={{ gridColumn: `${3 + 2 * i}` }} />)}
              <Arrow message={m} who={sentence(m, lanes)} from={ours} to={lanes.findIndex((lane) => lane.key === m.lane)} />
            </span>
          </ListBoxItem>
        ))}
      </ListBox>
    </div>
  );
}

/** The arrow of a message, between our lane and that of the party. Who sent it to whom is said to those who do not see it. */
function Arrow({ message: m, who, from, to }: { message: Message; who: string; from: number; to: number }) {
  const left = Math.min(from, to), right = Math.max(from, to), points = m.sent === to > from ? "right" : "left";
  return (
    <span className={`arrow ${points}${m.bad ? " bad" : ""}`} style={{ gridColumn: `${3 + 2 * left} / ${3 + 2 * right}` }}>
      <span className="title-of">{m.title}</span>
      <span className="line-of" />
      <span className="note-of soft">{m.note}</span>
      <span className="hidden">{who}</span>
    </span>
  );
}

function Shown({ message: m, lanes }: { message: Message; lanes: Lane[] }) {
  return (
    <section className="card message" aria-labelledby="sip-message">
      <header><h2 id="sip-message" aria-live="polite">{sentence(m, lanes)}</h2><span className="tag accent">{seconds(m)}</span></header>
      <pre className="sip" tabIndex={0} aria-labelledby="sip-message">{m.text.trimEnd()}</pre>
    </section>
  );
}
