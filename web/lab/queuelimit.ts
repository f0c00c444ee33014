// What bounds the queue of each kind: which field of its table, and the page's words for it. What a field is where it is empty, the
// core says.

export interface Limit {
  /** Of the table: crates/scenario/src/queue.rs. */
  field: string;
  label: string;
  like: string;
  /** What it follows from where it is empty and has no default. */
  empty?: string;
  /** A slider writes bandwidth-delay products. */
  bdp?: true;
}

const inPackets: Limit = { field: "limit", label: "Queue", like: "e.g. 500 packets or 2 bdp; empty: the kind's default", bdp: true };
const inBytes: Limit = { field: "limit", label: "Queue", like: "e.g. 400 kB or 50 ms" };

/** Of a tail drop, whose limit is all that there is to it. */
export const PLAIN: Limit = { field: "", label: "Queue", like: "e.g. 1 bdp, 100 packets, 64 KiB, 20 ms", bdp: true };

export const LIMITS: Readonly<Record<string, Limit>> = {
  pfifo: inPackets,
  bfifo: { ...inBytes, empty: "1000 full frames" },
  codel: inPackets,
  fq_codel: inPackets,
  red: inBytes,
  pie: inPackets,
  fq_pie: inPackets,
  fq: inPackets,
  sfq: inPackets,
  tbf: { field: "latency", label: "Queue, longest wait", like: "for tokens, e.g. 50 ms" },
  cake: { field: "memlimit", label: "Queue, memory", like: "e.g. 8 MiB; empty: as tc reckons it", empty: "by rate and rtt" },
  dualpi2: inPackets,
};

/** Above which delay a kind marks at once: the field that says so. */
export const ABOVE: Readonly<Record<string, string>> = { codel: "ce_threshold", fq_codel: "ce_threshold", dualpi2: "step_thresh" };
