// The story's first answers: the build simulates them, and the page shows them while the core loads.

import { read, type Experiment } from "../experiment";
import { Core } from "../core";
import { Language } from "../language";
import * as permalink from "../permalink";
import { PRESETS } from "../presets";
import { RunLines } from "../series";
import { sliders } from "../sliders";
import { summary, type Row } from "../summary";
import { STEPS } from "./steps";

/** What the story needs of a run. `lost`: [row, packets] for the rows in which packets were lost. */
interface Run {
  t: number[];
  window: number[];
  lost: [number, number][];
  drops: number;
  longestRttMs: number;
}

/** `place`: of the loss on the slider, whose last position is `last`. */
export interface First {
  experiment: Experiment;
  rows: Row[];
  runs: Run[];
  place: number;
  last: number;
}

/** Simulates the story's first question at the loss of each step. */
export async function first(wasm: Uint8Array<ArrayBuffer>): Promise<First[]> {
  const core = await Core.of(await WebAssembly.compile(wasm));
  const language = new Language(core);
  const { loss: slider } = sliders(language);
  const { scenario, alone } = PRESETS[0]!.question;
  return [...new Set(STEPS.map(({ loss }) => loss))].map((loss) => {
    const linked = permalink.short({ scenario: { ...scenario, path: { ...scenario.path, loss } }, alone });
    const experiment = read(permalink.question(linked)!, language);
    const runs = experiment.compiled.map(({ json, durationNs, flows }) => {
      const run = new RunLines(flows.length, experiment.intervalS, core.limits(json));
      const simulation = core.simulation(json);
      while (!simulation.advance(durationNs, 1_000_000));
      run.add(simulation.take(), durationNs / 1e9, true);
      return run;
    });
    return { experiment, rows: summary(experiment, runs), runs: runs.map(kept), place: slider!.place(loss)!, last: slider!.last };
  });
}

function kept({ flows, lost, drops }: RunLines): Run {
  const { window, rtt } = flows[0]!;
  return {
    t: [...window.t.values],
    window: [...window.y.values],
    lost: [...lost.y.values].flatMap((packets, row) => (packets > 0 ? [[row, packets] as [number, number]] : [])),
    drops: drops.y.values.reduce((sum, one) => sum + one, 0),
    longestRttMs: Math.max(...rtt.y.values),
  };
}

/** The runs of an answer. Drops and round trips have one row each: only their sum and maximum are kept. */
export function restored({ experiment, runs }: First): RunLines[] {
  return runs.map(({ t, window, lost, drops, longestRttMs }) => {
    const run = new RunLines(1, experiment.intervalS);
    t.forEach((at, row) => run.flows[0]!.window.push(at, window[row]!));
    for (const [row, packets] of lost) run.lost.push(t[row]!, packets);
    run.drops.push(experiment.durationS, drops);
    run.flows[0]!.rtt.push(experiment.durationS, longestRttMs);
    return run;
  });
}
