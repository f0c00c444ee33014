// What the page and its worker say to each other.

import type { Tables } from "./core";

/** First: the core, compiled. */
export interface Begin {
  kind: "begin";
  module: WebAssembly.Module;
}

/** Runs these at once, side by side, and forgets what ran before. */
export interface Run {
  kind: "run";
  /** Told with every answer, so that those to an earlier question are known as such. */
  number: number;
  runs: { json: string; durationNs: number }[];
  /** Answers come after so many milliseconds of work. */
  everyMs: number;
  /** Held, once its beginning shows that it takes longer than so many ms in the page. */
  mostMs?: number;
  /** Runs them elsewhere, on the native core of the machine that serves the page. */
  native?: Native;
}

/** `text`: what a link holds; of a `page` one simulation runs at a time. */
export interface Native {
  key: string;
  page: string;
  text: string;
}

export interface Stop {
  kind: "stop";
}

/** What is held goes on to its end. */
export interface GoOn {
  kind: "go on";
}

export type Question = Begin | Run | Stop | GoOn;

/** Of one run, since the last time. */
export interface Rows {
  nowNs: number;
  finished: boolean;
  tables: Tables;
}

export type Answer =
  | { kind: "ready" }
  | { kind: "rows"; number: number; runs: Rows[]; events: number; workedMs: number }
  /** It waits; all of it takes so many ms, about. */
  | { kind: "held"; number: number; wholeMs: number }
  | { kind: "failed"; number: number; why: string; problem?: Problem };

/** Of an input that was refused, as an InputError has them. */
export interface Problem {
  code: string;
  message: string;
  fix: string;
  field: string | undefined;
}
