import { useState } from "react";
import { t } from "../../words/words";
import { Save } from "./Save";
import { useChange, type Patch, type Settings } from "./settings";

/** Whether the mailbox takes calls, tells by mail, and asks for a PIN by telephone. */
export function Voicemail({ settings: { voicemail } }: { settings: Settings }) {
  const change = useChange();
  const [enabled, setEnabled] = useState(voicemail.enabled), [mail, setMail] = useState(voicemail.email_notify);
  const [pin, setPin] = useState(""), [without, setWithout] = useState(false);
  const changed = enabled !== voicemail.enabled || mail !== voicemail.email_notify || pin !== "" || without;
  const save = () => {
    const body: NonNullable<Patch["voicemail"]> = { enabled, email_notify: mail, ...(without ? { pin: null } : pin === "" ? {} : { pin }) };
    change.mutate({ voicemail: body }, { onSuccess: () => { setPin(""); setWithout(false); } });
  };
  return (
    <Save title={t("mailbox.title")} id="mailbox" changed={changed} state={change} onSave={save} fields={{ "voicemail.pin": t("mailbox.pin") }}>
      <label className="check"><input type="checkbox" checked={enabled} onChange={(e) => setEnabled(e.currentTarget.checked)} /><span>{t("mailbox.enabled")}</span></label>
      <label className="check"><input type="checkbox" checked={mail} onChange={(e) => setMail(e.currentTarget.checked)} /><span>{t("mailbox.mail")}</span></label>
      <label className="field short">
        <span>{t("mailbox.pin")}</span>
        <input type="password" inputMode="numeric" autoComplete="off" disabled={without} value={pin} placeholder={voicemail.pin_set ? "••••" : ""} aria-describedby="mailbox-pin" onChange={(e) => setPin(e.currentTarget.value)} />
      </label>
      <p className="soft small" id="mailbox-pin">{t(voicemail.pin_set ? "mailbox.pin.set" : "mailbox.pin.none")}</p>
      {voicemail.pin_set && <label className="check"><input type="checkbox" checked={without} onChange={(e) => { setWithout(e.currentTarget.checked); setPin(""); }} /><span>{t("mailbox.pin.remove")}</span></label>}
      <p className="soft small">{t(voicemail.greeting_audio_id ? "mailbox.greeting.own" : "mailbox.greeting.none")}</p>
    </Save>
  );
}
