// Every segment of a connection, as its time-sequence graph needs it, after Ostermann's tcptrace.

import { numbers, type Table, type Tables } from "../core";
import type { Drawn } from "./protocol";
import { bars, line, marks, within, type Grid } from "./raster";

const [SYN, RST, ACK] = [0x02, 0x04, 0x10];

type Rows = Uint32Array<ArrayBuffer>;

/** Of one direction; times in s since the connection's first segment, ascending. */
export class Segments {
  readonly data: { t: Float64Array; low: Float64Array; high: Float64Array; kind: Float64Array };
  readonly acks: { t: Float64Array; ack: Float64Array; window: Float64Array };
  readonly sacks: { t: Float64Array; low: Float64Array; high: Float64Array };
  readonly endS: number;
  readonly highest: number;

  constructor(tables: Tables, direction: 0 | 1, startS: number) {
    const table = tables["segments"] as Table;
    const column = (name: string): ArrayLike<number> => numbers(table[name]!);
    const [t, size, side, flags, ack] = [column("t_s"), column("length"), column("direction"), column("flags"), column("ack")];
    const time = (rows: Rows): Float64Array => taken(t, rows).map((at) => at - startS);
    const ours = inTime(t, chosen(t.length, (row) => side[row] === direction && size[row]! > 0));
    // A SYN's window is not scaled, a reset's means nothing.
    const answers = (row: number): boolean => side[row] !== direction && (flags[row]! & (SYN | RST | ACK)) === ACK && ack[row]! > 0;
    const theirs = inTime(t, chosen(t.length, answers));
    const low = taken(column("seq"), ours);
    this.data = { t: time(ours), low, high: low.map((from, at) => from + size[ours[at]!]!), kind: taken(column("kind"), ours) };
    this.acks = { t: time(theirs), ack: taken(ack, theirs), window: taken(column("window"), theirs) };
    let most = 0;
    for (let at = 0; at < theirs.length; at += 1) {
      this.acks.window[at]! += this.acks.ack[at]!;
      this.acks.ack[at] = most = Math.max(most, this.acks.ack[at]!);
    }
    const { segment, start, end } = tables["sacks"] as Table;
    const of = numbers(segment!);
    const acked = taken(t, of);
    const blocks = inTime(acked, chosen(of.length, (at) => side[of[at]!] !== direction));
    this.sacks = { t: taken(acked, blocks).map((at) => at - startS), low: taken(numbers(start!), blocks), high: taken(numbers(end!), blocks) };
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
    const inView = (t: Float64Array): Rows => {
      const [one, other] = within(t, from, to);
      return chosen(other - one, (at) => t[one + at]! >= from && t[one + at]! <= to).map((at) => one + at);
    };
    const { every, ...thin } = bars(grid, data.t, data.low, data.high, inView(data.t));
    const { every: _, ...blocks } = bars(grid, sacks.t, sacks.low, sacks.high, inView(sacks.t));
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
      kinds: [...kinds].sort(([one], [other]) => one - other).map(([kind, at]) => ({ kind, count: at.length, points: marks(grid, data.t, data.low, data.high, at) })),
    };
  }
}

/** Those rows of so many that are so. */
function chosen(count: number, is: (row: number) => boolean): Rows {
  const found = new Uint32Array(count);
  let length = 0;
  for (let row = 0; row < count; row += 1) if (is(row)) found[length++] = row;
  return found.slice(0, length);
}

/** Captures of several devices may step back in time. */
function inTime(t: ArrayLike<number>, rows: Rows): Rows {
  for (let at = 1; at < rows.length; at += 1) {
    if (t[rows[at]!]! < t[rows[at - 1]!]!) return rows.sort((one, other) => t[one]! - t[other]! || one - other);
  }
  return rows;
}

function taken(column: ArrayLike<number>, rows: ArrayLike<number>): Float64Array {
  const found = new Float64Array(rows.length);
  for (let at = 0; at < found.length; at += 1) found[at] = column[rows[at]!]!;
  return found;
}
