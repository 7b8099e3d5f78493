import { useEffect, useRef, useState } from "react";
import { Icon } from "../../parts/Icon";
import { microphone } from "../../phone/sound";
import { t } from "../../words/words";

/** The level above which something is heard, and milliseconds without it until the page says what may be wrong. */
const audible = 0.02, patience = 4000, every = 100;

type State = "off" | "listening" | "heard" | "silent" | "refused" | "missing";

/** Shows how loud the microphone is, so that people see whether they can be heard. Nothing is sent anywhere. */
export function Microphone({ device, onAllowed }: { device: string; onAllowed: () => void }) {
  const [state, setState] = useState<State>("off"), [level, setLevel] = useState(0);
  const end = useRef<(() => void) | undefined>(undefined);
  const stop = () => {
    end.current?.();
    end.current = undefined;
    setState("off");
    setLevel(0);
  };
  useEffect(() => stop, [device]);
  const start = async () => {
    let stream: MediaStream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: microphone() });
    } catch (cause) {
      setState(cause instanceof DOMException && cause.name === "NotAllowedError" ? "refused" : "missing");
      return;
    }
    onAllowed();
    const context = new AudioContext(), meter = context.createAnalyser(), samples = new Float32Array(meter.fftSize), began = Date.now();
    context.createMediaStreamSource(stream).connect(meter);
    setState("listening");
    const timer = setInterval(() => {
      meter.getFloatTimeDomainData(samples);
      const loud = Math.sqrt(samples.reduce((sum, s) => sum + s * s, 0) / samples.length);
      setLevel(loud);
      if (loud > audible) setState("heard");
      else if (Date.now() - began > patience) setState((now) => (now === "listening" ? "silent" : now));
    }, every);
    end.current = () => {
      clearInterval(timer);
      stream.getTracks().forEach((track) => track.stop());
      void context.close();
    };
  };
  const on = state === "listening" || state === "heard" || state === "silent";
  return (
    <div className="microphone" role="group" aria-label={t("mic.title")}>
      <div className="pair">
        <button type="button" className="button" aria-pressed={on} onClick={() => (on ? stop() : void start())}><Icon name={on ? "close" : "mic"} size={16} />{t(on ? "mic.stop" : "mic.start")}</button>
        {on && <meter aria-label={t("mic.level")} min={0} max={0.4} low={audible} high={0.35} optimum={0.15} value={Math.min(0.4, level)} />}
      </div>
      <p className={state === "refused" || state === "missing" || state === "silent" ? "small fault" : "small soft"} role="status">{state === "off" ? t("mic.help") : t(`mic.${state}`)}</p>
    </div>
  );
}
