import { Link } from "wouter";
import { useRead } from "../../api/query";
import { Direction, State } from "../../parts/CallState";
import { Mood } from "../../parts/Mood";
import { duration, moment, t } from "../../words/words";

/** The last calls with a number. */
export function Earlier({ number, without }: { number: string; without: string | undefined }) {
  const calls = useRead("calls.list", { query: { phone: number, limit: 7 } }, { enabled: number !== "" });
  const all = (calls.data?.data ?? []).filter((c) => c.id !== without);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="earlier">
      <h2 id="earlier">{t("desk.earlier")}</h2>
      <ul className="earlier">
        {all.map((call) => (
          <li key={call.id}>
            <time className="soft" dateTime={call.started_at}>{moment(call.started_at)}</time>
            <Direction call={call} />
            <Link href={"/calls/" + call.id}>{call.ai_summary ?? t("desk.earlier.open")}</Link>
            <span className="soft">{call.talk_duration_seconds > 0 ? duration(call.talk_duration_seconds) : <State call={call} />}</span>
            {call.sentiment && <Mood mood={call.sentiment} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
