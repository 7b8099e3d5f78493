import type { Call, Result } from "../../api/client";
import { useNames, useRead } from "../../api/query";
import { Problem } from "../../parts/Problem";
import { clock, duration, t, textOf } from "../../words/words";

export type CallEvent = Result<"calls.events">["data"][number];

/** What happened in a call, in order. Attempts to deliver events have a tab of their own. */
export function Timeline({ call }: { call: Call }) {
  const events = useRead("calls.events", { path: { id: call.id }, query: { limit: 200 } });
  const nameOf = useNames();
  if (events.error) return <Problem error={events.error} retry={() => void events.refetch()} />;
  if (!events.data) return <p className="loading" role="status">{t("loading")}</p>;
  const steps = events.data.data.filter((e) => !e.kind.startsWith("webhook.") && !e.kind.startsWith("event."));
  const began = Date.parse(call.started_at);
  if (steps.length === 0) return <p className="card empty">{t("timeline.none")}</p>;
  return (
    <div className="card scroll" role="region" aria-label={t("call.tab.timeline")} tabIndex={0}>
      <table className="timeline">
        <thead><tr><th scope="col">{t("timeline.time")}</th><th scope="col">{t("timeline.since")}</th><th scope="col">{t("timeline.what")}</th><th scope="col">{t("timeline.detail")}</th></tr></thead>
        <tbody>
          {steps.map((e, i) => (
            <tr key={i} className={e.detail["problem"] ? "bad" : undefined}>
              <td><time dateTime={e.at}>{clock(e.at)}</time></td>
              <td className="soft">+{duration((Date.parse(e.at) - began) / 1000)}</td>
              <td>{textOf("step." + e.kind) ?? e.kind}{textOf("step." + e.kind) && <small><code>{e.kind}</code></small>}</td>
              <td className="detail">{details(e, nameOf)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {events.data.has_more && <p className="empty">{t("timeline.more")}</p>}
    </div>
  );
}

/** Returns the members of a step, the problem first, with names instead of ids where they are known. */
function details(e: CallEvent, nameOf: (id: string) => string | undefined): string {
  const members = Object.entries(e.detail).filter(([, value]) => value !== null && value !== "" && value !== false);
  members.sort(([a], [b]) => Number(b === "problem") - Number(a === "problem"));
  return members.map(([name, value]) => {
    const text = typeof value === "string" ? (nameOf(value) ?? value) : typeof value === "object" ? JSON.stringify(value) : String(value);
    return `${name.replaceAll("_", " ")}: ${text}`;
  }).join(" · ");
}
