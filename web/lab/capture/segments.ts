// Every segment of a connection, as its time-sequence graph needs it, after Ostermann's tcptrace.

import type { Column, Table, Tables } from "../core";
import type { Drawn } from "./protocol";
import { bars, line, marks, within, type Grid } from "./raster";

const [SYN, RST, ACK] = [0x02, 0x04, 0x10];

/** Of one direction; times in s since the connection's first segment, ascending. */
export class Segments {
  readonly data: { t: Float64Array; low: Float64Array; high: Float64Array; kind: Float64Array };
  readonly acks: { t: Float64Array; ack: Float64Array; window: Float64Array };
  readonly sacks: { t: Float64Array; low: Float64Array; high: Float64Array };
  readonly endS: number;
  readonly highest: number;

  constructor(tables: Tables, direction: 0 | 1, startS: number) {
    const { t_s, seq, length, ack, window, flags, kind, direction: side } = tables["segments"] as Table;
    const [t, size, ways] = [t_s as Float64Array, length as Uint32Array, side as Uint8Array];
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let row = 0; row < t.length; row += 1) {
      if (ways[row] === direction) {
        if (size[row]! > 0) ours.push(row);
        // A SYN's window is not scaled, a reset's means nothing.
      } else if (((flags as Uint8Array)[row]! & (SYN | RST | ACK)) === ACK && Number(ack![row]!) > 0) theirs.push(row);
    }
    // Captures of several devices may step back in time.
    const inTime = (rows: number[]): number[] => rows.sort((one, other) => t[one]! - t[other]!);
    const time = (rows: number[]): Float64Array => Float64Array.from(rows, (row) => t[row]! - startS);
    inTime(ours);
    inTime(theirs);
    this.data = { t: time(ours), low: taken(seq!, ours), high: taken(seq!, ours), kind: taken(kind!, ours) };
    ours.forEach((row, at) => (this.data.high[at]! += size[row]!));
    this.acks = { t: time(theirs), ack: taken(ack!, theirs), window: taken(window!, theirs) };
    let most = 0;
    theirs.forEach((_, at) => {
      this.acks.window[at]! += this.acks.ack[at]!;
      this.acks.ack[at] = most = Math.max(most, this.acks.ack[at]!);
    });
    const { segment, start, end } = tables["sacks"] as Table;
    const of = (at: number): number => Number(segment![at]!);
    const blocks = Array.from({ length: segment!.length }, (_, at) => at).filter((at) => ways[of(at)] !== direction);
    blocks.sort((one, other) => t[of(one)]! - t[of(other)]!);
    this.sacks = { t: time(blocks.map(of)), low: taken(start!, blocks), high: taken(end!, blocks) };
    this.endS = Math.max(this.data.t.at(-1) ?? 0, this.acks.t.at(-1) ?? 0);
    this.highest = this.data.high.reduce((one, other) => Math.max(one, other), 0);
  }

  /** What is seen from … to, in so many places. */
  drawn(from: number, to: number, columns: number, rows: number): Drawn {
    const { data, acks, sacks } = this;
    const [first, last] = within(data.t, from, to);
    let [low, high, segments] = [Infinity, -Infinity, 0];
    const kinds = new Map<number, number[]>();
    for (let at = first; at < last; at += 1) {
      if (data.t[at]! < from || data.t[at]! > to) continue;
      segments += 1;
      low = Math.min(low, data.low[at]!);
      high = Math.max(high, data.high[at]!);
      const kind = data.kind[at]!;
      if (kind === 0) continue;
      if (!kinds.has(kind)) kinds.set(kind, []);
      kinds.get(kind)!.push(at);
    }
    const [begin, stop] = within(acks.t, from, to);
    for (let at = begin; at < stop; at += 1) {
      if (acks.t[at]! < from || acks.t[at]! > to) continue;
      low = Math.min(low, acks.ack[at]!);
      high = Math.max(high, acks.ack[at]!);
    }
    if (low > high) [low, high] = [0, 1];
    const margin = Math.max((high - low) * 0.04, 1);
    const grid: Grid = { from, to, low: Math.max(0, low - margin), high: high + 2 * margin, columns, rows };
    const inView = (t: Float64Array): number[] => {
      const [one, other] = within(t, from, to);
      return Array.from({ length: other - one }, (_, at) => one + at).filter((at) => t[at]! >= from && t[at]! <= to);
    };
    const { every, ...thin } = bars(grid, data.t, data.low, data.high, inView(data.t));
    const { every: _, ...blocks } = bars(grid, sacks.t, sacks.low, sacks.high, inView(sacks.t));
    const middle = data.low.map((one, at) => (one + data.high[at]!) / 2);
    return {
      from,
      to,
      low: grid.low,
      high: grid.high,
      segments,
      thinned: !every,
      data: thin,
      sacks: blocks,
      acks: line(grid, acks.t, acks.ack),
      windows: line(grid, acks.t, acks.window),
      kinds: [...kinds].sort(([one], [other]) => one - other).map(([kind, at]) => ({ kind, count: at.length, points: marks(grid, data.t, middle, at) })),
    };
  }
}

/** Whole numbers of the core are below 2^53. */
function taken(column: Column, rows: readonly number[]): Float64Array {
  return Float64Array.from(rows, (row) => Number(column[row]!));
}
