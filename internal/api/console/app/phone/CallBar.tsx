import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { request, signedOut, type Call, type Result } from "../api/client";
import { queries, useRead } from "../api/query";
import { useStore } from "../live/store";
import { Icon } from "../parts/Icon";
import { PhoneNumber, spaced } from "../parts/PhoneNumber";
import { Problem } from "../parts/Problem";
import { Running } from "../parts/Running";
import { number, t, textOf } from "../words/words";
import { change, changeCall, controls, phone, type BadSound, type PhoneCall } from "./state";

const HandOver = lazy(() => import("./HandOver"));
const Parties = lazy(() => import("./Parties"));

/** The calls of the telephone, on every page. A call that rings leads to the desk by the name. */
export function CallBar() {
  const { call, others, problem, fetching, reach } = useStore(phone);
  const out = useStore(signedOut);
  const [at] = useLocation();
  const shown = [...(call ? [call] : []), ...others].filter((c) => c.state !== "ringing" || at !== "/desk");
  if (shown.length === 0 && !problem && !fetching) return null;
  return (
    <section className="bar" aria-label={t("bar.label")}>
      {out && shown.length > 0 && <p className="line warning" role="status"><Icon name="alert" size={16} />{t("signin.ended.call")}</p>}
      {fetching && <p className="line" role="status">{t("reload.fetching")}</p>}
      {reach === "other_tab" && shown.length > 0 && <p className="line small soft">{t("bar.other_tab")}</p>}
      {problem && <div className="line"><Problem error={problem} /><button type="button" className="button quiet" onClick={() => change({ problem: undefined })}>{t("close")}</button></div>}
      {others.filter((c) => shown.includes(c)).map((other) => <div className="line" key={other.key}>{other.state === "ringing" ? <Ringing call={other} front={call} /> : <Waiting call={other} />}</div>)}
      {call && shown.includes(call) && (call.state === "ringing" ? <div className="line"><Ringing call={call} front={null} /></div> : <InCall key={call.key} call={call} />)}
    </section>
  );
}

function Who({ call }: { call: PhoneCall }) {
  const who = call.name ?? <PhoneNumber number={call.number} />;
  const state = call.state === "talking" ? t(call.held ? "bar.held" : "bar.talking") : t(call.state === "calling" ? "bar.calling" : "bar.ringing");
  return (
    <div className="who">
      <strong>{call.id ? <Link href={call.state === "ringing" ? "/desk" : "/calls/" + call.id}>{who}</Link> : who}</strong>
      <span className="soft" role="status">{state} {call.state === "talking" && <Running since={call.since} />}</span>
    </div>
  );
}

/** A call that rings. Answering puts the call in front on hold. */
function Ringing({ call, front }: { call: PhoneCall; front: PhoneCall | null }) {
  const act = useStore(controls);
  return (
    <>
      <Who call={call} />
      <button type="button" className="button answer big" disabled={front?.state === "calling"} onClick={() => act?.answer(call.key)}><Icon name="phone" />{t(front ? "second.answer" : "ringing.answer")}</button>
      <button type="button" className="button big" onClick={() => act?.hangUp(call.key)}><Icon name="hangup" />{t("ringing.decline")}</button>
    </>
  );
}

/** A call on hold beside the one in front. */
function Waiting({ call }: { call: PhoneCall }) {
  const act = useStore(controls);
  const who = call.name ?? spaced(call.number);
  return (
    <>
      <Who call={call} />
      <button type="button" className="button" aria-label={t("second.switch.name", { who })} onClick={() => act?.switchTo(call.key)}><Icon name="swap" />{t("second.switch")}</button>
      <button type="button" className="button" aria-label={t("second.hang_up", { who })} onClick={() => act?.hangUp(call.key)}><Icon name="hangup" />{t("bar.hang_up")}</button>
    </>
  );
}

type Action = "calls.hold" | "calls.unhold" | "calls.transfer.complete" | "calls.transfer.cancel" | "calls.recording.pause" | "calls.recording.resume";

/** Sends an action on a call. The answer is the call as it is then. */
export function useAction(id: string | undefined) {
  return useMutation({
    mutationFn: ({ action, body }: { action: Action; body?: Record<string, unknown> }) => request(action, { path: { id: id ?? "" }, body: body ?? {} } as never) as Promise<Call>,
    onMutate: () => change({ problem: undefined }),
    onSuccess: (now) => keep(now),
    onError: (problem) => change({ problem }),
  });
}

/** Shows a call as an action has left it. */
export function keep(now: Call): void {
  queries.setQueryData(["calls.get", callQuery(now.id)], (before: Result<"calls.get"> | undefined) => ({ ...before, ...now, legs: now.legs ?? before?.legs ?? null }));
  void queries.invalidateQueries({ queryKey: ["calls.get"] });
}

/** What the bar reads of a call. */
export const callQuery = (id: string) => ({ path: { id }, query: { expand: ["legs" as const] } });

