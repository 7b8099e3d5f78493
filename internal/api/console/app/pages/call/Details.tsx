import type { ReactNode } from "react";
import type { Call } from "../../api/client";
import { Mood } from "../../parts/Mood";
import { PhoneNumber } from "../../parts/PhoneNumber";
import { date, duration, number, t, textOf } from "../../words/words";
import type { Recording } from "./Conversation";

/** Facts about a call, in words. */
export function Details({ call, recording }: { call: Call; recording: Recording | undefined }) {
  const rows: [string, ReactNode][] = [[t("details.from"), <PhoneNumber key="from" number={call.from_number} />], [t("details.to"), <PhoneNumber key="to" number={call.to_number} />]];
  if (call.sentiment) rows.push([t("details.mood"), <Mood key="mood" mood={call.sentiment} />]);
  if (call.ended_at) rows.push([t("details.ended"), ending(call)]);
  if (call.hold_seconds > 0) rows.push([t("details.held"), duration(call.hold_seconds)]);
  if (call.quality) rows.push([t("details.sound"), t("details.mos", { mos: number(call.quality.mos, 1), loss: number(call.quality.packet_loss_rate, 1) })]);
  if (call.client_reference) rows.push([t("details.reference"), call.client_reference]);
  if (recording?.retention_until) rows.push([t("details.kept"), recording.legal_hold ? t("details.hold") : date(recording.retention_until)]);
  rows.push([t("details.id"), <code key="id">{call.id}</code>]);
  return (
    <section className="card" aria-labelledby="details">
      <header><h2 id="details">{t("details.title")}</h2></header>
      <dl className="inside facts-list">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  );
}

/** Who ended the call; else why it ended. */
function ending(call: Call): string {
  const by = call.hangup_by && textOf("hangup." + call.hangup_by);
  return by || call.end_reason?.replaceAll("_", " ") || t("details.unknown");
}
