import type { Call } from "../api/client";
import { Icon, type IconName } from "./Icon";
import { Running } from "./Running";
import { t, type Key } from "../words/words";

const running = ["queued", "ringing", "in_progress", "on_hold"];
const unanswered = ["missed", "no_answer", "busy", "failed", "canceled"];

export const isRunning = (call: Pick<Call, "status">): boolean => running.includes(call.status);

/** The direction of a call. */
export function Direction({ call }: { call: Pick<Call, "direction" | "status"> }) {
  const lost = call.status === "missed";
  const icon: IconName = lost ? "missed" : call.direction === "inbound" ? "incoming" : call.direction === "outbound" ? "outgoing" : "phone";
  return <span className={lost ? "direction lost" : "direction"} title={t(`direction.${call.direction}` as Key)}><Icon name={icon} /><span className="hidden">{t(`direction.${call.direction}` as Key)}</span></span>;
}

/** The state of a call in a word, with a colour and the running time. */
export function State({ call }: { call: Pick<Call, "status" | "answered_at" | "started_at"> }) {
  const colour = isRunning(call) ? (call.status === "in_progress" ? "green" : "amber") : unanswered.includes(call.status) ? "red" : "grey";
  return (
    <span className="state">
      <span className={"dot " + colour} />{t(`status.${call.status}` as Key)}
      {isRunning(call) && <span className="soft"> <Running since={call.answered_at ?? call.started_at} /></span>}
    </span>
  );
}
