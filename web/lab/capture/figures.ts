// The figures of a connection: over time, and its time-sequence graph. Colours and marks are src/sawtooth/capture/marks.py's.

import type { Axis, Figure, Panel, Series, Span } from "../../draw/form";
import type { Curves, Drawn, Points } from "./protocol";
import { scale, whole } from "./words";

export const GROUP = "capture";
const [DATA, ACK, WINDOW, SACK, RTT] = ["#0072b2", "#009e73", "#e69f00", "#cc79a7", "#0072b2"] as const;
const LIMITS: Record<number, [name: string, colour: string]> = {
  1: ["nothing to send", "#56b4e9"],
  2: ["receive window", "#e69f00"],
  3: ["congestion window", "#cc79a7"],
  4: ["path", "#009e73"],
  5: ["idle", "#cdd4dc"],
};
const MARKS: Record<number, [name: string, colour: string, symbol: NonNullable<Series["symbol"]>]> = {
  1: ["fast retransmission", "#d7191c", "up"],
  2: ["timeout", "#c2185b", "square"],
  3: ["tail loss probe", "#e8590c", "diamond"],
  4: ["spurious retransmission", "#f0569a", "cross"],
  5: ["out of order", "#56b4e9", "circle"],
  6: ["fills a hole", "#ef3b2c", "down"],
  7: ["zero-window probe, keep-alive", "#9aa5b1", "plus"],
  11: ["copy of a packet", "#9aa5b1", "circle"],
};
/** Points of a curve, and stretches of which each is shaded by what limited most of it. */
const [POINTS, STRETCHES] = [1500, 400];
/** Times what is in flight at most: a receive window above that limits nothing, and would make the rest flat. */
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
      panel("Goodput", most(goodput), "bit/s", ["goodput", DATA, ends(coarse), goodput]),
      panel("In flight", highest, "B", ["in flight, largest", DATA, ends(fine), flight], ["receive window, smallest", WINDOW, ends(fine), window]),
      panel("Round-trip time", most(rtt), "s", ["RTT, mean", RTT, ends(fine), rtt], ["RTT, least", ACK, ends(fine), smallest]),
    ],
    across: 1,
    group: GROUP,
    height: 170,
  };
}

export function timeSequence(drawn: Drawn, endS: number, highest: number): Figure {
  const [factor, unit] = scale(highest, "B");
  const line = (name: string, colour: string, { x, y }: Points, more: Partial<Series> = {}): Series => ({
    name,
    colour,
    kind: "line",
    width: 1.2,
    x,
    y: y.map((one) => one / factor),
    ...more,
  });
  const known = drawn.kinds.filter(({ kind }) => kind in MARKS);
  const marks = known.map(({ kind, points }) => {
    const [name, colour, symbol] = MARKS[kind]!;
    return line(name, colour, points, { kind: "points", symbol });
  });
  const y: Axis = { label: "sequence number", unit, scale: "linear", low: drawn.low / factor, high: drawn.high / factor };
  const series = [
    ...(drawn.sacks.x.length > 0 ? [line("SACK", SACK, drawn.sacks)] : []),
    line("acknowledged", ACK, drawn.acks, { kind: "steps" }),
    line("receive window ends", WINDOW, drawn.windows, { kind: "steps" }),
    line("data", DATA, drawn.data, { width: 1.6 }),
    ...marks,
  ];
  return {
    name: "capture-time-sequence",
    title: "Time and sequence numbers",
    sentence: "each segment a bar from its first to its last byte, the acknowledgements below, the receiver's window above",
    panels: [{ title: "Time and sequence numbers", x: time(endS), y, series }],
    group: GROUP,
    height: 420,
  };
}

/** What is drawn of how many. */
export function drawnOf({ segments, thinned, kinds, from, to }: Drawn, columns: number, rows: number): string {
  const told = kinds.filter(({ kind }) => kind in MARKS).map(({ kind, count }) => `${MARKS[kind]![0]} ${whole(count)}`);
  const more = told.length > 0 ? ` (${told.join(", ")})` : "";
  const stretch = `${whole(segments)} captured segments with data${more} from ${Number(from.toPrecision(4))} to ${Number(to.toPrecision(4))} s.`;
  if (!thinned) return `${stretch} Each is drawn.`;
  return `${stretch} Thinned to ${columns} × ${rows} places, which looks the same; zoom in and each is drawn.`;
}

/** Stretches of time by what limited most of each. */
function stretches({ t, limit }: Curves, length: number): Span[] {
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
    else if (known !== undefined) found.push({ from, to, name: `limited by: ${known[0]}`, colour: known[1] });
    [latest, from] = [now, to];
  }
  return found;
}

function time(endS: number): Axis {
  return { label: "time since the first segment", unit: "s", scale: "linear", low: 0, high: endS > 0 ? endS : 1e-3 };
}

/** Of so many values in a row one. */
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
