import { useStore } from "../live/store";
import { live } from "../live/stream";
import { clock, t } from "../words/words";

/** Says whether what is shown is up to date, and since when it is not. */
export function Age() {
  const { state, heardAt } = useStore(live);
  if (state === "lost") return <p className="age lost" role="status"><span className="dot amber" />{t("live.lost", { time: clock(heardAt) })}</p>;
  return <p className="age" role="status"><span className={state === "live" ? "dot green" : "dot grey"} />{t(state === "live" ? "live.now" : "live.connecting")}</p>;
}
