import { useStore } from "../live/store";
import { controls, phone } from "../phone/state";
import { t, type Key } from "../words/words";
import { Icon } from "./Icon";
import { spaced } from "./PhoneNumber";

/** Calls a number with the telephone of this browser. It is absent while the telephone is off. */
export function CallButton({ number, name, label = "parts.call", quiet = false }: { number: string; name: string | undefined; label?: Key; quiet?: boolean }) {
  const act = useStore(controls), { call } = useStore(phone);
  if (!act || !/^[+*#\d]/.test(number)) return null;
  return (
    <button type="button" className={quiet ? "button quiet" : "button"} disabled={!!call} aria-label={t("parts.call.name", { what: t(label), name: name ?? spaced(number) })} onClick={() => act.dial(number, name)}>
      <Icon name="phone" size={16} />{t(label)}
    </button>
  );
}
