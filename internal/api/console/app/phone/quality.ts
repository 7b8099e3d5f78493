import type { BadSound } from "./state";

/** Milliseconds between two measurements. */
const every = 2000;
/** Share of packets lost, and jitter in seconds, beyond which speech suffers. */
const muchLoss = 0.05, muchJitter = 0.05;
/** How many measurements in a row must be bad, or good again, before the warning changes: a single burst is no state. */
const inARow = 2;

interface Counters { received: number; lost: number }

/**
 * Measures a connection until the returned function is called, and tells when one direction begins to sound bad, and when it no longer
 * does.
 */
export function watchSound(connection: RTCPeerConnection, told: (bad: BadSound | undefined) => void): () => void {
  let before: Counters | undefined, bad = 0, good = 0, shown = false;
  const timer = setInterval(() => void measure(), every);
  async function measure(): Promise<void> {
    const { found, counters } = judge(await connection.getStats(), before);
    before = counters;
    bad = found ? bad + 1 : 0;
    good = found ? 0 : good + 1;
    if (found && bad >= inARow) {
      shown = true;
      told(found);
    } else if (shown && good >= inARow) {
      shown = false;
      told(undefined);
    }
  }
  return () => clearInterval(timer);
}

/** Finds the direction that sounds bad since the last measurement. What is not heard here is reported first. */
function judge(stats: RTCStatsReport, before: Counters | undefined): { found: BadSound | undefined; counters: Counters | undefined } {
  let counters: Counters | undefined, here: BadSound | undefined, there: BadSound | undefined;
  stats.forEach((s: Record<string, unknown> & { type: string }) => {
    const n = (name: string) => Number(s[name] ?? 0);
    if (s.type === "inbound-rtp") {
      counters = { received: n("packetsReceived"), lost: n("packetsLost") };
      const lost = before ? counters.lost - before.lost : 0, all = before ? counters.received - before.received + lost : 0;
      here = tooBad("here", all > 0 ? lost / all : 0, n("jitter"));
    }
    if (s.type === "remote-inbound-rtp") there = tooBad("there", n("fractionLost"), n("jitter"));
  });
  return { found: here ?? there, counters };
}

function tooBad(side: BadSound["side"], loss: number, jitter: number): BadSound | undefined {
  return loss > muchLoss || jitter > muchJitter ? { side, loss, jitter } : undefined;
}
