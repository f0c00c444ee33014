// Counts of each kind of event per flow, and a sentence or two on what loss did to it.

import { significant, stretch } from "../amount";
import { KINDS, ORDER, type Happening } from "./happenings";

/** For one flow: all counts, and the events to step through. */
export interface Story {
  name: string;
  cc: string;
  counts: Map<string, number>;
  /** In order of time; only the first if there are very many. */
  steps: Happening[];
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

export function add(to: Story, one: Happening): void {
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
export function told({ name, cc, counts, before, after, paced, found }: Story, durationS: number, fills: number): string {
  const of = (kind: string): number => counts.get(kind) ?? 0;
  const cuts = of("recovery") + of("reduced-by-mark") + of("reduced-by-probe") + of("timeout");
  const lost = `${name}: ${found === 0 ? "no segment was" : found === 1 ? "1 segment was" : `${found} segments were`} found lost`;
  const timeouts = of("timeout") > 0 ? ` There ${of("timeout") === 1 ? "was 1 timeout" : `were ${of("timeout")} timeouts`}.` : "";
  if (cc.startsWith("bbr")) {
    if (found === 0) return `${lost}.`;
    const rate = paced.length > 0 ? `, and kept pacing at ${significant(median(paced), 3)} Mbit/s (median)` : "";
    const section = KINDS["recovery"]!.source(cc);
    return `${lost}. ${times(of("recovery")).replace(/^./, (letter) => letter.toUpperCase())}it repaired losses. It does not treat them as congestion: it measures the bandwidth that gets through, and sends at that rate. It kept its model of the path, bandwidth × round trip${rate} (${section}).${timeouts}`;
  }
  if (cuts === 0) return `${lost}, and nothing cut its window.`;
  const grown = `Each cut took it from ${median(before)} to ${median(after)} segments (medians); ${fills} fill this path.`;
  const how = of("reduced-by-mark") + of("timeout") > 0 ? "" : cc === "cubic" ? " to 70% (RFC 9438 section 4.6)" : cc === "reno" ? " to half (RFC 5681 section 3.2)" : "";
  const marks = of("reduced-by-mark");
  const why = marks === 0 ? "losses" : cuts > marks ? "losses and marks" : "marks";
  const often = `${times(cuts)} its window was cut${how}${cuts > 1 ? `, every ${stretch(durationS / cuts)}` : ""}`;
  return `${lost}. It treats ${why} as congestion: ${often}. ${grown}${tooSoon(of, median(before), median(after), fills)}${timeouts}`;
}

/** Why the goodput is low, if the path loses packets before a window can fill it. */
function tooSoon(of: (kind: string) => number, before: number, after: number, fills: number): string {
  if (of("data-lost") <= of("data-dropped") || !(before < FULL * fills)) return "";
  const filled = significant((50 * (before + after)) / fills, 1);
  return ` The path loses the next packet before the window has grown back, so it fills about ${filled}% of the path, and gets about that share of the rate.`;
}
