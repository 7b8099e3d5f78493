import { useId } from "react";
import { Link } from "wouter";
import type { Agent } from "../../api/client";
import { useMe } from "../../api/query";
import { useStore } from "../../live/store";
import { Avatar } from "../../parts/Avatar";
import { Icon } from "../../parts/Icon";
import { presenceColours, presenceName, reasonName } from "../../parts/presence";
import { Running } from "../../parts/Running";
import { controls, phone } from "../../phone/state";
import { moment, t } from "../../words/words";
import type { Favourites } from "./favourites";
import { OtherPresence } from "./OtherPresence";
import { mayChoose, seesAllCalls } from "./agents";

interface Rows { title: string; people: Agent[]; own: Agent | undefined; favourites: Favourites }

/** A table of colleagues. */
export function People({ title, people, own, favourites }: Rows) {
  const id = useId();
  return (
    <section className="card scroll" aria-labelledby={id}>
      <header><h2 id={id}>{title}</h2></header>
      <table className="people" aria-labelledby={id}>
        <thead><tr><th scope="col">{t("team.name")}</th><th scope="col">{t("team.state")}</th><th scope="col">{t("team.queues")}</th><th scope="col"><span className="hidden">{t("team.actions")}</span></th></tr></thead>
        <tbody>{people.map((a) => <Row key={a.id} agent={a} own={own} favourites={favourites} />)}</tbody>
      </table>
    </section>
  );
}

function Row({ agent, own, favourites }: { agent: Agent; own: Agent | undefined; favourites: Favourites }) {
  const me = useMe(), act = useStore(controls), { call } = useStore(phone);
  const self = agent.id === me.user?.id, kept = favourites.ids.includes(agent.id);
  const { name, extension } = agent;
  return (
    <tr>
      <td><div className="person-name">
        <Avatar name={name} small />
        <span><strong>{name}</strong>{self && <span className="tag">{t("team.you")}</span>}<small>{[extension, agent.email].filter(Boolean).join(" · ")}</small></span>
      </div></td>
      <td><Doing agent={agent} seesCall={seesAllCalls(me)} /></td>
      <td className="queues-of"><span className="tags">{agent.queues.map((k) => <span className="tag" key={k.id}>{k.name}{!k.signed_in ? t("team.signed_out") : k.paused ? t("team.paused") : ""}</span>)}</span></td>
      <td className="person-actions">
        {mayChoose(me, own, agent) && <OtherPresence agent={agent} />}
        {!self && extension && act && <button type="button" className="button quiet" disabled={!!call} aria-label={t("desk.call_person", { name })} onClick={() => act.dial(extension, name)}><Icon name="phone" size={17} /></button>}
        {!self && <button type="button" className="button quiet star" aria-pressed={kept} aria-label={t("team.favourite", { name })} onClick={() => favourites.toggle(agent.id)}><Icon name="star" size={17} filled={kept} /></button>}
      </td>
    </tr>
  );
}

/** What a colleague does, since when, and why. */
function Doing({ agent: { presence, active_call_id: call }, seesCall }: { agent: Agent; seesCall: boolean }) {
  const { status, since, reason, until } = presence;
  const more = [reasonName(reason), until ? t("team.until", { time: moment(until) }) : ""].filter(Boolean).join(", ");
  return (
    <>
      <span className="state"><span className={"dot " + presenceColours[status]} />{presenceName(status)}{since && status !== "offline" && <span className="soft" title={moment(since, true)}><Running since={since} /></span>}</span>
      {more && <small>{more}</small>}
      {call && seesCall && <small><Link href={"/calls/" + call}>{t("team.open_call")}</Link></small>}
    </>
  );
}
