// Numbers beside the figures, and the sentence of the answer.

import type { Asked } from "./asked";
import type { RunLines } from "./series";

export interface Row {
  name: string;
  meanMbps: number;
  /** Of what the rate allows. */
  share: number;
  retransmitted: number;
  timeouts: number;
  rttMs: number;
  /** When the last connection had sent its bytes; NaN: none ends, or not all have. */
  completedS: number;
  limit: string;
}

export function summary(asked: Asked, runs: readonly RunLines[]): Row[] {
  const rows = asked.flows.map((flow, index) => {
    const run = asked.alone ? runs[index]! : runs[0]!;
    const lines = asked.alone ? run.flows[0]! : run.flows[index]!;
    const done = flow.bytes !== undefined && lines.completedS.length === flow.count;
    const completedS = done ? Math.max(...lines.completedS) : NaN;
    // While it was there.
    const activeS = done ? completedS : run.nowS - flow.startS;
    const meanMbps = activeS > 0 ? (lines.bytes * 8) / activeS / 1e6 : NaN;
    const rtts = lines.rtt.y.values.filter((rtt) => rtt > 0);
    return {
      name: asked.names[index]!,
      meanMbps,
      share: meanMbps / asked.mostMbps,
      retransmitted: lines.segments > 0 ? lines.retransmits / lines.segments : 0,
      timeouts: lines.timeouts,
      rttMs: rtts.length > 0 ? rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length : NaN,
      completedS,
      limit: "",
    };
  });
  const whole = rows.reduce((sum, row) => sum + (row.share || 0), 0);
  rows.forEach((row, index) => {
    const run = asked.alone ? runs[index]! : runs[0]!;
    row.limit = limit(asked, run, asked.alone ? 0 : index, row, asked.alone ? row.share : whole);
  });
  return rows;
}

function limit(asked: Asked, run: RunLines, flow: number, row: Row, share: number): string {
  const lines = run.flows[flow]!;
  if (!Number.isNaN(row.completedS)) return "it had no more to send";
  if (lines.receiverS > run.nowS / 2) return "the receiver's window";
  if (lines.bufferS > run.nowS / 2) return "the send buffer";
  if (share > 0.9) return asked.flows.length > 1 && !asked.alone ? "the rate, which the flows share" : "the path's rate";
  if (run.lostAll === 0 && run.dropped === 0) return run.marked > 0 ? "marks of the queue" : "its start: nothing was lost yet";
  return run.lostAll > run.dropped ? "loss on the path, taken for congestion" : "drops at the queue";
}

const digits = (value: number): string => (Number.isNaN(value) ? "–" : value >= 100 ? value.toFixed(0) : value.toPrecision(3));
export const percent = (share: number): string => (Number.isNaN(share) ? "–" : `${(100 * share).toPrecision(share >= 0.1 ? 3 : 2)}%`);
export const mbps = (value: number): string => `${digits(value)} Mbit/s`;
export { digits };

/** What came out, in a sentence or two. */
export function sentence(asked: Asked, rows: readonly Row[]): string {
  const { scenario } = asked.question;
  const { path = {} } = scenario;
  const where = `${path.rate ?? "100 Mbit/s"}, ${path.rtt ?? "20 ms"}, ${path.loss ?? "0%"} loss`;
  const each = rows.map((row) => {
    const got = `${row.name} gets ${mbps(row.meanMbps)}, ${percent(row.share)} of what the rate allows`;
    return Number.isNaN(row.completedS) ? `${got}; the limit is ${row.limit}` : `${got}, and is done after ${digits(row.completedS)} s`;
  });
  return `${where}: ${each.join(". ")}.`;
}
