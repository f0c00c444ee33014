// What bounds the queue of each kind: which field of its table, in which unit, and what it is where the field is empty.

export interface Limit {
  /** Of the table: src/sawtooth/scenario/queue.py. */
  field: string;
  label: string;
  like: string;
  /** As a scenario file would have it; none: it follows from something else, which `empty` says, or must be given. */
  otherwise?: string;
  empty?: string;
  /** A slider writes bandwidth-delay products. */
  bdp?: true;
}

const inPackets = (otherwise: string): Limit =>
  ({ field: "limit", label: "Queue", like: "e.g. 500 packets or 2 bdp; empty: the kind's default", otherwise, bdp: true });
const inBytes: Limit = { field: "limit", label: "Queue", like: "e.g. 400 kB or 50 ms" };

/** Of a tail drop, whose limit is all that there is to it. */
export const PLAIN: Limit = { field: "", label: "Queue", like: "e.g. 1 bdp, 100 packets, 64 KiB, 20 ms", bdp: true };

export const LIMITS: Readonly<Record<string, Limit>> = {
  pfifo: inPackets("1000 packets"),
  bfifo: { ...inBytes, empty: "1000 full frames" },
  codel: inPackets("1000 packets"),
  fq_codel: inPackets("10240 packets"),
  red: inBytes,
  pie: inPackets("1000 packets"),
  fq_pie: inPackets("10240 packets"),
  fq: inPackets("10000 packets"),
  sfq: inPackets("127 packets"),
  tbf: { field: "latency", label: "Queue, longest wait", like: "for tokens, e.g. 50 ms" },
  cake: { field: "memlimit", label: "Queue, memory", like: "e.g. 8 MiB; empty: as tc reckons it", empty: "by rate and rtt" },
  dualpi2: inPackets("10000 packets"),
};

/** Whether the kind marks where it has no say in it, and above which delay it marks at once. */
export interface Marking {
  /** Its field `ecn`, where that can be chosen, and what it is by default. */
  ecn?: boolean;
  above?: { field: string; otherwise?: string };
}

export const MARKING: Readonly<Record<string, Marking>> = {
  codel: { ecn: false, above: { field: "ce_threshold" } },
  fq_codel: { ecn: true, above: { field: "ce_threshold" } },
  red: { ecn: false },
  pie: { ecn: false },
  fq_pie: { ecn: false },
  dualpi2: { above: { field: "step_thresh", otherwise: "1 ms" } },
};
