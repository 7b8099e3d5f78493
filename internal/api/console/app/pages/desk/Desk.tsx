import { useStore } from "../../live/store";
import { AsRequest } from "../../parts/AsRequest";
import { Title } from "../../parts/Title";
import { phone } from "../../phone/state";
import { t } from "../../words/words";
import { GettingStarted } from "../start/GettingStarted";
import { Earlier } from "./Earlier";
import { CallNow, Ringing, WrapUp } from "./CallCards";
import { Dialer } from "./Dialer";
import { Todo } from "./Todo";
import { Team } from "./Team";

/** Where calls are taken: what is to be done, the caller, and the telephone. */
export default function Desk() {
  const { call, others, wrapUp } = useStore(phone);
  const ringing = [...(call ? [call] : []), ...others].filter((one) => one.state === "ringing"), front = call?.state === "ringing" ? null : call;
  return (
    <div className="desk">
      <section className="todo" aria-label={t("desk.todo")}><Todo /></section>
      <div className="middle">
        <Title text={t("nav.desk")}><AsRequest /></Title>
        {ringing.map((one, i) => <Ringing key={one.key} call={one} front={front} enter={i === 0} />)}
        {call && call.state !== "ringing" && <CallNow call={call} />}
        {!call && wrapUp && <WrapUp call={wrapUp} />}
        {!call && !wrapUp && <GettingStarted />}
        {!call && !wrapUp && <p className="card empty">{t("desk.idle")}</p>}
        {(call ?? wrapUp) && <Earlier number={(call ?? wrapUp)?.number ?? ""} without={(call ?? wrapUp)?.id} />}
      </div>
      <aside className="right" aria-label={t("desk.phone")}><Dialer /><Team /></aside>
    </div>
  );
}
