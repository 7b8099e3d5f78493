import { useState } from "react";
import { ComboBox, Input, Label, ListBox, ListBoxItem, Popover } from "react-aria-components";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { controls, phone } from "../../phone/state";
import { isName, useTargets, type Target } from "../../phone/targets";
import { t, type Key } from "../../words/words";

const keys: [string, string][] = [["1", ""], ["2", "ABC"], ["3", "DEF"], ["4", "GHI"], ["5", "JKL"], ["6", "MNO"], ["7", "PQRS"], ["8", "TUV"], ["9", "WXYZ"], ["*", ""], ["0", "+"], ["#", ""]];

/** Calls a number, or a person by name. */
export function Dialer() {
  const [text, setText] = useState(""), [chosen, choose] = useState<Target | null>(null);
  const { call, reach, fault } = useStore(phone);
  const act = useStore(controls);
  const { targets, busy } = useTargets(text);
  const number = chosen && chosen.name === text ? chosen.number : /^[+\d*#()\s./-]+$/.test(text) ? text : undefined;
  const dial = () => {
    if (!act || !number) return;
    act.dial(number, chosen?.name === text ? chosen.name : undefined);
    setText("");
    choose(null);
  };
  return (
    <form className="dialer" aria-label={t("dialer.label")} onSubmit={(e) => { e.preventDefault(); dial(); }}>
      <ComboBox inputValue={text} onInputChange={setText} items={targets} allowsEmptyCollection={isName(text)} allowsCustomValue menuTrigger="input" selectedKey={chosen?.id ?? null}
        onSelectionChange={(key) => {
          const found = targets.find((x) => x.id === key);
          if (found) {
            choose(found);
            setText(found.name);
          }
        }}>
        <Label className="label">{t("dialer.who")}</Label>
        <div className="entry">
          <Input className="input" placeholder={t("dialer.placeholder")} />
          {text !== "" && <button type="button" className="button quiet" aria-label={t("dialer.erase")} onClick={() => setText(text.slice(0, -1))}><Icon name="erase" /></button>}
        </div>
        <Popover className="popover"><ListBox renderEmptyState={() => <p className="nobody soft">{t(busy ? "loading" : "dialer.nobody")}</p>}>{(x: Target) => <ListBoxItem id={x.id} textValue={x.name}><span>{x.name}<small>{spaced(x.number)}</small></span></ListBoxItem>}</ListBox></Popover>
      </ComboBox>
      <div className="keypad" role="group" aria-label={t("bar.keypad")}>
        {keys.map(([digit, letters]) => (
          <button type="button" className="button" key={digit} onClick={() => (call ? act?.tone(digit) : setText(text + digit))}><span>{digit}</span><small aria-hidden="true">{letters}</small></button>
        ))}
      </div>
      <button type="submit" className="button primary big" disabled={!act || !number || !!call}><Icon name="phone" />{t("dialer.call")}</button>
      {reach !== "ready" && <p className="small soft">{t(`dialer.${reach}` as Key)}</p>}
      {fault && <p role="alert" className="fault">{t("dialer.failed", { why: fault })}</p>}
    </form>
  );
}