export const transferRuns = (call: Call | undefined): boolean => ["started", "ringing", "consulting"].includes(call?.transfer?.status ?? "");

type Panel = "keypad" | "transfer" | "add" | undefined;

function InCall({ call }: { call: PhoneCall }) {
  const act = useStore(controls);
  const [panel, show] = useState<Panel>();
  const action = useAction(call.id);
  const record = useRead("calls.get", callQuery(call.id ?? ""), { enabled: call.id !== undefined }).data;
  const talking = call.state === "talking", busy = action.isPending || !call.id, moving = transferRuns(record);
  const toggle = (name: Panel) => show((now) => (now === name ? undefined : name));
  const hold = () => action.mutate({ action: call.held ? "calls.unhold" : "calls.hold" }, { onSuccess: () => changeCall(call.key, { held: !call.held }) });
  useShortcuts({
    m: () => { if (talking) act?.mute(!call.muted); },
    h: () => { if (talking && !busy && !moving) hold(); },
    t: () => { if (talking && !busy && !moving) toggle("transfer"); },
    k: () => { if (talking) toggle("keypad"); },
  }, () => act?.hangUp(call.key));
  return (
    <>
      {call.bad && <Sound bad={call.bad} />}
      {talking && record && <Suspense fallback={null}><Parties call={call} record={record} action={action} /></Suspense>}
      <div className="line">
        <Who call={call} />
        {record && <RecordingState record={record} action={action} />}
        {talking && (
          <>
            <button type="button" className="button" aria-pressed={call.muted} aria-keyshortcuts="m" onClick={() => act?.mute(!call.muted)}>
              <Icon name={call.muted ? "micOff" : "mic"} />{t(call.muted ? "bar.unmute" : "bar.mute")}
            </button>
            {!moving && <button type="button" className="button" aria-pressed={call.held} aria-keyshortcuts="h" disabled={busy} onClick={hold}><Icon name="pause" />{t(call.held ? "bar.unhold" : "bar.hold")}</button>}
            {!moving && <button type="button" className="button" aria-expanded={panel === "transfer"} aria-keyshortcuts="t" disabled={busy} onClick={() => toggle("transfer")}><Icon name="handover" />{t("bar.transfer")}</button>}
            {!moving && <button type="button" className="button" aria-expanded={panel === "add"} disabled={busy} onClick={() => toggle("add")}><Icon name="userPlus" />{t("bar.add")}</button>}
            <button type="button" className="button" aria-expanded={panel === "keypad"} aria-keyshortcuts="k" onClick={() => toggle("keypad")}><Icon name="keypad" />{t("bar.keypad")}</button>
          </>
        )}
        <button type="button" className="button danger" aria-keyshortcuts="Control+Shift+H" onClick={() => act?.hangUp(call.key)}><Icon name="hangup" />{t("bar.hang_up")}</button>
      </div>
      {panel === "keypad" && talking && <div className="tones" role="group" aria-label={t("bar.keypad")}>{[..."123456789*0#"].map((d) => <button type="button" className="button" key={d} onClick={() => act?.tone(d)}>{d}</button>)}</div>}
      {(panel === "transfer" || panel === "add") && talking && !moving && call.id && <Suspense fallback={null}><HandOver key={panel} id={call.id} add={panel === "add"} close={() => show(undefined)} /></Suspense>}
    </>
  );
}

/** Says in words which direction sounds bad. */
function Sound({ bad }: { bad: BadSound }) {
  const loss = number(bad.loss * 100), jitter = number(bad.jitter * 1000);
  const why = bad.loss > 0.05 ? t("sound.loss", { loss }) : t("sound.jitter", { jitter });
  return <p className="line warning" role="status"><Icon name="alert" size={16} />{t(bad.side === "here" ? "sound.here" : "sound.there")} {why}</p>;
}

/** Whether the call is recorded, always in words, and the way to leave something out. */
function RecordingState({ record, action }: { record: Call; action: ReturnType<typeof useAction> }) {
  const { state } = record.recording, paused = state === "paused";
  return (
    <span className="recording-state">
      <span className="state small"><span className={"dot " + (state === "recording" ? "red" : "grey")} />{state === "recording" ? t("bar.recording") : (textOf("bar.recording." + state) ?? state)}</span>
      {(paused || state === "recording") && (
        <button type="button" className="button quiet" disabled={action.isPending} onClick={() => action.mutate({ action: paused ? "calls.recording.resume" : "calls.recording.pause" })}>
          {t(paused ? "bar.recording.resume" : "bar.recording.pause")}
        </button>
      )}
    </span>
  );
}

/** Calls functions for keys that are pressed outside of fields, and hangUp for Ctrl Shift H everywhere. */
function useShortcuts(keys: Record<string, () => void>, hangUp: () => void): void {
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      if (e.ctrlKey && e.shiftKey && e.key.toLowerCase() === "h") {
        e.preventDefault();
        hangUp();
        return;
      }
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
