// The table of numbers beside the figures, and the sentence with the answer.

import { significant } from "./amount";
import type { Experiment } from "./experiment";
import type { RunLines } from "./series";

export interface Row {
  name: string;
  meanMbps: number;
  /** The flow was active for only part of the run so far; its mean is over that part. */
  partly: boolean;
  /** Sent, including retransmissions. */
  segments: number;
  /** As a share of what the rate allows. */
  share: number;
  retransmitted: number;
  /** The share of segments that arrived whose mark was echoed. */
  marked: number;
  timeouts: number;
  rttMs: number;
  /** When the last connection had sent its bytes; NaN: none ends, or some have not. */
  completedS: number;
  limit: string;
}

export function summary(experiment: Experiment, runs: readonly RunLines[]): Row[] {
  const limits = runs.map((run) => run.limited());
  return experiment.flows.map((_, index) => {
    const [run, at] = experiment.alone ? [index, 0] : [0, index];
    const { nowS, flows } = runs[run]!;
    const lines = flows[at]!;
    // While it was active.
    const { words, start_s: startS, end_s: endS, completed_s, goodput_bps, share_of_rate: share } = limits[run]![at]!;
    const meanMbps = endS > startS ? goodput_bps / 1e6 : NaN;
    const delivered = sum(lines.delivered);
    const rtts = lines.rtt.y.values.filter((rtt) => rtt > 0);
    return {
      name: experiment.names[index]!,
      meanMbps,
      partly: startS > 0 || endS < nowS,
      segments: lines.segments,
      share: endS > startS ? share : NaN,
      retransmitted: lines.segments > 0 ? lines.retransmits / lines.segments : 0,
      marked: delivered > 0 ? sum(lines.echoed) / delivered : 0,
      timeouts: lines.timeouts,
      rttMs: rtts.length > 0 ? rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length : NaN,
      completedS: completed_s ?? NaN,
      limit: words,
    };
  });
}

export const digits = (value: number): string => significant(value, 3);
export const percent = (share: number): string => (Number.isNaN(share) ? "–" : `${significant(100 * share, share >= 0.1 ? 3 : 2)}%`);
export const mbps = (value: number): string => (value > 0 && value < 0.01 ? `${digits(value * 1e3)} kbit/s` : `${digits(value)} Mbit/s`);
/** More flows than this appear only in the table. */
const MOST_TOLD = 6;

/** The result, in a sentence or two. */
export function sentence(experiment: Experiment, rows: readonly Row[]): string {
  const { scenario } = experiment.question;
  const { path = {} } = scenario;
  const where = `${path.rate ?? "100 Mbit/s"}, ${path.rtt ?? "20 ms"}, ${path.loss ?? "0%"} loss`;
  const each = rows.map((row, flow) => {
    const { count } = experiment.flows[flow]!;
    const got = `${count > 1 ? `${row.name}, ${count} connections together, gets` : `${row.name} gets`} ${mbps(row.meanMbps)}, ${percent(row.share)} of what the rate allows`;
    return Number.isNaN(row.completedS) ? `${got}; the limit is ${row.limit}` : `${got}, and is done after ${digits(row.completedS)} s; the limit was ${row.limit}`;
  });
  const more = each.length > MOST_TOLD ? ` ${each.length - MOST_TOLD} more flows are in the table.` : "";
  return `${where}: ${each.slice(0, MOST_TOLD).join(". ")}.${more}`;
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
