import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { useMe, useRead, useScope } from "../../api/query";
import { AsRequest } from "../../parts/AsRequest";
import { Problem } from "../../parts/Problem";
import { Title } from "../../parts/Title";
import { t, type Key } from "../../words/words";
import { People } from "./People";
import { useFavourites } from "./favourites";
import { useTeam } from "./agents";

const states = ["available", "busy", "wrap_up", "away", "dnd", "offline"] as const;

/** The colleagues: what each of them does now, since when, and in which queues. The filters are in the address. */
export default function Team() {
  const [params, setParams] = useSearchParams();
  const { user } = useMe();
  const favourites = useFavourites();
  const q = params.get("q") ?? "", status = params.get("status") ?? "", queue = params.get("queue_id") ?? "";
  const team = useTeam({ q, status, queue });
  const all = team.data?.pages.flatMap((page) => page.data) ?? [];
  const chosen = favourites.ids.flatMap((id) => all.filter((a) => a.id === id)), others = all.filter((a) => !favourites.ids.includes(a.id));
  const own = all.find((a) => a.id === user?.id);
  const set = (name: string, value: string) => setParams((before) => {
    const next = new URLSearchParams(before);
    if (value) next.set(name, value);
    else next.delete(name);
    return next;
  }, { replace: true });
  const alone = team.isSuccess && all.length === 1 && own && params.size === 0;
  return (
    <div className="sheet">
      <Title text={t("nav.team")}><AsRequest /></Title>
      <form className="filters" role="search" aria-label={t("filter.label")} onSubmit={(e) => e.preventDefault()}>
        <Search value={q} onChange={(value) => set("q", value)} />
        <label className="field">
          <span>{t("team.state")}</span>
          <select value={status} onChange={(e) => set("status", e.currentTarget.value)}>
            <option value="">{t("filter.all")}</option>
            {states.map((s) => <option key={s} value={s}>{t(`presence.${s}` as Key)}</option>)}
          </select>
        </label>
        <Queues value={queue} onChange={(value) => set("queue_id", value)} />
        {params.size > 0 && <button type="button" className="button quiet" onClick={() => setParams(new URLSearchParams())}>{t("filter.clear")}</button>}
      </form>
      {team.error && <Problem error={team.error} retry={() => void team.refetch()} />}
      {favourites.fault && <Problem error={favourites.fault} />}
      {chosen.length > 0 && <People title={t("team.favourites")} people={chosen} own={own} favourites={favourites} />}
      {others.length > 0 && <People title={chosen.length > 0 ? t("team.others") : t("team.all")} people={others} own={own} favourites={favourites} />}
      {team.isPending && <p className="loading" role="status">{t("loading")}</p>}
      {alone && <p className="card empty">{t("team.alone")}</p>}
      {team.isSuccess && all.length === 0 && <p className="card empty">{t("team.none")}</p>}
      {team.hasNextPage && <p className="more"><button type="button" className="button" disabled={team.isFetchingNextPage} onClick={() => void team.fetchNextPage()}>{t("calls.more")}</button></p>}
    </div>
  );
}

const waitBeforeSearch = 150;

/** A part of a name, which is searched for a moment after the last key. */
function Search({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => onChange(typed), waitBeforeSearch);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  return <label className="field"><span>{t("team.search")}</span><input type="search" value={typed} placeholder={t("team.search.example")} onChange={(e) => type(e.currentTarget.value)} /></label>;
}

function Queues({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const queues = useRead("queues.list", { query: { limit: 100 } }, { enabled: useScope("queues:read"), staleTime: 300_000 });
  if (!queues.data?.data.length) return null;
  return (
    <label className="field">
      <span>{t("filter.queue")}</span>
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        <option value="">{t("filter.all")}</option>
        {queues.data.data.map((k) => <option key={k.id} value={k.id}>{k.name}</option>)}
      </select>
    </label>
  );
}
