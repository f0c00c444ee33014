// What the page and the worker that reads captures say to each other.

import type { Shown } from "./estimate";
import type { Connection, Facts } from "./facts";

/** First `open`, with the core; then `choose`, as often as wanted; `show` a stretch of the one that is chosen. The latest one counts. */
export type Question =
  | { kind: "open"; file: File; module: WebAssembly.Module }
  | { kind: "choose"; connection: number }
  | { kind: "stop" }
  | { kind: "show"; from: number; to: number; columns: number; rows: number };

/** The capture without its connections, of which a page lists the largest. */
export interface Listed {
  facts: Omit<Facts, "connections">;
  connections: Connection[];
  /** All that are there. */
  count: number;
}

/** Of the direction with more data; times in s since the connection's first segment. */
export interface Curves {
  t: Float64Array;
  goodputBps: Float64Array;
  retransmits: Float64Array;
  flightBytes: Float64Array;
  windowBytes: Float64Array;
  rttS: Float64Array;
  rttMinS: Float64Array;
  limit: Uint8Array;
}

export interface Points {
  x: Float64Array;
  y: Float64Array;
}

/** A stretch of the time-sequence graph, thinned to so many places. */
export interface Drawn {
  from: number;
  to: number;
  /** Sequence numbers that are worth the height. */
  low: number;
  high: number;
  /** Segments with data in it, and whether places were too few for them. */
  segments: number;
  thinned: boolean;
  /** Bars: from, to, nothing. */
  data: Points;
  sacks: Points;
  acks: Points;
  windows: Points;
  kinds: { kind: number; count: number; points: Points }[];
}

export type Answer =
  | { kind: "progress"; bytes: number; of: number }
  | { kind: "listed"; listed: Listed; tookMs: number }
  | { kind: "curves"; connection: Connection; curves: Curves }
  | { kind: "path"; shown: Shown }
  | { kind: "segments"; connection: number; endS: number; highest: number }
  | { kind: "many"; connection: number; packets: number; most: number }
  | { kind: "drawn"; drawn: Drawn }
  | { kind: "failed"; why: string };
