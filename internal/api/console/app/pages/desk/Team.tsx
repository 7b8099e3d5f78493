import { useMe, useRead } from "../../api/query";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { presenceColours, presenceText } from "../../parts/presence";
import { controls } from "../../phone/state";
import { t } from "../../words/words";

/** The colleagues and what they do now. */
export function Team() {
  const { user } = useMe();
  const agents = useRead("agents.list", { query: { limit: 50 } });
  const act = useStore(controls);
  const all = (agents.data?.data ?? []).filter((a) => a.id !== user?.id);
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="team">
      <h2 id="team">{t("desk.team")}</h2>
      <ul className="team">
        {all.map((a) => (
          <li key={a.id}>
            <span className={"dot " + presenceColours[a.presence.status]} /><span className="name">{a.name}</span><span className="soft small">{presenceText(a.presence)}</span>
            {act && a.extension && <button type="button" className="button quiet" aria-label={t("desk.call_person", { name: a.name })} onClick={() => act.dial(a.extension ?? "", a.name)}><Icon name="phone" size={15} /></button>}
          </li>
        ))}
      </ul>
    </section>
  );
}
