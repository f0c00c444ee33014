// Messages between the page and its worker.

import type { Tables } from "./core";

/** The first message: the compiled core. */
export interface Begin {
  kind: "begin";
  module: WebAssembly.Module;
}

/** Runs these in parallel and discards earlier runs. */
export interface Run {
  kind: "run";
  /** Repeated in every answer, to recognize answers to earlier questions. */
  number: number;
  runs: { json: string; durationNs: number }[];
  /** Reports after this many milliseconds of work. */
  everyMs: number;
  /** Runs on the native core of the machine that serves the page. */
  native?: Native;
}

/** `text`: the link's content. For each `page`, one simulation runs at a time. */
export interface Native {
  key: string;
  page: string;
  text: string;
}

export interface Stop {
  kind: "stop";
}

export type Question = Begin | Run | Stop;

/** Rows of one run, since the last message. */
export interface Rows {
  nowNs: number;
  finished: boolean;
  tables: Tables;
}

export type Answer =
  | { kind: "ready" }
  | { kind: "rows"; number: number; runs: Rows[]; events: number; workedMs: number }
  | { kind: "failed"; number: number; why: string; problem?: Problem };

/** The parts of an InputError, if the input was refused. */
export interface Problem {
  code: string;
  message: string;
  fix: string;
  field: string | undefined;
}
