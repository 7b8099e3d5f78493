import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ComboBox, Input, Label, ListBox, ListBoxItem, Popover } from "react-aria-components";
import { request } from "../api/client";
import { queries } from "../api/query";
import { Icon } from "../parts/Icon";
import { spaced } from "../parts/PhoneNumber";
import { Problem } from "../parts/Problem";
import { t } from "../words/words";
import { keep } from "./CallBar";
import { typedNumber, isName, useTargets, type Target } from "./targets";

/** Finds somebody to hand the call to, or to add to it. */
export default function HandOver({ id, add, close }: { id: string; add: boolean; close: () => void }) {
  const [text, setText] = useState(""), [chosen, choose] = useState<Target | null>(null);
  const { targets, busy } = useTargets(text, !add);
  const target = chosen && chosen.name === text ? chosen : undefined;
  const to = target?.to ?? typedNumber(text);
  const send = useMutation({
    mutationFn: async (mode: "blind" | "warm" | "add") => {
      if (mode === "add") await request("calls.participants.add", { path: { id }, body: { to: to ?? "" } });
      else keep(await request("calls.transfer", { path: { id }, body: { to: to ?? "", mode } }));
    },
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["calls.get"] });
      close();
    },
  });
  const script = target?.kind === "queue", off = to === undefined || send.isPending;
  return (
    <form className="hand-over" aria-label={t(add ? "handover.add.label" : "handover.label")} onKeyDown={(e) => { if (e.key === "Escape" && text === "") close(); }}
      onSubmit={(e) => { e.preventDefault(); if (!off) send.mutate(add ? "add" : script ? "blind" : "warm"); }}>
      <ComboBox inputValue={text} onInputChange={setText} items={targets} allowsEmptyCollection={isName(text)} allowsCustomValue menuTrigger="input" selectedKey={chosen?.id ?? null}
        onSelectionChange={(key) => {
          const found = targets.find((x) => x.id === key);
          if (found) {
            choose(found);
            setText(found.name);
          }
        }}>
        <Label className="label">{t(add ? "handover.add.who" : "handover.who")}</Label>
        <Input className="input" autoFocus placeholder={t("handover.placeholder")} />
        <Popover className="popover" placement="top start"><ListBox renderEmptyState={() => <p className="nobody soft">{t(busy ? "loading" : "dialer.nobody")}</p>}>{(x: Target) => <ListBoxItem id={x.id} textValue={x.name}><span>{x.name}<small>{x.kind === "queue" ? t("handover.queue") : spaced(x.number)}</small></span></ListBoxItem>}</ListBox></Popover>
      </ComboBox>
      {add ? <button type="submit" className="button primary" disabled={off}><Icon name="userPlus" />{t("handover.add")}</button> : (
        <>
          <button type="button" className="button" disabled={off} onClick={() => send.mutate("blind")}><Icon name="handover" />{t("handover.now")}</button>
          <button type="submit" className="button primary" disabled={off || script}><Icon name="phone" />{t("handover.ask")}</button>
        </>
      )}
      <button type="button" className="button quiet" onClick={close}>{t("close")}</button>
      {script && <p className="small soft">{t("handover.queue.help")}</p>}
      {send.error && <Problem error={send.error} />}
    </form>
  );
}
