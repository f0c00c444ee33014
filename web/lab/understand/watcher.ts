// Watches simulations beside the page: the events of each, and the hops of packets in the stretch on display.

import { Core, CoreError, type Simulation, type Table, type Tables } from "../core";
import { turn } from "../turn";
import type { Answer, Question } from "./protocol";

const SLICE_EVENTS = 40_000;
/** A stretch ends early once this many hops are recorded. */
const MOST_HOPS = 60_000;

const answer = (message: Answer, tables: readonly Tables[] = []): void => {
  const all = tables.flatMap((one) => Object.values(one));
  postMessage(message, { transfer: all.flatMap((table) => Object.values(table).map((column) => column.buffer)) });
};

interface RecordedRun {
  simulation: Simulation;
  reachedNs: number;
}

let latest = 0;
let watched: { json: string; durationNs: number }[] = [];
let recorded: { sinceNs: number; runs: RecordedRun[] } | undefined;

let module: WebAssembly.Module;
/** Undefined while it is idle. */
let core: Core | undefined;

function begin(given: WebAssembly.Module): void {
  module = given;
  core = new Core(module);
  answer({ kind: "ready", events: core.events() });
}

self.onmessage = ({ data }: MessageEvent<Question>) => {
  if (data.kind === "begin") return begin(data.module);
  latest += 1;
  const mine = latest;
  if (data.kind !== "ways") forget();
  if (data.kind === "rest") core = undefined;
  if (data.kind === "stop" || data.kind === "rest") return;
  core ??= new Core(module);
  if (data.kind === "look") {
    watched = data.runs;
    return;
  }
  const act = data.kind === "watch" ? watch(core, data, () => latest === mine) : ways(core, data, () => latest === mine);
  act.catch((error: unknown) => {
    // After a trap, the core's memory cannot be trusted.
    if (error instanceof CoreError) {
      core = new Core(module);
      recorded = undefined;
    }
    answer({ kind: "failed", number: data.number, why: error instanceof Error ? error.message : String(error) });
  });
};

function forget(): void {
  for (const { simulation } of recorded?.runs ?? []) simulation.close();
  recorded = undefined;
}

/**
 * The events of each run, from beginning to end. Reports runs one by one, so that the page can show the first while the
 * next is watched.
 */
async function watch(core: Core, { number, runs }: Extract<Question, { kind: "watch" }>, isLatest: () => boolean): Promise<void> {
  watched = runs;
  for (const [run, { json, durationNs }] of runs.entries()) {
    const simulation = core.simulation(json, true);
    try {
      const parts: Table[] = [];
      let finished = false;
      while (!finished) {
        finished = simulation.advance(durationNs, SLICE_EVENTS);
        parts.push(simulation.take()["events"]!);
        await turn();
        if (!isLatest()) return;
      }
      const tables = { events: joined(parts) };
      answer({ kind: "watched", number, run, tables }, [tables]);
    } finally {
      simulation.close();
    }
  }
}

/** The hops of packets. If this continues the previous answer, nothing is simulated again. */
async function ways(core: Core, { number, fromNs, toNs, beforeNs }: Extract<Question, { kind: "ways" }>, isLatest: () => boolean): Promise<void> {
  const goesOn = recorded !== undefined && recorded.sinceNs <= Math.max(0, fromNs - beforeNs) && recorded.runs.every((run) => run.reachedNs >= fromNs && run.reachedNs <= toNs);
  if (!goesOn) {
    forget();
    const sinceNs = Math.max(0, fromNs - beforeNs);
    recorded = { sinceNs, runs: watched.map(({ json }) => ({ simulation: core.simulation(json, true), reachedNs: 0 })) };
    for (const { simulation } of recorded.runs) {
      while (simulation.now_ns < sinceNs && !simulation.advance(sinceNs, SLICE_EVENTS)) {
        simulation.take();
        await turn();
        // The newer question has closed these simulations; what is open now is its own.
        if (!isLatest()) return;
      }
      simulation.take();
      simulation.record(true);
    }
  }
  const { sinceNs, runs } = recorded!;
  const results = runs.map((run, which) => {
    const { simulation } = run;
    const until = Math.min(toNs, watched[which]!.durationNs);
    const parts: { packets: Table[]; hops: Table[] } = { packets: [], hops: [] };
    let hops = 0;
    for (let finished = false; !finished && simulation.now_ns < until && hops < MOST_HOPS; ) {
      finished = simulation.advance(until, 4_000);
      const taken = simulation.take();
      parts.packets.push(taken["packets"]!);
      parts.hops.push(taken["hops"]!);
      hops += taken["hops"]!["t_s"]!.length;
    }
    // When the simulation pauses, another host may be behind in time; at the end of an answer, all have reached it.
    run.reachedNs = simulation.now_ns;
    return { tables: { packets: joined(parts.packets), hops: joined(parts.hops) } as Tables, reachedNs: run.reachedNs };
  });
  answer({ kind: "ways", number, sinceNs, anew: !goesOn, runs: results }, results.map(({ tables }) => tables));
}

function joined(parts: readonly Table[]): Table {
  const names = Object.keys(parts[0] ?? {});
  return Object.fromEntries(
    names.map((name) => {
      const length = parts.reduce((sum, part) => sum + part[name]!.length, 0);
      const Kind = parts[0]![name]!.constructor as new (length: number) => Float64Array;
      const whole = new Kind(length);
      let at = 0;
      for (const part of parts) {
        whole.set(part[name] as Float64Array, at);
        at += part[name]!.length;
      }
      return [name, whole];
    }),
  );
}
