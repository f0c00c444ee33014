// Messages between the page and the worker that reads captures.

import type { Segments } from "../../capture/sequence";
import type { Shown } from "./estimate";
import type { Connection, Facts } from "./facts";

/**
 * First `open`, with the core; then `choose`, any number of times. `known`: the page has the segments already. The
 * latest message counts.
 */
export type Question =
  | { kind: "open"; file: File; module: WebAssembly.Module }
  | { kind: "choose"; connection: number; known: boolean }
  | { kind: "stop" };

/** The capture without its connections; a page lists the largest of those. */
export interface Listed {
  facts: Omit<Facts, "connections">;
  connections: Connection[];
  /** The number of connections. */
  count: number;
}

/** For the direction with more data; times in s since the connection's first segment. */
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
