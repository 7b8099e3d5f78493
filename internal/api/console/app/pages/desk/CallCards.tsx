import { useMutation } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { request } from "../../api/client";
import { queries, useMe } from "../../api/query";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { spaced } from "../../parts/PhoneNumber";
import { Running } from "../../parts/Running";
import { Problem } from "../../parts/Problem";
import { change, controls, type PhoneCall, type PhoneState } from "../../phone/state";
import { t } from "../../words/words";
import { Notes } from "../call/Notes";
import { Caller } from "./Caller";
import { Outcome } from "./Outcome";
import { TagsOf } from "./TagsOf";

/** A call that rings, with what is known of the caller. Enter answers. A call in front is put on hold then. */
export function Ringing({ call, front, enter }: { call: PhoneCall; front: PhoneCall | null; enter: boolean }) {
  const act = useStore(controls), blocked = front?.state === "calling";
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (e.key === "Enter" && !(e.target as HTMLElement).closest("input, textarea, select, button, a, [role='menu']") && enter && !blocked) act?.answer(call.key);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [act, call.key, enter, blocked]);
  return (
    <section className="card ringing" aria-label={t("ringing.label")}>
      <header><Icon name="incoming" /><strong role="alert">{t("ringing.title", { name: call.name ?? spaced(call.number) })}</strong><span className="soft">{t("bar.ringing")} <Running since={call.since} /></span></header>
      <Caller callID={call.id} number={call.number} name={call.name} />
      <div className="buttons">
        <button type="button" className="button answer big" disabled={blocked} onClick={() => act?.answer(call.key)}><Icon name="phone" />{t(front ? "second.answer" : "ringing.answer")}</button>
        <button type="button" className="button big" onClick={() => act?.hangUp(call.key)}><Icon name="hangup" />{t("ringing.decline")}</button>
        <span className="soft small">{blocked ? t("second.blocked") : enter && <><kbd>Enter</kbd> {front ? t("second.enter", { who: front.name ?? spaced(front.number) }) : t("ringing.enter")}</>}</span>
      </div>
    </section>
  );
}

/** The call in progress: the caller, tags and notes. */
export function CallNow({ call }: { call: PhoneCall }) {
  return (
    <>
      <section className="card ringing calm" aria-label={t("desk.call")}>
        <header><Icon name="phone" /><strong>{t(call.state === "talking" ? "bar.talking" : "bar.calling")}</strong><span className="soft"><Running since={call.since} /></span></header>
        <Caller callID={call.id} number={call.number} name={call.name} />
        {call.id && <div className="inside"><TagsOf callID={call.id} /></div>}
      </section>
      {call.id && <Notes call={{ id: call.id }} />}
    </>
  );
}

/** What is left to do after a call: outcome, tags and a note. */
export function WrapUp({ call }: { call: NonNullable<PhoneState["wrapUp"]> }) {
  const { user } = useMe();
  const available = useMutation({
    mutationFn: () => request("agents.presence.set", { path: { id: user?.id ?? "" }, body: { status: "available" } }),
    onSuccess: () => {
      change({ wrapUp: null });
      controls.get()?.wrappedUp();
      return queries.invalidateQueries({ predicate: (q) => String(q.queryKey[0]).startsWith("agents.") });
    },
  });
  return (
    <>
      <section className="card" aria-labelledby="wrap-up">
        <header><h2 id="wrap-up">{t("wrapup.title", { name: call.name ?? spaced(call.number) })}</h2><Link className="soft" href={"/calls/" + call.id}>{t("wrapup.open")}</Link></header>
        <div className="inside">
          <Outcome callID={call.id} />
          <TagsOf callID={call.id} />
          {available.error && <Problem error={available.error} />}
          <p className="actions"><button type="button" className="button primary" disabled={available.isPending} onClick={() => available.mutate()}><Icon name="check" />{t("wrapup.available")}</button></p>
        </div>
      </section>
      <Notes call={{ id: call.id }} />
    </>
  );
}
