// Every segment of one direction of a connection, from the core's tables.

import { answered, type Segments } from "../../capture/sequence";
import { numbers, type Table, type Tables } from "../core";

const [SYN, RST, ACK] = [0x02, 0x04, 0x10];

type Rows = Uint32Array<ArrayBuffer>;

export function segmentsOf(tables: Tables, direction: 0 | 1, startS: number): Segments {
  const table = tables["segments"] as Table;
  const column = (name: string): ArrayLike<number> => numbers(table[name]!);
  const [t, size, side, flags, ack] = [column("t_s"), column("length"), column("direction"), column("flags"), column("ack")];
  const time = (rows: Rows): Float64Array => taken(t, rows).map((at) => at - startS);
  const ours = inTime(t, chosen(t.length, (row) => side[row] === direction && size[row]! > 0));
  // A SYN's window is not scaled; a reset's has no meaning.
  const answers = (row: number): boolean => side[row] !== direction && (flags[row]! & (SYN | RST | ACK)) === ACK && ack[row]! > 0;
  const theirs = inTime(t, chosen(t.length, answers));
  const low = taken(column("seq"), ours);
  const high = low.map((from, at) => from + size[ours[at]!]!);
  const { segment, start, end, dsack } = tables["sacks"] as Table;
  const of = numbers(segment!);
  const acked = taken(t, of);
  const blocks = inTime(acked, chosen(of.length, (at) => side[of[at]!] !== direction));
  const block = (name: Table[string] | undefined): Float64Array => taken(numbers(name!), blocks);
  return {
    data: { t: time(ours), low, high, kind: taken(column("kind"), ours), frame: taken(column("frame"), ours) },
    acks: answered(time(theirs), taken(ack, theirs), taken(column("window"), theirs)),
    sacks: { t: taken(acked, blocks).map((at) => at - startS), low: block(start), high: block(end), dsack: block(dsack) },
  };
}

/** The rows below `count` for which the condition holds. */
function chosen(count: number, is: (row: number) => boolean): Rows {
  const found = new Uint32Array(count);
  let length = 0;
  for (let row = 0; row < count; row += 1) if (is(row)) found[length++] = row;
  return found.slice(0, length);
}

/** In captures of several devices, time may step back. */
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
