// Runs simulations beside the page. Checks for messages between two slices: a new question ends the current runs
// without restarting the worker.

import { Core, CoreError, type Simulation, type Tables } from "./core";
import * as native from "./native";
import { InputError } from "./problem";
import type { Answer, Question, Run } from "./protocol";
import { turn } from "./turn";

/** Works for this long before it checks for messages. */
const SLICE_MS = 12;
const [LEAST_EVENTS, FIRST_EVENTS, MOST_EVENTS] = [1_000, 20_000, 2_000_000];

const answer = (message: Answer, tables: readonly Tables[] = []): void => {
  const all = tables.flatMap((one) => Object.values(one));
  postMessage(message, { transfer: all.flatMap((table) => Object.values(table).map((column) => column.buffer)) });
};

let latest = 0;
let elsewhere = new AbortController();

let module: WebAssembly.Module;
let core: Core;

function begin(given: WebAssembly.Module): void {
  module = given;
  core = new Core(module);
  answer({ kind: "ready" });
}

self.onmessage = ({ data }: MessageEvent<Question>) => {
  if (data.kind === "begin") return begin(data.module);
  latest += 1;
  elsewhere.abort();
  if (data.kind === "stop") return;
  const turn = latest;
  const isLatest = (): boolean => latest === turn;
  const running = data.native === undefined ? run(core, data, isLatest) : natively(data, isLatest);
  running.catch((error: unknown) => {
    // After a trap, the core's memory cannot be trusted.
    if (error instanceof CoreError) core = new Core(module);
    if (!isLatest()) return;
    const why = error instanceof Error ? error.message : String(error);
    const { code, message, fix, field } = error as InputError;
    answer({ kind: "failed", number: data.number, why, ...(error instanceof InputError ? { problem: { code, message, fix, field } } : {}) });
  });
};

async function run(core: Core, { number, runs, everyMs }: Run, isLatest: () => boolean): Promise<void> {
  const open: Simulation[] = [];
  const finished = runs.map(() => false);
  const reached = runs.map(() => 0);
  let workedMs = 0;
  const report = (): void => {
    // Reports all runs together: figures never show one without the others.
    const rows = open.map((one, which) => ({ nowNs: one.now_ns, finished: finished[which]!, tables: one.take() }));
    const events = open.reduce((sum, one) => sum + one.events, 0);
    answer({ kind: "rows", number, runs: rows, events, workedMs }, rows.map(({ tables }) => tables));
  };
  try {
    for (const { json } of runs) open.push(core.simulation(json));
    let events = FIRST_EVENTS;
    let reportedMs = performance.now();
    while (finished.includes(false)) {
      // The run furthest behind, so that all progress together.
      const behind = runs.map((_, which) => which).filter((which) => !finished[which]);
      const which = behind.reduce((one, other) => (reached[other]! < reached[one]! ? other : one));
      const { durationNs } = runs[which]!;
      const before = performance.now();
      finished[which] = open[which]!.advance(durationNs, events);
      reached[which] = open[which]!.now_ns / durationNs;
      const took = Math.max(0.5, performance.now() - before);
      workedMs += took;
      events = Math.min(MOST_EVENTS, Math.max(LEAST_EVENTS, Math.round((events * SLICE_MS) / took)));
      await turn();
      if (!isLatest()) return;
      if (performance.now() - reportedMs > everyMs && finished.includes(false)) {
        report();
        reportedMs = performance.now();
      }
    }
    report();
  } finally {
    for (const one of open) one.close();
  }
}

async function natively({ number, everyMs, native: target }: Run, isLatest: () => boolean): Promise<void> {
  elsewhere = new AbortController();
  await native.run(target!, everyMs, elsewhere.signal, (runs, events, workedMs) => {
    if (isLatest()) answer({ kind: "rows", number, runs, events, workedMs }, runs.map(({ tables }) => tables));
  });
}
