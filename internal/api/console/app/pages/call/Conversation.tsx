import { useEffect, useMemo, useState } from "react";
import type { Call, Result } from "../../api/client";
import { otherParty, useNames, useReadIfPresent } from "../../api/query";
import { isRunning } from "../../parts/CallState";
import { spaced } from "../../parts/PhoneNumber";
import { Problem } from "../../parts/Problem";
import { t, type Key } from "../../words/words";
import { Details } from "./Details";
import { Notes } from "./Notes";
import { Player, usePlayer } from "./Player";
import { Summary } from "./Summary";
import { WhatWasSaid } from "./WhatWasSaid";

export type Transcript = Result<"calls.transcript">;
export type Recording = Result<"calls.recording">;
export type Segment = NonNullable<Transcript["segments"]>[number];

/** Sound, words, summary, details and notes of a call. The hash of the address, such as #t=25, names a moment. */
export function Conversation({ call }: { call: Call }) {
  const path = { id: call.id };
  const recording = useReadIfPresent("calls.recording", { path }, !!call.recording.recording_id);
  const transcript = useReadIfPresent("calls.transcript", { path, query: { words: true } }, !!call.transcript_id);
  const segments = useMemo(() => [...(transcript.data?.segments ?? [])].sort((a, b) => a.start_ms - b.start_ms), [transcript.data]);
  const available = recording.data?.status === "available" ? recording.data : undefined;
  const player = usePlayer(available ? `/api/v1/recordings/${available.id}/audio` : undefined);
  const speakers = useSpeakers(call);
  useMoment(!!available, player.seek);
  return (
    <div className="conversation">
      <div className="column">
        {recording.error && <Problem error={recording.error} />}
        {available
          ? <Player player={player} recording={available} segments={segments} speakers={speakers} />
          : <p className="card empty">{recordingState(call, recording.data)}</p>}
        {transcript.error && <Problem error={transcript.error} />}
        {segments.length > 0
          ? <WhatWasSaid segments={segments} engine={transcript.data?.engine} player={player} speakers={speakers} />
          : <p className="card empty">{wordsState(call, transcript.data)}</p>}
      </div>
      <div className="column">
        <Summary call={call} segments={segments} seek={player.seek} />
        <Details call={call} recording={recording.data ?? undefined} />
        <Notes call={call} />
      </div>
    </div>
  );
}

/** Why there is no sound to play. */
function recordingState(call: Call, recording: Recording | null | undefined): string {
  if (call.recording.state === "recording") return t("recording.running");
  if (call.recording.state === "paused") return t("recording.paused");
  if (!call.recording.recording_id) return t(isRunning(call) ? "recording.off.now" : "recording.none");
  if (!recording) return t("loading");
  return t(`recording.${recording.status}` as Key);
}

/** Why there are no words to read. */
function wordsState(call: Call, transcript: Transcript | null | undefined): string {
  if (!call.transcript_id || !transcript) return t(isRunning(call) ? "words.later" : "words.none");
  if (transcript.status === "skipped") return t(`words.skipped.${transcript.skipped_reason ?? "disabled"}` as Key);
  if (transcript.status === "failed") return t("words.failed");
  return t(transcript.status === "completed" ? "words.silent" : "words.processing");
}

/** Names of the speakers of a call. */
export type Speakers = (speaker: Segment["speaker"]) => string;

function useSpeakers(call: Call): Speakers {
  const nameOf = useNames();
  const { name, number } = otherParty(call);
  const agent = nameOf(call.agent_id ?? call.user_id);
  return (speaker) => {
    if (speaker === "agent") return agent ?? t("speaker.agent");
    if (speaker === "caller") return name ?? spaced(number);
    return t(`speaker.${speaker}` as Key);
  };
}

/** Goes to the moment that the address names, once there is sound, and when the address changes. */
export function useMoment(ready: boolean, seek: (seconds: number, play?: boolean) => void): void {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    const at = /^#t=(\d+(?:\.\d+)?)$/.exec(hash)?.[1];
    if (ready && at !== undefined) seek(Number(at));
  }, [ready, hash, seek]);
}
