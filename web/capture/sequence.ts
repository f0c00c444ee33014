// The time-sequence graph, after Ostermann's tcptrace, as a figure. Each segment is a bar from its first to its last
// byte. Below runs the line of acknowledgements, above it the edge of the receiver's window. Colours and words come
// from look.json, which Python writes.

import type { Figure, Panel, Series, Span } from "../draw/form";
import look from "./look.json";

type Numbers = Float64Array;

/** Every segment of one direction; times in s since the connection's first segment, ascending. */
export interface Segments {
  data: { t: Numbers; low: Numbers; high: Numbers; kind: Numbers; frame: Numbers };
  acks: { t: Numbers; ack: Numbers; edge: Numbers };
  sacks: { t: Numbers; low: Numbers; high: Numbers; dsack: Numbers };
}

/** What limits a transfer, by the number in column `limit` of the table `series`. */
export const LIMITS: Record<number, { name: string; colour: string; fact: string }> = look.limits;
const MARKS: Record<number, { name: string; colour: string; symbol: string }> = look.marks;
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]] as const;

/** The divisor that makes `largest` easy to read, and the unit that goes with it. */
export function scale(largest: number, unit: string): [number, string] {
  const [factor, prefix] = PREFIXES.find(([factor]) => largest >= factor && !(unit === "B" && factor < 1)) ?? [1, ""];
  return [factor, prefix + unit];
}

/** A number with its unit, to `digits` digits. */
export function quantity(value: number, unit: string, digits = 3): string {
  const [factor, scaled] = scale(value, unit);
  const number = value / factor;
  return `${number < 1000 - 5 * 10 ** (2 - digits) ? Number(number.toPrecision(digits)) : number.toFixed(0)} ${scaled}`;
}

export function whole(number: number): string {
  return number.toLocaleString("en-US");
}

/** One panel per connection, all on the same axes. */
export function timeSequence(name: string, shown: readonly { name: string; segments: Segments; spans: readonly Span[] }[], endS: number, group: string): Figure {
  return {
    name,
    title: "Time and sequence numbers",
    sentence: "each segment a bar from its first to its last byte, the acknowledgements below, the receiver's window above",
    panels: shown.map(({ name: title, segments, spans }): Panel => ({
      title,
      x: { label: "time since the first segment", unit: "s", scale: "linear", low: 0, high: endS > 0 ? endS : 1e-3 },
      y: { label: "sequence number", unit: "B", scale: "linear" },
      series: series(segments),
      spans,
      explored: true,
    })),
    across: Math.min(2, shown.length),
    alike: shown.length > 1,
    group,
    height: 440,
  };
}

function series({ data, acks, sacks }: Segments): Series[] {
  const bars = (of: { t: Numbers; low: Numbers; high: Numbers; frame?: Numbers }, at: Uint32Array, name: string, colour: string): Series => {
    const [x, low, high] = [taken(of.t, at), taken(of.low, at), taken(of.high, at)];
    const middle = low.map((one, row) => (one + high[row]!) / 2);
    const said = (row: number): string => {
      const packet = of.frame === undefined ? "" : `packet ${whole(of.frame[at[row]!]!)}, `;
      return `${packet}${x[row]!.toFixed(6)} s, bytes ${whole(low[row]!)} to ${whole(high[row]!)}`;
    };
    return { name, colour, kind: "points", symbol: "none", width: 1.4, x, y: middle, low, high, said };
  };
  const line = (name: string, colour: string, y: Numbers): Series => ({ name, colour, kind: "steps", width: 1.2, x: acks.t, y });
  const kinds = rows(data.kind);
  const blocks = rows(sacks.dsack);
  const marks = Object.entries(MARKS).flatMap(([kind, { name, colour, symbol }]) => {
    const at = kinds.get(Number(kind));
    if (at === undefined) return [];
    const { width: _, ...bar } = bars(data, at, name, colour);
    return [{ ...bar, symbol: symbol as NonNullable<Series["symbol"]> }];
  });
  return [
    ...[["SACK", look.sack, 0], ["duplicate SACK", look.dsack, 1]].flatMap(([name, colour, flag]) => {
      const at = blocks.get(flag as number);
      return at === undefined ? [] : [bars(sacks, at, name as string, colour as string)];
    }),
    line("acknowledged", look.ack, acks.ack),
    { ...line("receive window ends", look.window, acks.edge), loose: true },
    bars(data, kinds.get(0) ?? new Uint32Array(0), "data", look.data),
    // Draws retransmissions above segments out of order.
    ...marks.reverse(),
  ];
}

/** Describes the graph between `from` and `to` in words. */
export function rangeSummary({ data, acks }: Segments, from: number, to: number): string {
  const [first, last] = [lowest(data.t, from), lowest(data.t, to, true)];
  const counts = new Map<number, number>();
  for (const kind of data.kind.subarray(first, last)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const others = Object.entries(MARKS).flatMap(([kind, { name }]) => {
    const count = counts.get(Number(kind));
    return count === undefined ? [] : [`${name} ${whole(count)}`];
  });
  const [begin, end] = [lowest(acks.t, from), lowest(acks.t, to, true) - 1];
  const acked = end > begin ? acks.ack[end]! - acks.ack[begin]! : 0;
  const rate = `${quantity(acked, "B", 4)} acknowledged, ${quantity((acked * 8) / (to - from), "bit/s", 4)}`;
  return [`${Number(from.toFixed(6))} to ${Number(to.toFixed(6))} s: ${whole(last - first)} captured segments with data`, rate, ...others].join(", ");
}

/** Acknowledgements only rise, and a window ends above its acknowledgement. */
export function answered(t: Numbers, ack: Numbers, window: Numbers): Segments["acks"] {
  let most = 0;
  const edge = ack.map((one, at) => one + window[at]!);
  return { t, ack: ack.map((one) => (most = Math.max(most, one))), edge };
}

/** The rows that have each value. */
function rows(column: Numbers): Map<number, Uint32Array> {
  const counts = new Map<number, number>();
  for (const value of column) counts.set(value, (counts.get(value) ?? 0) + 1);
  const found = new Map([...counts].map(([value, count]) => [value, new Uint32Array(count)]));
  const next = new Map<number, number>();
  column.forEach((value, row) => {
    const at = next.get(value) ?? 0;
    found.get(value)![at] = row;
    next.set(value, at + 1);
  });
  return found;
}

function taken(column: Numbers, at: Uint32Array): Numbers {
  const found = new Float64Array(at.length);
  for (let row = 0; row < at.length; row += 1) found[row] = column[at[row]!]!;
  return found;
}

/** The first row at or above `value`; with `above`, the first row above it. */
function lowest(t: Numbers, value: number, above = false): number {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle]! < value || (above && t[middle] === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}
