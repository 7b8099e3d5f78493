import type { Preferences } from "../api/preferences";
import { store } from "../live/store";

/** The tones of a ringtone: what sounds when, in seconds of a period. */
interface Ringtone { period: number; parts: { hertz: number; at: number; length: number }[] }

export const ringtones = {
  classic: { period: 3, parts: [{ hertz: 400, at: 0, length: 1 }, { hertz: 450, at: 0, length: 1 }] },
  soft: { period: 3.2, parts: [{ hertz: 523, at: 0, length: 0.35 }, { hertz: 659, at: 0.35, length: 0.35 }, { hertz: 784, at: 0.7, length: 0.6 }] },
  bright: { period: 2.6, parts: [0, 0.22, 0.44].flatMap((at) => [{ hertz: 988, at, length: 0.12 }, { hertz: 1319, at, length: 0.12 }]) },
} satisfies Record<string, Ringtone>;

export type RingtoneName = keyof typeof ringtones;

/** How the telephone sounds. The devices are those of this browser; "" is that of the system. */
export interface Sound {
  ringtone: RingtoneName;
  /** From 0 to 1. */
  volume: number;
  ringDevice: string;
  output: string;
  microphone: string;
}

const kept = "soniq-sound";

function stored(): Partial<Sound> {
  try {
    return JSON.parse(localStorage.getItem(kept) ?? "{}") as Partial<Sound>;
  } catch {
    return {};
  }
}

export const sound = store<Sound>({ ringtone: "classic", volume: 0.6, ringDevice: "", output: "", microphone: "", ...stored() });

/** Changes how the telephone of this browser sounds. */
export function changeSound(members: Partial<Sound>): void {
  sound.set((now) => ({ ...now, ...members }));
  localStorage.setItem(kept, JSON.stringify(sound.get()));
}

/** Takes the ringtone and the volume that the server keeps for the person. */
export function takeSound({ ringtone, ringVolume }: Preferences): void {
  const now = sound.get();
  const name = ringtone && ringtone in ringtones ? (ringtone as RingtoneName) : now.ringtone;
  const volume = typeof ringVolume === "number" && ringVolume >= 0 && ringVolume <= 1 ? ringVolume : now.volume;
  if (name !== now.ringtone || volume !== now.volume) changeSound({ ringtone: name, volume });
}

/** The microphone to ask the browser for. Another one is taken if it is not connected. */
export const microphone = (): MediaTrackConstraints | true => (sound.get().microphone ? { deviceId: { ideal: sound.get().microphone } } : true);

/** The peak of a tone at full volume. */
const loudest = 0.2;

/** Lets an element sound on the chosen device, or on that of the system if it is not connected. */
export function followOutput(element: HTMLAudioElement): void {
  const choose = () => void element.setSinkId?.(sound.get().output).catch(() => undefined);
  choose();
  sound.subscribe(choose);
}

/** Plays the ringtone on the chosen device, for a number of times. loudness is a part of the chosen volume. The returned function ends it. */
export function playRingtone(times: number, loudness = 1): () => void {
  const { ringtone, volume, ringDevice } = sound.get();
  const context = new AudioContext();
  if (ringDevice) void (context as AudioContext & { setSinkId?(id: string): Promise<void> }).setSinkId?.(ringDevice).catch(() => undefined);
  const { period, parts } = ringtones[ringtone];
  for (const { hertz, at, length } of parts) {
    const level = context.createGain(), tone = context.createOscillator();
    level.gain.value = 0;
    level.connect(context.destination);
    tone.frequency.value = hertz;
    tone.connect(level);
    tone.start();
    for (let n = 0; n < times; n++) {
      const begin = context.currentTime + n * period + at;
      level.gain.setTargetAtTime(loudest * loudness * volume * volume, begin, 0.015);
      level.gain.setTargetAtTime(0, begin + length, 0.02);
    }
  }
  return () => void context.close().catch(() => undefined);
}
