import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { request } from "../api/client";
import { useRead } from "../api/query";
import { useStore } from "../live/store";
import { Icon } from "../parts/Icon";
import { Running } from "../parts/Running";
import { t } from "../words/words";
import { controls, changeCall, phone, type PhoneCall } from "./state";

/** The call of the telephone, on every page. A call that rings leads to the desk by the name. */
export function CallBar() {
  const { call } = useStore(phone);
  const [at] = useLocation();
  if (!call || (call.state === "ringing" && at === "/desk")) return null;
  return <section className="bar" aria-label={t("bar.label")}>{call.state === "ringing" ? <Ringing call={call} /> : <InCall call={call} />}</section>;
}

function Who({ call }: { call: PhoneCall }) {
  const state = call.state === "talking" ? t(call.held ? "bar.held" : "bar.talking") : t(call.state === "calling" ? "bar.calling" : "bar.ringing");
  return (
    <div className="who">
      <strong>{call.id ? <Link href={call.state === "ringing" ? "/desk" : "/calls/" + call.id}>{call.name ?? call.number}</Link> : (call.name ?? call.number)}</strong>
      <span className="soft" role="status">{state} {call.state === "talking" && <Running since={call.since} />}</span>
    </div>
  );
}

function Ringing({ call }: { call: PhoneCall }) {
  const act = useStore(controls);
  return (
    <>
      <Who call={call} />
      <button type="button" className="button answer big" onClick={() => act?.answer()}><Icon name="phone" />{t("ringing.answer")}</button>
      <button type="button" className="button big" onClick={() => act?.hangUp()}><Icon name="hangup" />{t("ringing.decline")}</button>
    </>
  );
}

function InCall({ call }: { call: PhoneCall }) {
  const act = useStore(controls);
  const [keypad, showKeypad] = useState(false);
  const hold = useMutation({
    mutationFn: (held: boolean) => request(held ? "calls.hold" : "calls.unhold", { path: { id: call.id ?? "" }, body: {} } as never),
    onSuccess: (_, held) => changeCall({ held }),
  });
  const talking = call.state === "talking";
  useShortcuts({
    m: () => { if (talking) act?.mute(!call.muted); },
    h: () => { if (talking && call.id) hold.mutate(!call.held); },
    k: () => { if (talking) showKeypad((shown) => !shown); },
  });
  return (
    <>
      <Who call={call} />
      {call.id && <RecordingState id={call.id} />}
      {talking && (
        <>
          <button type="button" className="button" aria-pressed={call.muted} aria-keyshortcuts="m" onClick={() => act?.mute(!call.muted)}>
            <Icon name={call.muted ? "micOff" : "mic"} />{t(call.muted ? "bar.unmute" : "bar.mute")}
          </button>
          <button type="button" className="button" aria-pressed={call.held} aria-keyshortcuts="h" disabled={!call.id || hold.isPending} onClick={() => hold.mutate(!call.held)}>
            <Icon name="pause" />{t(call.held ? "bar.unhold" : "bar.hold")}
          </button>
          <button type="button" className="button" aria-expanded={keypad} aria-keyshortcuts="k" onClick={() => showKeypad(!keypad)}><Icon name="keypad" />{t("bar.keypad")}</button>
        </>
      )}
      <button type="button" className="button danger" onClick={() => act?.hangUp()}><Icon name="hangup" />{t("bar.hang_up")}</button>
      {hold.error && <p role="alert" className="fault">{hold.error.message}</p>}
      {keypad && talking && <div className="tones" role="group" aria-label={t("bar.keypad")}>{[..."123456789*0#"].map((d) => <button type="button" className="button" key={d} onClick={() => act?.tone(d)}>{d}</button>)}</div>}
    </>
  );
}

/** Whether the call is recorded, always in words. */
function RecordingState({ id }: { id: string }) {
  const call = useRead("calls.get", { path: { id } });
  if (!call.data) return null;
  const { state } = call.data.recording;
  return <span className="state small"><span className={"dot " + (state === "recording" ? "red" : "grey")} />{t(state === "recording" ? "bar.recording" : state === "paused" ? "bar.recording.paused" : "bar.recording.off")}</span>;
}

/** Calls functions for keys that are pressed outside of fields. */
function useShortcuts(keys: Record<string, () => void>): void {
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.ctrlKey || e.metaKey || e.altKey || target.closest("input, textarea, select, [contenteditable], [role='menu'], [role='listbox']")) return;
      const act = keys[e.key.toLowerCase()];
      if (act) {
        e.preventDefault();
        act();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
