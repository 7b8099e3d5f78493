import { useEffect, useState } from "react";
import type { Input } from "../../api/client";
import { useRead, useScope } from "../../api/query";
import { t, type Key } from "../../words/words";

type Query = NonNullable<Input<"calls.list">["query"]>;
type Params = URLSearchParams;

const directions = ["inbound", "outbound", "internal"] as const;
const outcomes = ["completed", "missed", "no_answer", "busy", "failed", "canceled"] as const;
const moods = ["positive", "neutral", "negative", "mixed"] as const;
const periods = { day: 1, week: 7, month: 30 } as const;

/** Returns the query of the API for the filters of an address. */
export function queryOf(params: Params): Query {
  const query: Record<string, unknown> = {};
  for (const name of ["direction", "status", "agent_id", "queue_id", "sentiment", "has_recording", "tag"]) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  const phone = params.get("phone")?.replace(/[^+\d]/g, "");
  if (phone) query["phone"] = phone;
  const days = periods[params.get("period") as keyof typeof periods];
  // Whole days: the query, and so what is kept of it, stays the same for a day.
  if (days) query["since"] = new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
  return query as Query;
}

const waitBeforeSearch = 300;

/** The filters of the list of calls. */
export function Filters({ params, onChange }: { params: Params; onChange: (change: (before: Params) => Params, options?: { replace: boolean }) => void }) {
  const mayName = useScope("queues:read");
  const agents = useRead("agents.list", { query: { limit: 100 } }, { enabled: mayName, staleTime: 300_000 });
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: mayName, staleTime: 300_000 });
  const set = (name: string, value: string) => onChange((before) => {
    const next = new URLSearchParams(before);
    if (value) next.set(name, value);
    else next.delete(name);
    return next;
  }, { replace: true });
  const select = (name: string, label: Key, options: [string, string][]) => (
    <label className="field">
      <span>{t(label)}</span>
      <select value={params.get(name) ?? ""} onChange={(e) => set(name, e.currentTarget.value)}>
        <option value="">{t("filter.all")}</option>
        {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    </label>
  );
  const named = (prefix: string, all: readonly string[]) => all.map((id): [string, string] => [id, t(`${prefix}.${id}` as Key)]);
  return (
    <form className="filters" role="search" aria-label={t("filter.label")} onSubmit={(e) => e.preventDefault()}>
      <Phone value={params.get("phone") ?? ""} onChange={(value) => set("phone", value)} />
      {select("period", "filter.period", named("period", Object.keys(periods)))}
      {select("direction", "filter.direction", named("direction", directions))}
      {select("status", "filter.status", named("status", outcomes))}
      {agents.data && select("agent_id", "filter.agent", agents.data.data.map((a) => [a.id, a.name]))}
      {queues.data && queues.data.data.length > 0 && select("queue_id", "filter.queue", queues.data.data.map((q) => [q.id, q.name]))}
      {select("sentiment", "filter.mood", named("mood", moods))}
      {select("has_recording", "filter.recording", [["true", t("yes")], ["false", t("no")]])}
      {params.size > 0 && <button type="button" className="button quiet" onClick={() => onChange(() => new URLSearchParams())}>{t("filter.clear")}</button>}
    </form>
  );
}

/** The number, which is searched for a moment after the last key. */
function Phone({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => onChange(typed), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  return <label className="field"><span>{t("filter.phone")}</span><input type="search" inputMode="tel" value={typed} placeholder="+44…" onChange={(e) => type(e.currentTarget.value)} /></label>;
}
