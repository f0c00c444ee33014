// Packets and their hops in the simulation: where each one was at a given time, and which were lost.

import { numbers, type Table, type Tables } from "../core";

/** Hosts of the page's path: the queue is before the second link, the loss before the third. */
export const [SENDER, ROUTER, AFTER_QUEUE, AFTER_LOSS, RECEIVER] = [0, 1, 2, 3, 4] as const;

export interface Packet {
  sentS: number;
  connection: number;
  kind: "data" | "ack" | "other";
  again: boolean;
  /** Whether it travels from the sending host or back to it. */
  forward: boolean;
  bytes: number;
  /** Time of arrival at each host, by number; undefined: not yet, or never. */
  at: (number | undefined)[];
  marked: boolean;
  /** Where it was lost or dropped. */
  loss?: { s: number; host: number; fate: "dropped" | "lost" | "refused" };
}

const FATES = ["arrived", "dropped", "lost", "refused"] as const;
const WHATS = ["data", "ack", "other"] as const;
/** The most packets that are kept. */
const MOST = 150_000;

export class Ways {
  private byNumber = new Map<number, Packet>();
  packets: Packet[] = [];
  reachedS = 0;
  sinceS = 0;

  clear(sinceS: number): void {
    this.byNumber.clear();
    this.packets = [];
    this.sinceS = this.reachedS = sinceS;
  }

  add(tables: Tables, reachedS: number): void {
    const [t, packet, connection, kind, again, host, bytes] = columns(tables["packets"], ["t_s", "packet", "connection", "kind", "again", "host", "bytes"]);
    for (let row = 0; row < (t?.length ?? 0); row += 1) {
      const one: Packet = {
        sentS: t![row]!,
        connection: connection![row]!,
        kind: WHATS[kind![row]!]!,
        again: again![row] === 1,
        forward: host![row] === SENDER,
        bytes: bytes![row]!,
        at: [],
        marked: false,
      };
      one.at[host![row]!] = one.sentS;
      this.byNumber.set(packet![row]!, one);
      this.packets.push(one);
    }
    const [when, which, where, fate, marked] = columns(tables["hops"], ["t_s", "packet", "host", "fate", "marked"]);
    for (let row = 0; row < (when?.length ?? 0); row += 1) {
      const one = this.byNumber.get(which![row]!);
      if (one === undefined) continue;
      const what = FATES[fate![row]!]!;
      if (what === "arrived") one.at[where![row]!] = when![row]!;
      else one.loss = { s: when![row]!, host: where![row]!, fate: what };
      one.marked ||= marked![row] === 1;
    }
    this.reachedS = reachedS;
  }

  /** Discards packets that had arrived or were lost before a time. */
  prune(beforeS: number): void {
    if (this.packets.length < MOST / 4) return;
    const ends = ({ loss, forward, at }: Packet): number => loss?.s ?? at[forward ? RECEIVER : SENDER] ?? Infinity;
    this.sinceS = Math.max(this.sinceS, beforeS);
    this.packets = this.packets.filter((one) => ends(one) >= beforeS);
    for (const [number, one] of this.byNumber) if (ends(one) < beforeS) this.byNumber.delete(number);
    if (this.packets.length > MOST) this.clear(this.reachedS);
  }
}

function columns(table: Table | undefined, names: string[]): (ArrayLike<number> | undefined)[] {
  return names.map((name) => (table?.[name] === undefined ? undefined : numbers(table[name]!)));
}
