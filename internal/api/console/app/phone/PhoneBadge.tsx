import { useEffect } from "react";
import { Button, Menu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { useMe, useScope } from "../api/query";
import { useStore } from "../live/store";
import { Icon } from "../parts/Icon";
import { t, type Key } from "../words/words";
import { resumePhone, startPhone, stopPhone } from "./phone";
import { phone, type Reach } from "./state";

const colours: Record<Reach, string> = {
  off: "grey", other_tab: "grey", connecting: "amber", no_answer: "red", ready: "green", no_microphone: "red", microphone_refused: "red", refused: "red",
};

/** Says whether calls reach this browser, and turns the telephone on and off. */
export function PhoneBadge() {
  const { user } = useMe();
  const works = useScope("calls:write");
  const { reach, fault } = useStore(phone);
  const id = user?.id;
  useEffect(() => { if (id && works) resumePhone(id); }, [id, works]);
  if (!id || !works) return null;
  const state = t(`phone.${reach}` as Key);
  if (reach === "off" || reach === "no_microphone" || reach === "microphone_refused") {
    return (
      <button type="button" className="pill" onClick={() => void startPhone(id)} title={reach === "off" ? undefined : t(`phone.${reach}.help` as Key)}>
        <Icon name="headphones" size={16} /><span className={"dot " + colours[reach]} />
        <span className="wide">{reach === "off" ? t("phone.turn_on") : state}</span>
      </button>
    );
  }
  return (
    <MenuTrigger>
      <Button className="pill">
        <Icon name="headphones" size={16} /><span className={"dot " + colours[reach]} /><span className="wide">{state}</span>
      </Button>
      <Popover className="popover" placement="bottom end">
        {fault && <p className="fault">{fault}</p>}
        <Menu aria-label={t("phone.menu")} onAction={stopPhone}><MenuItem id="off">{t("phone.turn_off")}</MenuItem></Menu>
      </Popover>
    </MenuTrigger>
  );
}
