import { useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";
import { store, useStore, type Store } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { duration, t } from "../../words/words";
import type { Recording, Segment, Speakers } from "./Conversation";

/** The sound of a recording, and where it is. */
export interface PlayerState {
  audio: RefObject<HTMLAudioElement | null>;
  source: string | undefined;
  position: Store<number>; // in seconds
  playing: Store<boolean>;
  seek: (seconds: number, play?: boolean) => void;
}

export function usePlayer(source: string | undefined): PlayerState {
  const audio = useRef<HTMLAudioElement>(null);
  const [position] = useState(() => store(0)), [playing] = useState(() => store(false));
  const seek = useCallback((seconds: number, play = false) => {
    const a = audio.current;
    if (!a) return;
    a.currentTime = Math.max(0, seconds);
    position.set(a.currentTime);
    if (play) void a.play().catch(() => undefined); // the browser may want a click first
  }, [position]);
  return useMemo(() => ({ audio, source, position, playing, seek }), [source, position, playing, seek]);
}

const rates = [1, 1.5, 2];
const step = 5;

/** What is known of a sound that is played. */
export type Sound = Pick<Recording, "call_id" | "duration_seconds" | "pauses">;

type Sides = { player: PlayerState; recording: Sound; segments: Segment[]; speakers: Speakers; single?: boolean };

/** Plays a recording. Space plays and pauses, the arrows move by five seconds. single: only the caller speaks. */
export function Player({ player, recording, segments, speakers, single = false }: Sides) {
  const playing = useStore(player.playing);
  const [rate, setRate] = useState(1), [error, setError] = useState(false);
  const toggle = () => {
    const a = player.audio.current;
    if (a?.paused) void a.play().catch(() => setError(true));
    else a?.pause();
  };
  useFrames(player, playing);
  useEffect(() => { if (player.audio.current) player.audio.current.playbackRate = rate; }, [rate, player]);
  const move = (by: number) => player.seek(player.position.get() + by);
  const keys = (e: KeyboardEvent) => {
    if (e.key === "ArrowRight") move(step);
    else if (e.key === "ArrowLeft") move(-step);
    else if (e.key === " " && !(e.target instanceof HTMLButtonElement)) toggle();
    else return;
    e.preventDefault();
  };
  return (
    <section className="card player" aria-label={t("player.label")} onKeyDown={keys}>
      <audio ref={player.audio} src={player.source} preload="metadata" onPlay={() => player.playing.set(true)} onPause={() => player.playing.set(false)}
        onEnded={() => player.playing.set(false)} onError={() => setError(true)} />
      <Lanes player={player} recording={recording} segments={segments} speakers={speakers} single={single} />
      <div className="controls">
        <button type="button" className="button primary" aria-label={t(playing ? "player.pause" : "player.play")} onClick={toggle}><Icon name={playing ? "pause" : "play"} /></button>
        <button type="button" className="button quiet" aria-label={t("player.back")} onClick={() => move(-step)}><Icon name="back" /></button>
        <button type="button" className="button quiet" aria-label={t("player.forward")} onClick={() => move(step)}><Icon name="forward" /></button>
        <Position player={player} length={recording.duration_seconds} />
        <span className="segments" role="group" aria-label={t("player.rate")}>
          {rates.map((r) => <button type="button" key={r} aria-pressed={r === rate} onClick={() => setRate(r)}>{r}×</button>)}
        </span>
        <CopyMoment player={player} />
        <a className="button" href={player.source} download={recording.call_id + ".wav"}><Icon name="download" size={16} />{t("player.download")}</a>
        <span className="soft small hint">{t("player.keys")}</span>
      </div>
      {error && <p role="alert" className="fault">{t("player.error")}</p>}
    </section>
  );
}

/** Follows the sound while it plays, once a frame. */
function useFrames(player: PlayerState, playing: boolean): void {
  useEffect(() => {
    if (!playing) return;
    let frame = requestAnimationFrame(function follow() {
      player.position.set(player.audio.current?.currentTime ?? 0);
      frame = requestAnimationFrame(follow);
    });
    return () => cancelAnimationFrame(frame);
  }, [player, playing]);
}

function Position({ player, length }: { player: PlayerState; length: number }) {
  const at = useStore(player.position);
  return <span className="figures position">{duration(at)} <span className="soft">{t("player.of", { time: duration(length) })}</span></span>;
}

function CopyMoment({ player }: { player: PlayerState }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    const at = new URL(location.href);
    at.hash = "t=" + Math.floor(player.position.get());
    history.replaceState(history.state, "", at);
    await navigator.clipboard.writeText(at.href).catch(() => undefined); // the address bar has it anyway
    setCopied(true);
  };
  return <button type="button" className="button" onClick={() => void copy()} onBlur={() => setCopied(false)}><Icon name={copied ? "check" : "share"} size={16} />{t(copied ? "copied" : "player.link")}</button>;
}

/** Who spoke when, in two lanes. A slider moves the sound. */
function Lanes({ player, recording, segments, speakers, single = false }: Sides) {
  const at = useStore(player.position);
  const length = Math.max(recording.duration_seconds, ...segments.map((s) => s.end_ms / 1000), 1);
  const ours = (s: Segment) => s.speaker === "agent" || s.speaker === "ai";
  return (
    <div className="lanes">
      <svg viewBox={`0 0 ${length} 64`} preserveAspectRatio="none" aria-hidden="true">
        <line x1={0} x2={length} y1={32} y2={32} className="middle" />
        {segments.map((s) => {
          const x = s.start_ms / 1000, width = Math.max((s.end_ms - s.start_ms) / 1000, length / 400);
          const side = { x, y: single ? 23 : ours(s) ? 38 : 8, height: 18, className: ours(s) ? "agent" : "caller" };
          return <g key={s.index}><rect {...side} width={width} /><rect {...side} width={Math.max(0, Math.min(width, at - x))} className={side.className + " heard"} /></g>;
        })}
        {recording.pauses.map((p, i) => <Pause key={i} pause={p} length={length} />)}
        <line x1={at} x2={at} y1={0} y2={64} className="now" />
      </svg>
      <span className="lane-name first">{speakers("caller")}</span>
      {!single && <span className="lane-name second">{speakers(segments.some((s) => s.speaker === "ai") ? "ai" : "agent")}</span>}
      <input type="range" min={0} max={length} step={0.1} value={at} aria-label={t("player.position")} aria-valuetext={t("player.at", { time: duration(at), all: duration(length) })}
        onChange={(e) => player.seek(Number(e.currentTarget.value))} />
    </div>
  );
}

/** A time in which the recording was paused. It has no end while it lasts. */
function Pause({ pause, length }: { pause: Recording["pauses"][number]; length: number }) {
  const from = pause.from_ms / 1000, to = pause.to_ms > 0 ? pause.to_ms / 1000 : length;
  return <rect x={from} width={Math.max(0, Math.min(to, length) - from)} y={0} height={64} className="pause" />;
}
