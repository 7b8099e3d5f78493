import type { Call } from "../../api/client";
import { useReadIfPresent } from "../../api/query";
import { isRunning } from "../../parts/CallState";
import { Icon } from "../../parts/Icon";
import { date, duration, t, type Key } from "../../words/words";
import type { Segment } from "./Conversation";

/** What a machine wrote about the call, with its engine, and links to the moments. */
export function Summary({ call, segments, seek }: { call: Call; segments: Segment[]; seek: (seconds: number, play?: boolean) => void }) {
  const summary = useReadIfPresent("calls.summary", { path: { id: call.id } }, !isRunning(call) && !!call.transcript_id);
  const s = summary.data;
  if (!s || s.status !== "completed" || s.ai_summary === "") return null;
  const moment = (turn: number | null) => segments.find((x) => x.index === turn)?.start_ms;
  return (
    <section className="card" aria-labelledby="summary">
      <header><h2 id="summary"><span className="machine"><Icon name="sparkles" /></span> {t("summary.title")}</h2><span className="soft">{t("summary.engine", { engine: s.engine.name })}</span></header>
      <div className="inside">
        <p>{s.ai_summary}</p>
        {s.outcome && <p><span className="tag">{t(`outcome.${s.outcome}` as Key)}</span></p>}
        {s.action_items.length > 0 && <h3>{t("summary.promised")}</h3>}
        {s.action_items.length > 0 && (
          <ul className="promises">
            {s.action_items.map((item, i) => {
              const at = moment(item.turn);
              return (
                <li key={i}>{item.text}
                  <small className="soft">
                    {item.owner && t(`speaker.${item.owner}` as Key)}{item.due_at && " · " + date(item.due_at)}
                    {at !== undefined && <> · <button type="button" className="link" onClick={() => seek(at / 1000, true)}>{duration(at / 1000)}</button></>}
                  </small>
                </li>
              );
            })}
          </ul>
        )}
        {s.topics.length > 0 && <p className="tags">{s.topics.map((topic) => <span className="tag" key={topic}>{topic}</span>)}</p>}
      </div>
    </section>
  );
}
