// Counts of each kind of event per flow, and a sentence or two on what loss did to it.

import { significant, stretch } from "../amount";
import type { Limited } from "../core";
import { KINDS, ORDER, type FlowEvent } from "./events";

/** For one flow: all counts, and the events to step through. */
export interface Story {
  name: string;
  cc: string;
  counts: Map<string, number>;
  /** In order of time; only the first if there are very many. */
  steps: FlowEvent[];
  /** Windows before and after each cut; pacing rates in Mbit/s. */
  before: number[];
  after: number[];
  paced: number[];
  found: number;
  sent: number;
}

/** The most events to step through. */
export const MOST_STEPS = 20_000;

/** A window that reaches this share of the path fills it at times. */
const FULL = 0.9;

export function story(name: string, cc: string): Story {
  return { name, cc, counts: new Map(), steps: [], before: [], after: [], paced: [], found: 0, sent: 0 };
}

export function add(to: Story, one: FlowEvent): void {
  const counted = one.kind.startsWith("lost-by") || one.kind.startsWith("data-") || one.kind.startsWith("ack-") ? one.segments : 1;
  to.counts.set(one.kind, (to.counts.get(one.kind) ?? 0) + counted);
  if (to.steps.length < MOST_STEPS) to.steps.push(one);
  if (one.kind.startsWith("lost-by")) to.found += one.segments;
  if (KINDS[one.kind]?.class === "less") {
    to.before.push(one.before);
    if (!Number.isNaN(one.ssthresh)) to.after.push(one.ssthresh);
    if (!Number.isNaN(one.pacingMbps)) to.paced.push(one.pacingMbps);
  }
}

/** Kinds of events that at least one flow had, in the order of the list. */
export function kinds(stories: readonly Story[]): string[] {
  return ORDER.filter((kind) => stories.some(({ counts }) => counts.has(kind)));
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
const times = (count: number): string => (count === 1 ? "once" : `${count} times`);

/** What losses and marks did to the flow. `fills`: the number of segments that fill the path without a queue. */
export function lossSentence({ name, cc, counts, before, after, paced, found }: Story, durationS: number, fills: number): string {
  const of = (kind: string): number => counts.get(kind) ?? 0;
  const cuts = of("recovery") + of("reduced-by-mark") + of("reduced-by-probe") + of("timeout");
  const lost = `${name}: ${found === 0 ? "no segment was" : found === 1 ? "1 segment was" : `${found} segments were`} found lost`;
  const timeouts = of("timeout") > 0 ? ` There ${of("timeout") === 1 ? "was 1 timeout" : `were ${of("timeout")} timeouts`}.` : "";
  if (cc.startsWith("bbr")) {
    if (found === 0) return `${lost}.`;
    const rate = paced.length > 0 ? `, and kept pacing at ${significant(median(paced), 3)} Mbit/s (median)` : "";
    const section = KINDS["recovery"]!.source(cc);
    return `${lost}. ${times(of("recovery")).replace(/^./, (letter) => letter.toUpperCase())} it repaired losses. It does not treat them as congestion: it measures the bandwidth that gets through, and sends at that rate. It kept its model of the path, bandwidth × round trip${rate} (${section}).${timeouts}`;
  }
  if (cuts === 0) return `${lost}, and nothing cut its window.`;
  const grown = `Each cut took it from ${median(before)} to ${median(after)} segments (medians); ${fills} fill this path.`;
  const how = of("reduced-by-mark") + of("timeout") > 0 ? "" : cc === "cubic" ? " to 70% (RFC 9438 section 4.6)" : cc === "reno" ? " to half (RFC 5681 section 3.2)" : "";
  const marks = of("reduced-by-mark");
  const why = marks === 0 ? "losses" : cuts > marks ? "losses and marks" : "marks";
  const often = `${times(cuts)} its window was cut${how}${cuts > 1 ? `, every ${stretch(durationS / cuts)}` : ""}`;
  return `${lost}. It treats ${why} as congestion: ${often}. ${grown}${tooSoon(of, median(before), median(after), fills)}${timeouts}`;
}

/** The facts behind the causes other than losses. */
export interface LimitFacts {
  limited: Limited;
  /** The sender's mean RTT, and the RTT of the path without a queue. */
  seenS: number;
  rttS: number;
  /** In bytes; half of it is window. `fills`: the number of segments that fill the path without a queue. */
  receiveBuffer: number;
  fills: number;
}

/** Limits that hold a flow back for less of its time are not named. */
const MIN_SHARE = 0.1;
/** The queue is named from this share of the path's RTT on. */
const WAITED = 0.05;
/** Payload of a full segment. */
const SEGMENT = 1448;

const percent = (share: number): string => `${significant(100 * share, 2)}%`;

/** Names what held a flow back besides losses and marks: other flows, its hosts, or a full return path; and the queueing delay. */
export function limitSentence({ limited, seenS, rttS, receiveBuffer, fills }: LimitFacts): string {
  const { limit, shares, takers, share_of_rate } = limited;
  const share = (name: string): number => shares.find(([one]) => one === name)?.[1] ?? 0;
  const words: string[] = [];
  if (limit === "shared rate") {
    const others = takers.slice(0, 3).map(({ flow, goodput_bps, share: taken }) => `${flow} gets ${significant(goodput_bps / 1e6, 3)} Mbit/s (${percent(taken)})`);
    words.push(`The line is full, and it is not alone there: it gets ${percent(share_of_rate)}, ${others.join(", ")}.`);
  }
  if (limit === "rate") words.push(`The line is full, and it has it for itself: it gets ${percent(share_of_rate)} of what the rate allows.`);
  if (limit === "return path") words.push("Acknowledgements fill the return path, so fewer packets can leave.");
  if (share("receive window") >= MIN_SHARE) {
    const window = Math.floor(receiveBuffer / 2 / SEGMENT);
    words.push(`The receiver's window held it back for ${percent(share("receive window"))} of its time: its buffer is a window of about ${window} segments, and ${fills} fill this path.`);
  }
  if (share("send buffer") >= MIN_SHARE) words.push(`Its own send buffer held it back for ${percent(share("send buffer"))} of its time.`);
  const waitedS = seenS - rttS;
  if (waitedS > WAITED * rttS) words.push(`Its packets wait ${stretch(waitedS)} in the queue on average: a round trip takes ${stretch(seenS)}, and ${stretch(rttS)} without a queue.`);
  return words.map((one) => ` ${one}`).join("");
}

/** Why the goodput is low, if the path loses packets before a window can fill it. */
function tooSoon(of: (kind: string) => number, before: number, after: number, fills: number): string {
  if (of("data-lost") <= of("data-dropped") || !(before < FULL * fills)) return "";
  const filled = significant((50 * (before + after)) / fills, 1);
  return ` The path loses the next packet before the window has grown back, so it fills about ${filled}% of the path, and gets about that share of the rate.`;
}
