// The response to loss, computed point by point in separate workers: each flow's control alone on this path, over
// losses.

import type { Figure, Series } from "../draw/form";
import { milliseconds } from "./amount";
import { read, type Experiment } from "./experiment";
import { colours, roles } from "./figures";
import type { Compiled, Language } from "./language";
import { Runner, WORKERS } from "./runner";
import type { Published } from "./published";
import type { RunLines } from "./series";

/** Loss rates in percent, middle ones first, so that the curve has its shape early. */
const LOSSES = [1, 0.1, 10, 0.01, 0.3, 3, 0.03, 0.001, 2, 5, 0.5, 20];
/** The most of the path's capacity that is simulated for a point, in bits. */
const MOST_BITS = 3e9;
const [LEAST_S, MOST_S] = [2, 30];
/** Mathis, Semke, Mahdavi, Ott 1997, equation 3: Reno's mean window is C / √p segments. Every segment counts when it is acknowledged, as in Linux. */
const MATHIS_C = Math.sqrt(3 / 2);
const PAYLOAD_BITS = 1448 * 8;

interface Point {
  loss: number;
  mbps: number;
}

export class Sweep {
  /** Each computes a point at a time. Started with the first question, so that they do not slow the page's start. */
  private runners: Runner[] | undefined;
  private experiment: Experiment | undefined;
  private language: Language | undefined;
  private waiting: number[] = [];
  private done: number[] = [];
  private points: Point[][] = [];

  /** `moved`: "now" is dragged to a loss in percent. */
  constructor(
    private readonly drawn: (figure: Figure, done: number, of: number) => void,
    private readonly moved: (percent: number) => void,
  ) {}

  /** Computes the points that are missing for this path and these controls. */
  ask(experiment: Experiment, language: Language): void {
    if (!this.isOf(experiment)) {
      this.done = [];
      this.points = experiment.flows.map(() => []);
    }
    this.experiment = experiment;
    this.language = language;
    this.waiting = LOSSES.filter((percent) => !this.done.includes(percent));
    this.tell();
    if (this.runners !== undefined) return this.runners.forEach((runner) => this.next(runner));
    this.runners = [];
    for (let worker = 0; worker < WORKERS; worker += 1) this.start(this.runners);
  }

  /** Stops computing. If the new question differs only in its loss, the mark "now" moves there. */
  stop(experiment?: Experiment): void {
    this.waiting = [];
    this.runners?.forEach((runner) => runner.stop());
    if (experiment === undefined || !this.isOf(experiment)) return;
    this.experiment = experiment;
    this.tell();
  }

  /** Whether the points belong to this question. They do not depend on its loss or on its flows' times. */
  private isOf(experiment: Experiment): boolean {
    return this.experiment !== undefined && of(this.experiment) === of(experiment);
  }

  private tell(): void {
    const figure = this.figure();
    if (figure !== undefined && this.done.length > 0) this.drawn(figure, this.done.length, LOSSES.length);
  }

  /** Says how long each point runs, which is not the question's duration. */
  get words(): string {
    if (this.experiment === undefined) return "";
    return `Each point is one run, of one seed, of ${durationOf(this.experiment)}, whatever the duration above.`;
  }

  /** Draws the curve so far. */
  figure(published?: Published): Figure | undefined {
    const { experiment, points } = this;
    if (experiment === undefined) return undefined;
    const colour = colours(experiment.flows);
    const series: Series[] = experiment.names.map((name, flow) => {
      const sorted = [...points[flow]!].sort((one, other) => one.loss - other.loss);
      return {
        name,
        colour: colour[flow]!,
        kind: "line",
        symbol: "circle",
        x: Float64Array.from(sorted, (point) => point.loss),
        y: Float64Array.from(sorted, (point) => point.mbps),
      };
    });
    for (const { cc, points: known } of published?.curves ?? []) {
      const flow = experiment.flows.findIndex((one) => one.control === cc);
      if (flow < 0) continue;
      series.push({
        name: `${experiment.names[flow]}, published`,
        colour: colour[flow]!,
        kind: "points",
        symbol: "diamond",
        open: true,
        x: known.map((point) => point.loss),
        y: known.map((point) => point.mbps),
      });
    }
    const now = percentOf(experiment.compiled[0]!);
    const low = LOSSES.reduce((one, other) => Math.min(one, other));
    const losses = [...LOSSES].sort((one, other) => one - other);
    series.push({
      name: "1/√p, Reno by formula",
      colour: roles["muted"]!,
      kind: "line",
      dash: "dashed",
      loose: true,
      x: losses,
      y: losses.map((percent) => Math.min(experiment.mostMbps, (MATHIS_C / Math.sqrt(percent / 100)) * (PAYLOAD_BITS / (experiment.compiled[0]!.rttNs / 1e3)))),
    });
    return {
      name: "response",
      title: "Response to loss",
      sentence: "mean goodput of each control by itself on this path, against the share of packets that the path loses",
      panels: [
        {
          title: "Each control by itself on this path, against loss",
          x: { label: "loss", unit: "%", scale: "log", low, high: 20 },
          y: { label: "mean goodput", unit: "Mbit/s", scale: "log" },
          series,
          marks: [{ along: "x", at: Math.max(now, low), words: "now", low: true, moved: (percent) => this.moved(percent > low ? percent : 0) }],
        },
      ],
      height: 260,
    };
  }

  /** Adds a runner to `runners` once it is loaded. */
  private start(runners: Runner[]): void {
    const grown = (of: Experiment, runs: readonly RunLines[], finished: boolean): void => {
      if (!finished) return;
      this.taken(of, runs.map((run) => (run.flows[0]!.bytes * 8) / run.nowS / 1e6));
      this.next(runner);
    };
    const runner = new Runner({ grown, failed: () => this.next(runner) }, 60_000, 1);
    const ready = (): void => {
      runners.push(runner);
      this.next(runner);
    };
    runner.ready.then(ready, () => {});
  }

  private next(runner: Runner): void {
    const percent = this.waiting.shift();
    const { experiment } = this;
    if (percent === undefined || experiment === undefined || this.language === undefined) return runner.stop();
    const { scenario } = experiment.question;
    const path = { ...scenario.path, loss: `${percent}%` };
    const flows = experiment.flows.map(({ control: cc }, at) => ({ cc, name: `f${at}` }));
    runner.ask(read({ scenario: { ...scenario, path, flows, duration: durationOf(experiment) }, alone: true }, this.language));
  }

  private taken({ compiled }: Experiment, means: number[]): void {
    const loss = percentOf(compiled[0]!);
    means.forEach((mbps, flow) => {
      if (mbps > 0) this.points[flow]!.push({ loss, mbps });
    });
    this.done.push(loss);
    this.tell();
  }
}

/** A key for everything that the points depend on. */
function of({ question: { scenario }, flows }: Experiment): string {
  const { loss: _, ...path } = scenario.path ?? {};
  return JSON.stringify([path, scenario.host, scenario.seed, flows.map(({ control }) => control)]);
}

/** The duration for which a point is simulated. */
function durationOf({ compiled }: Experiment): string {
  const seconds = Math.min(MOST_S, Math.max(LEAST_S, MOST_BITS / compiled[0]!.rateBps));
  return milliseconds(Math.round(seconds * 10) * 100);
}

function percentOf({ lossPpb }: Compiled): number {
  return lossPpb / 1e7;
}
