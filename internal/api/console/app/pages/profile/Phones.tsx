import { useRead } from "../../api/query";
import { Icon } from "../../parts/Icon";
import { Problem } from "../../parts/Problem";
import { moment, t, textOf } from "../../words/words";

/** The own phones, and which of them calls reach now. */
export function Phones() {
  const devices = useRead("me.devices.list", { query: { limit: 50 } });
  const all = devices.data?.data ?? [], here = localStorage.getItem("soniq-device");
  return (
    <section className="card" aria-labelledby="own-phones">
      <header><h2 id="own-phones">{t("phones.title")}</h2></header>
      {devices.error && <Problem error={devices.error} retry={() => void devices.refetch()} />}
      {devices.isSuccess && all.length === 0 && <p className="empty">{t("phones.none")}</p>}
      <ul className="own-phones">
        {all.map((d) => {
          const reached = d.registration.status === "registered" && d.status === "active";
          return (
            <li key={d.id}>
              <Icon name={d.kind === "webrtc" ? "headphones" : "phone"} />
              <span className="name"><strong>{d.name}</strong>{d.name === here && <span className="tag accent">{t("phones.here")}</span>}<small>{[d.model, textOf("phones.kind." + d.kind) ?? d.kind].filter(Boolean).join(" · ")}</small></span>
              <span className="state"><span className={"dot " + (reached ? "green" : "grey")} />{d.status === "disabled" ? t("phones.disabled") : reached ? t("phones.reached") : t("phones.away")}</span>
              {!reached && d.last_seen_at && <span className="soft small seen">{t("phones.seen", { when: moment(d.last_seen_at) })}</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
