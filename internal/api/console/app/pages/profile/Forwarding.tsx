import { useState } from "react";
import { useMe, useRead, useScope } from "../../api/query";
import { t, type Key } from "../../words/words";
import { Save } from "./Save";
import { useChange, type Settings } from "./settings";

const conditions = ["always", "busy", "no_answer", "unreachable"] as const;

type Forward = Settings["forward"];

const usualSeconds = 25;

/** Where calls go that the person does not answer. */
export function Forwarding({ settings }: { settings: Settings }) {
  const change = useChange();
  const [draft, setDraft] = useState<Forward>(settings.forward);
  const changed = JSON.stringify(draft) !== JSON.stringify(settings.forward);
  const after = settings.voicemail.enabled ? t("forward.voicemail") : t("forward.nobody");
  const label = (c: (typeof conditions)[number]) => t(`forward.${c}` as Key);
  return (
    <Save title={t("forward.title")} id="forwarding" changed={changed} state={change}
      fields={Object.fromEntries([...conditions, "no_answer_seconds" as const].map((c) => ["forward." + c, t(`forward.${c}` as Key)]))}
      onSave={() => change.mutate({ forward: plain(draft) }, { onSuccess: (stored) => setDraft(stored.forward) })}>
      {conditions.map((c) => (
        <Destination key={c} label={label(c)} none={c === "always" ? t("forward.not") : after} value={draft[c]} onChange={(to) => setDraft((before) => ({ ...before, [c]: to }))} />
      ))}
      <label className="field short">
        <span>{t("forward.no_answer_seconds")}</span>
        <input type="number" min={5} max={120} placeholder={String(usualSeconds)} value={draft.no_answer_seconds ?? ""}
          onChange={(e) => { const { value } = e.currentTarget; setDraft((before) => ({ ...before, no_answer_seconds: value === "" ? null : Number(value) })); }} />
      </label>
    </Save>
  );
}

/** Returns the destinations with numbers as they are dialled, without spaces and brackets. */
function plain(draft: Forward): Forward {
  const bare = (to: string | null) => (to === null || to.includes(":") ? to : to.replace(/[^+\d*#]/g, ""));
  return { ...draft, ...Object.fromEntries(conditions.map((c) => [c, bare(draft[c])])) };
}

const other = "number";

/** A colleague, a queue or a number that a call goes to. */
function Destination({ label, none, value, onChange }: { label: string; none: string; value: string | null; onChange: (to: string | null) => void }) {
  const { user } = useMe(), named = useScope("queues:read");
  const agents = useRead("agents.list", { query: { limit: 100 } }, { enabled: named, staleTime: 300_000 });
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: named, staleTime: 300_000 });
  const people = (agents.data?.data ?? []).flatMap((a) => (a.extension && a.id !== user?.id ? [{ to: "ext:" + a.extension, also: "user:" + a.id, name: `${a.name} (${a.extension})` }] : []));
  const lines = (queues.data?.data ?? []).map((k) => ({ to: "queue:" + k.id, also: "ext:" + (k.extension ?? ""), name: k.name }));
  const known = [...people, ...lines].find((o) => value !== null && (o.to === value || o.also === value));
  const [typing, type] = useState(value !== null && value !== "" && !value.includes(":"));
  const chosen = typing ? other : value === null ? "" : (known?.to ?? value);
  return (
    <div className="destination">
      <label className="field">
        <span>{label}</span>
        <select value={chosen} onChange={(e) => {
          const to = e.currentTarget.value;
          type(to === other);
          onChange(to === "" ? null : to === other ? "" : to);
        }}>
          <option value="">{none}</option>
          {people.length > 0 && <optgroup label={t("forward.people")}>{people.map((o) => <option key={o.to} value={o.to}>{o.name}</option>)}</optgroup>}
          {lines.length > 0 && <optgroup label={t("forward.queues")}>{lines.map((o) => <option key={o.to} value={o.to}>{o.name}</option>)}</optgroup>}
          {value !== null && !known && !typing && <option value={value}>{value}</option>}
          <option value={other}>{t("forward.number")}</option>
        </select>
      </label>
      {typing && <label className="field"><span className="hidden">{label}: {t("forward.number.of")}</span><input type="tel" required placeholder="+44 20 7946 0018" value={value ?? ""} onChange={(e) => onChange(e.currentTarget.value)} /></label>}
    </div>
  );
}
