import type { Result } from "../../api/client";

type Trace = Result<"calls.trace">["messages"][number];
type Leg = NonNullable<Result<"calls.get">["legs"]>[number];

/** A SIP message of a call. */
export interface Message extends Trace {
  key: string;
  /** Which lane its other side has. */
  lane: string;
  /** Its method, or status and reason. */
  title: string;
  /** What matters in it: the codecs that are offered, or why the call ended. */
  note: string;
  /** Whether it says that something failed. */
  bad: boolean;
  /** Seconds since the first message. */
  seconds: number;
}

/** A party of a call, or this server. */
export interface Lane { key: string; name: string; address: string; ours: boolean }

/** Reads what a ladder shows of a message. */
export function read(m: Trace, i: number, all: Trace[]): Message {
  const start = m.text.slice(0, m.text.indexOf("\r\n") < 0 ? undefined : m.text.indexOf("\r\n"));
  const status = /^SIP\/2\.0 (\d{3}) ?(.*)$/.exec(start);
  const title = status ? `${status[1]} ${status[2]}`.trim() : (start.split(" ")[0] ?? start);
  const code = Number(status?.[1] ?? 0);
  return {
    ...m, key: String(i), lane: m.leg_id ?? m.remote, title, note: noteOf(m.text),
    bad: title === "CANCEL" || (code >= 400 && code !== 401 && code !== 407), // those two ask for a password
    seconds: (Date.parse(m.at) - Date.parse(all[0]?.at ?? m.at)) / 1000,
  };
}

/** Returns the codecs and the encryption of a session description, or the reason that a message gives. */
function noteOf(text: string): string {
  const reason = /^Reason:\s*(.+)$/im.exec(text)?.[1];
  if (reason) return /text="([^"]*)"/.exec(reason)?.[1] ?? reason.replace(";cause=", " ").trim();
  const audio = /^m=audio \d+ (\S+) ([\d ]+)/m.exec(text);
  if (!audio) return "";
  const names = [...text.matchAll(/^a=rtpmap:\d+ ([^/\s]+)/gm)].map((found) => found[1] ?? "").filter((name) => !/^(telephone-event|CN)$/i.test(name));
  const security = /^a=fingerprint:/m.test(text) ? "DTLS-SRTP" : audio[1]?.includes("SAVP") ? "SRTP" : "";
  const still = /^a=(sendonly|recvonly|inactive)/m.exec(text)?.[1] ?? "";
  return [[...new Set(names)].slice(0, 3).join(", "), security, still].filter(Boolean).join(", ");
}

/** Returns the lanes of a ladder: the caller, this server, and the others in the order of their first message. */
export function lanesOf(all: Message[], legs: Leg[], nameOf: (leg: Leg) => string): Lane[] {
  const lanes: Lane[] = [];
  for (const m of all) {
    if (lanes.some((lane) => lane.key === m.lane)) continue;
    const leg = legs.find((l) => l.id === m.leg_id);
    lanes.push({ key: m.lane, name: leg ? nameOf(leg) : m.remote, address: `${m.remote} ${m.transport}`, ours: false });
  }
  const first = all[0];
  lanes.splice(1, 0, { key: "", name: "soniq", address: first?.local ?? "", ours: true });
  return lanes;
}
