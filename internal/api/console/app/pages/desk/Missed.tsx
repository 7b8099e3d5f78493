import { Link } from "wouter";
import { otherParty, useRead } from "../../api/query";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { controls } from "../../phone/state";
import { moment, t } from "../../words/words";

/** The missed calls that nobody has returned. A call that reaches the caller takes them off the list. */
export function Missed() {
  const missed = useRead("calls.missed", { query: { handled: "false", limit: 30 } as never });
  const act = useStore(controls);
  const all = missed.data?.data ?? [];
  return (
    <>
      <h2>{t("desk.todo")} <span className="soft">{missed.data ? all.length : ""}</span></h2>
      {missed.error && <Problem error={missed.error} />}
      {missed.isSuccess && all.length === 0 && <p className="soft">{t("desk.todo.none")}</p>}
      <ul>
        {all.map((call) => {
          const { name, number } = otherParty(call);
          return (
            <li key={call.id}>
              <span className="direction lost"><Icon name="missed" /></span>
              <div>
                <p className="line"><Link href={"/calls/" + call.id}>{name ?? number}</Link><time className="soft small" dateTime={call.started_at}>{moment(call.started_at)}</time></p>
                <p className="small soft">{name ? number : t("desk.missed")}</p>
                {call.ai_summary && <p className="small">{call.ai_summary}</p>}
                {act && <button type="button" className="button quiet" aria-label={t("desk.call_back.name", { name: name ?? number })} onClick={() => act.dial(number, name)}><Icon name="phone" size={15} />{t("desk.call_back")}</button>}
              </div>
            </li>
          );
        })}
      </ul>
    </>
  );
}
