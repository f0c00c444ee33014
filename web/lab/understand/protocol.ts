// What the page and the worker that watches say to each other.

import type { Tables } from "../core";

export type Question =
  /** First: the core, compiled. */
  | { kind: "begin"; module: WebAssembly.Module }
  /** Watches these from begin to end, and tells what happened; forgets what it watched before. */
  | { kind: "watch"; number: number; runs: { json: string; durationNs: number }[] }
  /** Has these to look at, and does not watch them. */
  | { kind: "look"; number: number; runs: { json: string; durationNs: number }[] }
  /** Each packet's way between two times, of all runs; what is on its way at `fromNs` was sent up to `beforeNs` earlier. */
  | { kind: "ways"; number: number; fromNs: number; toNs: number; beforeNs: number }
  | { kind: "stop" }
  /** Gives back what memory it can, until it is asked again. */
  | { kind: "rest" };

/** The ways of a run's packets since the last answer, and up to when they are whole. */
export interface Ways {
  tables: Tables;
  reachedNs: number;
}

export type Answer =
  | { kind: "ready"; events: string[] }
  /** One of the runs, in their order. */
  | { kind: "watched"; number: number; run: number; tables: Tables }
  /** `sinceNs`: of what was sent from then on; the answer before is continued where that is lower than the question's `fromNs`. */
  | { kind: "ways"; number: number; sinceNs: number; anew: boolean; runs: Ways[] }
  | { kind: "failed"; number: number; why: string };
