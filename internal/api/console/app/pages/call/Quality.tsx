import type { Call, Schema } from "../../api/client";
import { useReadIfPresent } from "../../api/query";
import { PhoneNumber, spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { number, t, type Key } from "../../words/words";

type Direction = Schema<"CallQuality">;
type Sample = Schema<"CallSample">;

/** MOS below which speech is heard as bad, and as poor (ITU-T G.107, annex B). */
const poor = 3.1, fair = 3.6;

/** How a call sounded, for each leg and direction. */
export function Quality({ call }: { call: Call }) {
  const report = useReadIfPresent("calls.quality", { path: { id: call.id } });
  if (report.error) return <Problem error={report.error} retry={() => void report.refetch()} />;
  if (report.isPending) return <p className="loading" role="status">{t("loading")}</p>;
  const legs = (report.data?.legs ?? []).filter((l) => l.received || l.sent);
  if (legs.length === 0) return <p className="card empty">{t("quality.none")}</p>;
  return (
    <div className="quality">
      {legs.map((leg) => (
        <section key={leg.leg_id} className="card" aria-label={`${t(`role.${leg.role}` as Key)} ${spaced(leg.number)}`}>
          <header><h2>{t(`role.${leg.role}` as Key)}</h2><span className="soft"><PhoneNumber number={leg.number} /></span></header>
          <div className="inside two">
            {leg.received && <Side title={t("quality.received")} side={leg.received} />}
            {leg.sent && <Side title={t("quality.sent")} side={leg.sent} />}
          </div>
        </section>
      ))}
    </div>
  );
}

function Side({ title, side }: { title: string; side: Direction }) {
  const rows: [string, string][] = [
    [t("quality.mos"), t("quality.mos.value", { average: number(side.mos_average, 1), least: number(side.mos_min, 1) })],
    [t("quality.loss"), t("quality.loss.value", { rate: number(side.loss_rate, 2), lost: number(side.lost), packets: number(side.packets), burst: number(side.burst_loss_max) })],
    [t("quality.jitter"), t("quality.jitter.value", { average: number(side.jitter_ms_average, 1), most: number(side.jitter_ms_max, 1) })],
    [t("quality.rtt"), number(side.rtt_ms) + " ms"],
    [t("quality.codec"), [side.codec, side.srtp ? t("quality.encrypted") : t("quality.plain"), side.transport].filter(Boolean).join(" · ")],
  ];
  return (
    <div className="side-quality">
      <h3>{title}</h3>
      <p className="verdict">{verdict(side)}</p>
      <Line samples={side.samples} />
      <dl className="facts-list">{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </div>
  );
}

/** Says in words how a direction sounded. */
function verdict(side: Direction): string {
  if (side.one_way_audio) return t("quality.verdict.one_way");
  if (side.packets === 0) return t("quality.verdict.nothing");
  if (side.mos_average < poor) return t("quality.verdict.bad");
  if (side.mos_average < fair || side.mos_min < poor) return t("quality.verdict.fair");
  return t("quality.verdict.good");
}

/** The MOS over time, from 1 to 4.5. */
function Line({ samples }: { samples: Sample[] }) {
  if (samples.length < 2) return null;
  const points = samples.map((s, i) => `${(i / (samples.length - 1)) * 300},${60 - ((s.mos - 1) / 3.5) * 60}`).join(" ");
  const least = Math.min(...samples.map((s) => s.mos));
  return <svg className="mos" viewBox="0 -2 300 64" preserveAspectRatio="none" role="img" aria-label={t("quality.line", { least: number(least, 1) })}><polyline points={points} /></svg>;
}
