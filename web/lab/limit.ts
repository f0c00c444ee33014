// What limited a flow, told from what was counted of itself, and of the path while it was there: the largest of what held it back.

import { significant } from "./amount";
import type { Asked } from "./asked";
import type { FlowLines, Line, RunLines } from "./series";

/** From when to when it was there: seconds since the run's start. */
export interface Life {
  startS: number;
  endS: number;
}

/** From this share on a link is full; from this share of a life on a buffer held a flow back at all. */
const FULL = 0.9;
const LEAST = 0.1;
/** Flows that meet for less of a life than this do not share it. */
const TOGETHER = 0.1;
/** Controls that take a loss for congestion, whatever lost it. */
const TAKEN_FOR_CONGESTION = ["reno", "cubic", "dctcp", "prague"];
/** And BBRv3 where more than this is lost in a round trip (draft-ietf-ccwg-bbr, BBR.LossThresh). */
const BBR3_LOSS = 0.02;

/** What the flow has of its run, and when all its connections had sent their bytes; NaN: none ends, or not all have. */
export function told(asked: Asked, runs: readonly RunLines[], flow: number): { run: RunLines; lines: FlowLines; completedS: number } {
  const run = asked.alone ? runs[flow]! : runs[0]!;
  const lines = asked.alone ? run.flows[0]! : run.flows[flow]!;
  const { bytes, count } = asked.flows[flow]!;
  const done = bytes !== undefined && lines.completedS.length === count;
  return { run, lines, completedS: done ? Math.max(...lines.completedS) : NaN };
}

export function life(asked: Asked, runs: readonly RunLines[], flow: number): Life {
  const { run, completedS } = told(asked, runs, flow);
  const { startS, durationS } = asked.flows[flow]!;
  return { startS, endS: Math.min(run.nowS, startS + (Number.isNaN(completedS) ? durationS : completedS)) };
}

export function limit(asked: Asked, runs: readonly RunLines[], flow: number, share: number): string {
  const { lines } = told(asked, runs, flow);
  const own = life(asked, runs, flow);
  const seconds = own.endS - own.startS;
  if (seconds <= 0) return "it has not begun";
  const [receiver, buffer] = [mean(lines.receiverS) / seconds, mean(lines.bufferS) / seconds];
  const network = byNetwork(asked, runs, flow, share, Math.max(0, 1 - receiver - buffer));
  const held = Math.max(receiver, buffer);
  if (held < LEAST || held < network.share) return network.words;
  return receiver >= buffer ? "the receiver's window" : "the send buffer";
}

/** What of the network limits it, and by how much: for all of the time that its hosts leave, where the rate is used up or where it
 *  makes room for what it takes for congestion; else for the share of its segments that is lost, or for nothing.
 */
function byNetwork(asked: Asked, runs: readonly RunLines[], flow: number, share: number, free: number): { words: string; share: number } {
  const { run, lines } = told(asked, runs, flow);
  const { cc, count } = asked.flows[flow]!;
  const own = life(asked, runs, flow);
  const seconds = own.endS - own.startS;
  const full = (bytes: Line, bps: number): boolean => (within(bytes, own, asked.intervalS) * 8) / seconds > FULL * bps;
  const path = pathLosses(run, lines, own, asked.intervalS);
  const byPath = path > lines.retransmits - path;
  const mistaken = byPath && TAKEN_FOR_CONGESTION.includes(cc);
  // A full link does not limit one that makes room by mistake.
  if (share > FULL || (full(run.sentBytes, asked.rateBps) && !mistaken)) {
    const others = asked.alone ? [] : together(asked, runs, flow);
    if (others.length > 0) return { words: shared(asked, runs, own, others), share: free };
    return { words: count > 1 ? "the rate, which its connections share" : "the path's rate", share: free };
  }
  if (asked.reverseBps !== undefined && full(run.backBytes, asked.reverseBps)) {
    return { words: "the way back, full of acknowledgements", share: free };
  }
  const marked = sum(lines.echoed);
  // What timers sent again before an answer could come was not lost.
  const gone = path > 0 || within(run.drops, own, asked.intervalS) > 0;
  if (lines.segments === 0 && !gone) return { words: "its start: the handshake was not over", share: 0 };
  if ((lines.retransmits === 0 || !gone) && marked === 0) {
    if (cc.startsWith("bbr")) return { words: "its own pace: nothing was lost", share: 0 };
    const starts = Number.isNaN(lines.ssthresh.y.values.at(-1) ?? NaN);
    return { words: starts ? "its start: nothing was lost" : "its window, which still grew", share: 0 };
  }
  const cut = TAKEN_FOR_CONGESTION.includes(cc) || (cc.startsWith("bbr3") && path > BBR3_LOSS * lines.segments);
  if (marked > lines.retransmits) return { words: "marks of the queue", share: free };
  if (!byPath) return { words: "drops at the queue", share: cut ? free : lines.retransmits / lines.segments };
  const words = mistaken ? "loss on the path, taken for congestion" : "loss on the path";
  return { words, share: cut ? free : path / Math.max(lines.segments, 1) };
}

/** Who has most of what another one is left without. */
function shared(asked: Asked, runs: readonly RunLines[], own: Life, others: readonly number[]): string {
  const seconds = own.endS - own.startS;
  const got = others.map((other) => (within(told(asked, runs, other).lines.goodput, own, asked.intervalS) * asked.intervalS) / seconds);
  const most = Math.max(...got);
  const name = asked.names[others[got.indexOf(most)]!]!;
  const of = `${significant(most, 3)} Mbit/s, ${significant((100 * most) / asked.mostMbps, 2)}%`;
  return `the rate, which it shares: ${name} takes ${others.length > 1 ? "most of the others' part, " : ""}${of}`;
}

/** About how many of its segments the path lost: a link drops packets of all flows alike, so by its share of what passed then. */
function pathLosses(run: RunLines, { segments, retransmits }: FlowLines, own: Life, intervalS: number): number {
  const passed = within(run.sentPackets, own, intervalS);
  const rate = passed > 0 ? within(run.lost, own, intervalS) / passed : 0;
  // What the queue dropped of it never came to the link: lost = rate (segments − (retransmits − lost)).
  return rate < 1 ? Math.min(retransmits, (rate * (segments - retransmits)) / (1 - rate)) : retransmits;
}

/** The other flows that were there for a good part of its life. */
function together(asked: Asked, runs: readonly RunLines[], flow: number): number[] {
  const own = life(asked, runs, flow);
  return [...asked.flows.keys()].filter((other) => {
    const its = life(asked, runs, other);
    const both = Math.min(own.endS, its.endS) - Math.max(own.startS, its.startS);
    return other !== flow && both > TOGETHER * (own.endS - own.startS);
  });
}

/** The sum over those intervals of which half or more is in its life. */
function within({ t, y }: Line, { startS, endS }: Life, intervalS: number): number {
  const values = y.values;
  const inside = (end: number): boolean => end - intervalS / 2 >= startS && end - intervalS / 2 <= endS;
  return t.values.reduce((all, end, at) => (inside(end) ? all + values[at]! : all), 0);
}

export const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
const mean = (values: readonly number[]): number => (values.length > 0 ? sum(values) / values.length : 0);
