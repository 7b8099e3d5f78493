import { useEffect } from "react";
import { queries, useReadIfPresent, useScope } from "../../api/query";
import { onEvent } from "../../live/stream";
import { Avatar } from "../../parts/Avatar";
import { Icon } from "../../parts/Icon";
import { PhoneNumber } from "../../parts/PhoneNumber";
import { changeCalls } from "../../phone/state";
import { moment, t, textOf, type Key } from "../../words/words";

/** What is known of the other party. Sources that answer late are added below, so that nothing above moves. */
export function Caller({ callID, number, name }: { callID: string | undefined; number: string; name: string | undefined }) {
  // Colleagues call from extensions, of which contacts know nothing.
  const may = useScope("contacts:read") && !/^\d{1,6}$/.test(number);
  const known = useReadIfPresent("contacts.screen_pop", { query: callID ? { call_id: callID, phone: number } : { phone: number } }, may);
  useEffect(() => onEvent(({ kind, data }) => {
    if (kind === "screen_pop" && (data["call_id"] === callID || data["phone"] === number)) void queries.invalidateQueries({ queryKey: ["contacts.screen_pop"] });
  }), [callID, number]);
  const pop = known.data, found = pop?.contact?.name;
  // What a phone shows as the name may begin with the name of the queue.
  useEffect(() => { if (found) changeCalls((call) => call.id === callID && call.number === number, { name: found }); }, [found, callID, number]);
  const trend = pop?.sentiment_trend && pop.sentiment_trend !== "unknown" ? pop.sentiment_trend : undefined;
  const shown = pop?.contact?.name || name;
  return (
    <div className="caller-card">
      <div className="person">
        <Avatar name={shown ?? number} />
        <div>
          <p className="name">{shown ?? <PhoneNumber number={number} />}</p>
          <p className="facts">
            {pop?.contact?.company && <span>{pop.contact.company}</span>}
            {shown && <PhoneNumber number={number} />}
            {pop?.vip && <span className="tag accent"><Icon name="star" size={13} />{t("caller.vip")}</span>}
            {pop?.do_not_call && <span className="tag red">{t("caller.do_not_call")}</span>}
            {pop?.tags.map((tag) => <span className="tag" key={tag}>{tag}</span>)}
          </p>
          {pop?.queue && <p className="soft">{t("caller.queue", { queue: pop.queue.name })}</p>}
        </div>
        {pop?.contact?.url && /^https?:/.test(pop.contact.url) && <a className="button" href={pop.contact.url} target="_blank" rel="noreferrer">{new URL(pop.contact.url).host}</a>}
      </div>
      {pop?.memory_summary && <div className="summary"><h3><span className="machine"><Icon name="sparkles" size={15} /></span> {t("caller.about")}</h3><p>{pop.memory_summary}</p></div>}
      {!pop?.memory_summary && pop?.last_call?.ai_summary && <div className="summary"><h3><span className="machine"><Icon name="sparkles" size={15} /></span> {t("caller.last", { when: moment(pop.last_call.at) })}</h3><p>{pop.last_call.ai_summary}</p></div>}
      {pop && (pop.open_items.length > 0 || trend) && (
        <div className="summary two">
          {pop.open_items.length > 0 && <div><h3>{t("caller.open")}</h3><ul>{pop.open_items.map((item) => <li key={item}>{item}</li>)}</ul></div>}
          {trend && <div><h3>{t("caller.mood")}</h3><p>{t(`trend.${trend}` as Key)}</p></div>}
        </div>
      )}
      {pop && pop.sources.length > 0 && <p className="small soft sources">{pop.sources.map((s) => `${s.source} ${s.status === "hit" || s.status === "miss" ? s.lookup_ms + " ms" : (textOf("source." + s.status) ?? s.status)}`).join(" · ")}</p>}
    </div>
  );
}
