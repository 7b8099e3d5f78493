import { useCallback, useEffect, useRef, useState } from "react";
import { changePreferences } from "../../api/preferences";
import { useStore } from "../../live/store";
import { Icon } from "../../parts/Icon";
import { changeSound, playRingtone, ringtones, sound, type RingtoneName } from "../../phone/sound";
import { t, type Key } from "../../words/words";
import { Microphone } from "./Microphone";

/** Milliseconds after the last move of the volume until it is stored. */
const settled = 400;

/** Ringtone, volume and devices of the telephone in the browser. The ringtone is kept for the person, the devices for this browser. */
export function Sounds() {
  const now = useStore(sound);
  const { devices, look } = useDevices();
  const later = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [fault, setFault] = useState<string>();
  const keep = (members: { ringtone?: string; ringVolume?: number }) => { changePreferences((before) => ({ ...before, ...members })).catch((cause: Error) => setFault(cause.message)); };
  const setVolume = (volume: number) => {
    changeSound({ volume });
    clearTimeout(later.current);
    later.current = setTimeout(() => keep({ ringVolume: volume }), settled);
  };
  const hear = () => {
    try {
      const end = playRingtone(1);
      setTimeout(end, ringtones[sound.get().ringtone].period * 1000);
    } catch (cause) {
      setFault(String(cause));
    }
  };
  const select = (kind: MediaDeviceKind, member: "ringDevice" | "output" | "microphone", label: Key) => {
    const all = devices.filter((d) => d.kind === kind && d.deviceId !== "" && d.deviceId !== "default");
    const gone = now[member] !== "" && !all.some((d) => d.deviceId === now[member]);
    return (
      <label className="field">
        <span>{t(label)}</span>
        <select value={now[member]} onChange={(e) => changeSound({ [member]: e.currentTarget.value })}>
          <option value="">{t("sounds.system")}</option>
          {all.map((d, n) => <option key={d.deviceId} value={d.deviceId}>{d.label || t("sounds.device", { n: n + 1 })}</option>)}
          {gone && <option value={now[member]}>{t("sounds.gone")}</option>}
        </select>
      </label>
    );
  };
  return (
    <section className="card" aria-labelledby="sounds">
      <header><h2 id="sounds">{t("sounds.title")}</h2></header>
      <div className="inside">
        <div className="pair">
          <label className="field">
            <span>{t("sounds.ringtone")}</span>
            <select value={now.ringtone} onChange={(e) => { changeSound({ ringtone: e.currentTarget.value as RingtoneName }); keep({ ringtone: e.currentTarget.value }); }}>
              {Object.keys(ringtones).map((name) => <option key={name} value={name}>{t(`sounds.ringtone.${name}` as Key)}</option>)}
            </select>
          </label>
          <button type="button" className="button" onClick={hear}><Icon name="play" size={15} />{t("sounds.hear")}</button>
        </div>
        <label className="field"><span>{t("sounds.volume")}</span><input type="range" min={0} max={1} step={0.05} value={now.volume} aria-valuetext={Math.round(now.volume * 100) + " %"} onChange={(e) => setVolume(Number(e.currentTarget.value))} /></label>
        {select("audiooutput", "ringDevice", "sounds.ring_device")}
        {select("audiooutput", "output", "sounds.output")}
        {select("audioinput", "microphone", "sounds.microphone")}
        <p className="soft small">{t("sounds.kept")}</p>
        <Microphone device={now.microphone} onAllowed={look} />
        {fault && <p role="alert" className="fault">{fault}</p>}
      </div>
    </section>
  );
}

/** The devices for sound. Browsers tell their names after the microphone was allowed. */
function useDevices(): { devices: MediaDeviceInfo[]; look: () => void } {
  const [devices, setDevices] = useState<MediaDeviceInfo[]>([]);
  const look = useCallback(() => { void navigator.mediaDevices.enumerateDevices().then(setDevices); }, []);
  useEffect(() => {
    look();
    navigator.mediaDevices.addEventListener("devicechange", look);
    return () => navigator.mediaDevices.removeEventListener("devicechange", look);
  }, [look]);
  return { devices, look };
}
