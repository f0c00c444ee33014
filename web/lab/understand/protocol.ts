// Messages between the page and the worker that watches simulations.

import type { Tables } from "../core";

export type Question =
  /** The first message: the compiled core. */
  | { kind: "begin"; module: WebAssembly.Module }
  /** Watches these runs from beginning to end and reports events; discards earlier runs. */
  | { kind: "watch"; number: number; runs: { json: string; durationNs: number }[] }
  /** Prepares these runs for `ways` without watching them. */
  | { kind: "look"; number: number; runs: { json: string; durationNs: number }[] }
  /**
   * Each packet's hops between two times, of all runs. Packets in transit at `fromNs` were sent up to `beforeNs`
   * earlier.
   */
  | { kind: "ways"; number: number; fromNs: number; toNs: number; beforeNs: number }
  | { kind: "stop" }
  /** Frees what memory it can, until the next question. */
  | { kind: "rest" };

/** The hops of a run's packets since the last answer, and the time up to which they are complete. */
export interface Ways {
  tables: Tables;
  reachedNs: number;
}

export type Answer =
  | { kind: "ready"; events: string[] }
  /** The index of the run. */
  | { kind: "watched"; number: number; run: number; tables: Tables }
  /**
   * `sinceNs`: covers packets sent from then on. If it is lower than the question's `fromNs`, this continues the
   * previous answer.
   */
  | { kind: "ways"; number: number; sinceNs: number; anew: boolean; runs: Ways[] }
  | { kind: "failed"; number: number; why: string };
