// What the page and the worker that reads captures say to each other.

import type { Segments } from "../../capture/sequence";
import type { Shown } from "./estimate";
import type { Connection, Facts } from "./facts";

/** First `open`, with the core; then `choose`, as often as wanted. `known`: the page has its segments. The latest one counts. */
export type Question =
  | { kind: "open"; file: File; module: WebAssembly.Module }
  | { kind: "choose"; connection: number; known: boolean }
  | { kind: "stop" };

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

export type Answer =
  | { kind: "progress"; bytes: number; of: number }
  | { kind: "listed"; listed: Listed; tookMs: number }
  | { kind: "curves"; connection: Connection; curves: Curves }
  | { kind: "segments"; connection: number; segments: Segments; shown: Shown }
  | { kind: "many"; connection: number; packets: number; most: number }
  | { kind: "failed"; why: string };
