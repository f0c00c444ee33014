// A connection over time.

import { LIMITS, scale } from "../../capture/sequence";
import look from "../../capture/look.json";
import type { Axis, Figure, Panel, Series, Span } from "../../draw/form";
import type { Curves } from "./protocol";

export const GROUP = "capture";
/** The most points of a curve, and the most shaded stretches; each is shaded by what limited most of it. */
const [POINTS, STRETCHES] = [1500, 400];
/** Multiple of the peak in flight. A larger receive window limits nothing, and would flatten the other curves. */
const SEEN = 1.6;
const ROUND_TRIPS = 3;

export function overTime(curves: Curves, medianS: number, endS: number): Figure {
  const { t } = curves;
  const length = t.length > 1 ? (t.at(-1)! - t[0]!) / (t.length - 1) : endS;
  const many = (least: number): number => Math.max(1, Math.round(Math.max(least, endS / POINTS) / length));
  const fine = many(0);
  const coarse = many(ROUND_TRIPS * medianS);
  const ends = (size: number): Float64Array => grouped(t, size, (all) => all.at(-1)!);
  const flight = grouped(curves.flightBytes, fine, most);
  const highest = most(flight);
  const window = grouped(curves.windowBytes, fine, least).map((one) => (one <= SEEN * highest ? one : NaN));
  const goodput = grouped(curves.goodputBps, coarse, mean);
  const [rtt, smallest] = [grouped(curves.rttS, fine, mean), grouped(curves.rttMinS, fine, least)];
  const x = time(endS);
  const spans = stretches(curves, length);
  const panel = (title: string, largest: number, unit: string, ...lines: [string, string, Float64Array, Float64Array][]): Panel => {
    const [factor, scaled] = scale(largest, unit);
    const series = lines.map(([name, colour, at, y]): Series => ({ name, colour, kind: "line", x: at, y: y.map((one) => one / factor) }));
    return { title, x, y: { label: title.toLowerCase(), unit: scaled, scale: "linear", zero: true }, series, spans };
  };
  return {
    name: "capture-over-time",
    title: "Over time",
    sentence: "goodput, bytes in flight and round-trip time, shaded by what limited the transfer",
    panels: [
      panel("Goodput", most(goodput), "bit/s", ["goodput", look.data, ends(coarse), goodput]),
      panel("In flight", highest, "B", ["in flight, largest", look.data, ends(fine), flight], ["receive window, smallest", look.window, ends(fine), window]),
      panel("Round-trip time", most(rtt), "s", ["look.rtt, mean", look.rtt, ends(fine), rtt], ["look.rtt, least", look.ack, ends(fine), smallest]),
    ],
    across: 1,
    group: GROUP,
    height: 170,
  };
}

/** Stretches of time by what limited most of each. */
export function stretches({ t, limit }: Curves, length: number): Span[] {
  const size = Math.max(1, Math.ceil(t.length / STRETCHES));
  const found: Span[] = [];
  let [latest, from] = [-1, Math.max(0, (t[0] ?? 0) - length)];
  for (let at = 0; at < t.length; at += size) {
    const counts = [0, 0, 0, 0, 0, 0];
    for (const one of limit.subarray(at, at + size)) counts[one]! += 1;
    const now = counts.indexOf(Math.max(...counts));
    const to = t[Math.min(at + size, t.length) - 1]!;
    const known = LIMITS[now];
    if (now === latest && known !== undefined) found[found.length - 1]!.to = to;
    else if (known !== undefined) found.push({ from, to, name: `limited by: ${known.name}`, colour: known.colour });
    [latest, from] = [now, to];
  }
  return found;
}

function time(endS: number): Axis {
  return { label: "time since the first segment", unit: "s", scale: "linear", low: 0, high: endS > 0 ? endS : 1e-3 };
}

/** Reduces each group of `size` values to one. */
function grouped(values: Float64Array, size: number, one: (of: Float64Array) => number): Float64Array {
  return Float64Array.from({ length: Math.ceil(values.length / size) }, (_, at) => one(values.subarray(at * size, (at + 1) * size)));
}

function known(of: Float64Array): Float64Array {
  return of.filter((one) => !Number.isNaN(one));
}

function most(of: Float64Array): number {
  return known(of).reduce((one, other) => Math.max(one, other), 0);
}

function least(of: Float64Array): number {
  const all = known(of);
  return all.length > 0 ? all.reduce((one, other) => Math.min(one, other)) : NaN;
}

function mean(of: Float64Array): number {
  const all = known(of);
  return all.reduce((sum, one) => sum + one, 0) / all.length;
}
