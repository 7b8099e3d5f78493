import { useRef, useState, type ReactNode } from "react";
import { changePreferences } from "../../api/preferences";
import { useMe } from "../../api/query";
import { useStore } from "../../live/store";
import { curl } from "../../parts/AsRequest";
import { Icon } from "../../parts/Icon";
import { startPhone } from "../../phone/phone";
import { phone } from "../../phone/state";
import { t, type Key } from "../../words/words";
import { Invite } from "./Invite";
import { useSteps, type StepName } from "./steps";

const names: StepName[] = ["phone", "people", "number", "flow"];

/** What a new organisation needs before calls arrive. Each step says how it is done, and is ticked when it is done. */
export function GettingStarted() {
  const done = useSteps();
  const [opened, open] = useState<StepName>();
  // A list that becomes complete while it is seen stays until it is closed.
  const seen = useRef(false);
  if (!done) return null;
  const left = names.filter((name) => !done[name]);
  if (left.length > 0) seen.current = true;
  if (!seen.current) return null;
  const close = () => { changePreferences((before) => ({ ...before, startHidden: true })).catch(() => undefined); };
  const shown = opened ?? left[0];
  return (
    <section className="card start" aria-labelledby="start">
      <header>
        <h2 id="start">{t("start.title")}</h2>
        <span className="soft" role="status">{left.length > 0 ? t("start.left", { done: names.length - left.length, all: names.length }) : t("start.done")}</span>
        <button type="button" className="button quiet" onClick={close}>{t(left.length > 0 ? "start.hide" : "close")}</button>
      </header>
      <ol>
        {names.map((name, n) => (
          // The invitation stays open when it is done: its link is shown once.
          <Step key={name} n={n + 1} name={name} done={done[name]} open={shown === name} onOpen={() => open(name)} keepOpen={name === "people" ? () => open(name) : undefined}><How name={name} /></Step>
        ))}
      </ol>
    </section>
  );
}

function Step({ n, name, done, open, onOpen, keepOpen, children }: { n: number; name: StepName; done: boolean; open: boolean; onOpen: () => void; keepOpen: (() => void) | undefined; children: ReactNode }) {
  const title = t(`start.${name}` as Key);
  return (
    <li className={done ? "done" : undefined}>
      <span className="tick">{done ? <Icon name="check" size={15} /> : <span aria-hidden="true">{n}</span>}</span>
      <div>
        <button type="button" className="step" aria-expanded={open} onClick={onOpen}>{title}<span className="hidden">{done ? ", " + t("start.step.done") : ""}</span></button>
        {open && <div className="how" onFocus={keepOpen} onInput={keepOpen}>{children}</div>}
      </div>
    </li>
  );
}

function How({ name }: { name: StepName }) {
  switch (name) {
    case "people": return <Invite />;
    case "phone": return <Phone />;
    case "number": return <><p>{t("start.number.help")}</p><Line path="/api/v1/trunks" body={{ name: "Carrier", host: "sip.carrier.example", transport: "udp", username: "…", password: "…" }} /><p>{t("start.number.then")}</p><Line path="/api/v1/numbers" body={{ number: "+12025550143", trunk_id: "trk_…" }} /></>;
    case "flow": return <><p>{t("start.flow.help")}</p><Line path="/api/v1/flows" body={{ name: "Main", publish: true, ivr: { greeting: t("start.flow.greeting"), options: { 1: "ext:100" }, timeout_to: "ext:100" } }} /><p>{t("start.flow.then")}</p><Line method="PATCH" path="/api/v1/numbers/num_…" body={{ flow_id: "flw_…" }} /></>;
  }
}

/** The phone in the browser takes one press; a desk phone registers with its own account. */
function Phone() {
  const { user } = useMe(), { reach, fault } = useStore(phone);
  return (
    <>
      <p>{t("start.phone.help")}</p>
      {reach === "off" && user && <p><button type="button" className="button primary" onClick={() => void startPhone(user.id)}><Icon name="headphones" size={16} />{t("start.phone.browser")}</button></p>}
      {reach !== "off" && <p role="status">{t(`phone.${reach}` as Key)}{fault ? ": " + fault : ""}</p>}
      <p>{t("start.phone.desk")}</p>
      <Line path="/api/v1/devices" body={{ kind: "softphone", name: "Desk", user_id: user?.id ?? "usr_…" }} />
    </>
  );
}

/** A request as a line for a shell. */
function Line({ method = "POST", path, body }: { method?: string; path: string; body: unknown }) {
  const line = curl({ method, path, body: JSON.stringify(body) });
  const [copied, setCopied] = useState(false);
  return (
    <div className="request-line">
      <pre tabIndex={0} aria-label={`${method} ${path}`}>{line}</pre>
      <button type="button" className="button quiet" onClick={() => void navigator.clipboard.writeText(line).then(() => setCopied(true))}>{t(copied ? "copied" : "copy")}</button>
    </div>
  );
}
