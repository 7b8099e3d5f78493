import { memo, useEffect, useMemo, useRef, useState } from "react";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { duration, t } from "../../words/words";
import type { Segment, Speakers, Transcript } from "./Conversation";
import type { PlayerState } from "./Player";

/** The words of a call. They follow the sound, and a click plays from there. */
export function WhatWasSaid({ segments, engine, player, speakers }: { segments: Segment[]; engine: Transcript["engine"] | undefined; player: PlayerState; speakers: Speakers }) {
  const at = useStore(player.position) * 1000, playing = useStore(player.playing);
  const [search, setSearch] = useState("");
  const current = segments.findLast((s) => s.start_ms <= at && at < s.end_ms + 400)?.index;
  const found = useMemo(() => (search.trim() === "" ? 0 : segments.reduce((n, s) => n + split(s.text, search).filter((p) => p.hit).length, 0)), [segments, search]);
  return (
    <section className="card" aria-labelledby="said">
      <header>
        <h2 id="said">{t("words.title")}</h2>
        {engine && <span className="tag machine"><Icon name="sparkles" size={14} />{t("words.engine", { engine: engine.name })}</span>}
        <label className="find">
          <Icon name="search" size={16} /><span className="hidden">{t("words.find")}</span>
          <input type="search" className="input" placeholder={t("words.find")} value={search} onChange={(e) => setSearch(e.currentTarget.value)} />
          {search.trim() !== "" && <small role="status">{t("words.found", { count: found })}</small>}
        </label>
      </header>
      <ol className="said">
        {segments.map((s) => (
          <Line key={s.index} segment={s} speaker={speakers(s.speaker)} search={search.trim()} current={s.index === current} follow={playing}
            at={s.index === current ? at : undefined} onPlay={player.source ? player.seek : undefined} />
        ))}
      </ol>
    </section>
  );
}

type LineProps = { segment: Segment; speaker: string; search: string; current: boolean; follow: boolean; at: number | undefined; onPlay: PlayerState["seek"] | undefined };

const Line = memo(function Line({ segment, speaker, search, current, follow, at, onPlay }: LineProps) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => { if (current && follow) line.current?.scrollIntoView({ block: "nearest" }); }, [current, follow]);
  const time = duration(segment.start_ms / 1000);
  return (
    <li ref={line} className={current ? "current" : undefined} aria-current={current ? "true" : undefined}>
      {onPlay
        ? <button type="button" className="time" aria-label={t("words.play", { time })} onClick={() => onPlay(segment.start_ms / 1000, true)}>{time}</button>
        : <span className="time">{time}</span>}
      <span className={"speaker " + segment.speaker}>{speaker}</span>
      <span className="text">{at !== undefined && search === "" && segment.words?.length ? <Words segment={segment} at={at} /> : <Marked text={segment.text} search={search} />}</span>
    </li>
  );
});

/** The words of a line, the one that is heard marked. */
function Words({ segment, at }: { segment: Segment; at: number }) {
  const heard = segment.words?.findLastIndex((w) => w.start_ms <= at) ?? -1;
  return <>{segment.words?.map((w, i) => <span key={i} className={i === heard ? "word heard" : "word"}>{w.text} </span>)}</>;
}

function Marked({ text, search }: { text: string; search: string }) {
  return <>{split(text, search).map((p, i) => (p.hit ? <mark key={i}>{p.text}</mark> : p.text))}</>;
}

/** Splits a text at the places where another is found, upper and lower case alike. */
function split(text: string, search: string): { text: string; hit: boolean }[] {
  const wanted = search.trim().toLowerCase(), lower = text.toLowerCase();
  if (wanted === "" || lower.length !== text.length) return [{ text, hit: false }];
  const parts: { text: string; hit: boolean }[] = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push({ text: text.slice(from, at), hit: false }, { text: text.slice(at, at + wanted.length), hit: true });
    from = at + wanted.length;
  }
  parts.push({ text: text.slice(from), hit: false });
  return parts.filter((p) => p.text !== "");
}
