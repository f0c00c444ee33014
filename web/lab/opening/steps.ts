// The texts of the first screen: its headline and three steps, with numbers from the displayed simulation.

import type { Figure, Series } from "../../draw/form";
import type { Experiment } from "../experiment";
import { colours, losses } from "../figures";
import type { RunLines } from "../series";
import { digits, percent, type Row } from "../summary";

export const GROUP = "story";

/** What a sentence refers to: a part of the paths, of one run or of all, or the window's figure. */
export interface StoryLine {
  words: string;
  part: "queue" | "loss" | "link" | "window";
  run?: number;
}

export const STEPS = [
  { title: "No loss: the sawtooth", loss: "0%" },
  { title: "1% loss: the collapse", loss: "1%" },
  { title: "BBR: full, and the price", loss: "1%" },
] as const;

/** Questions that follow the story, by the names of their presets. */
export const QUESTIONS = ["what-helps", "cost-to-others"] as const;

/** A control's name as people write it; a name that the user gave stays as it is. */
export function called({ question }: Experiment, rows: readonly Row[], flow: number): string {
  const { name } = rows[flow]!;
  return question.scenario.flows?.[flow]?.name === undefined ? name.replace(/^[a-z]+/, (word) => word.toUpperCase()) : name;
}

/** Loss as a share in percent with at most three digits; loss patterns have no share. */
export function short(loss: unknown): string {
  const share = typeof loss === "string" ? Number.parseFloat(loss) : NaN;
  return Number.isNaN(share) ? "pattern of" : `${Number(share.toPrecision(3))}%`;
}

export function headline(experiment: Experiment, rows: readonly Row[], hidden: boolean): string {
  const { loss = "0%" } = experiment.question.scenario.path ?? {};
  const goodputs = rows.map((row, flow) => `${called(experiment, rows, flow)} ${hidden || Number.isNaN(row.meanMbps) ? "?" : digits(row.meanMbps)}`);
  return `Same line, same ${short(loss)} loss: ${goodputs.join(", ")} Mbit/s`;
}

/** `fills`: the number of segments that fill the path without a queue. */
export function sentences(step: number, experiment: Experiment, runs: readonly RunLines[], rows: readonly Row[], fills: number): StoryLine[] {
  const { loss = "0%" } = experiment.question.scenario.path ?? {};
  const run = step === 3 ? 1 : 0;
  const row = rows[run]!;
  const name = called(experiment, rows, run);
  const { drops, lost, flows } = runs[run]!;
  const gets = `${percent(row.share)} of what the line can carry`;
  const dropped = `the full queue dropped ${count(sum(drops.y.values), "packet")}`;
  if (step === 1) {
    return [
      { words: "With no loss on the line, a window grows until the queue is full.", part: "queue", run },
      { words: `In ${Number(digits(experiment.durationS))} s ${dropped} of ${name}'s.`, part: "queue", run },
      { words: `After a drop ${name} cuts its window and grows again: the sawtooth.`, part: "window" },
      { words: `It gets ${gets}.`, part: "link", run },
    ];
  }
  const random: StoryLine = { words: `The line loses ${short(loss)} of the packets at random: ${whole(sum(lost.y.values))} of ${name}'s in ${Number(digits(experiment.durationS))} s.`, part: "loss", run };
  if (experiment.flows[run]!.cc.startsWith("bbr")) {
    return [
      random,
      { words: `${name} measures how fast the line is and sends at that rate.`, part: "link", run },
      { words: `${row.share > 0.8 ? "Its link stays full: it" : "It"} gets ${gets}.`, part: "link", run },
      { words: `The price: ${dropped}, and ${name} sent ${percent(row.retransmitted)} of its segments again.`, part: "queue", run },
    ];
  }
  const window = mean(flows[0]!.window.y.values);
  return [
    random,
    { words: `${name} treats a loss as congestion and cuts its window: ${digits(window)} segments on average, where ${whole(fills)} fit.`, part: "window" },
    { words: `${row.share < 0.3 ? "Its link is nearly empty: it" : "It"} gets ${gets}.`, part: "link", run },
  ];
}

/** A panel for each flow: its window, and a tick for each interval in which packets were lost. */
export function windows(experiment: Experiment, runs: readonly RunLines[], height: number): Figure {
  const colour = colours(experiment.flows);
  return {
    name: "story-window",
    title: "Windows",
    sentence: "how many segments each flow has in flight at most, against time; a tick where the line lost packets",
    panels: runs.map((one, run) => {
      const { t, y } = one.flows[0]!.window;
      const line: Series = { name: experiment.names[run]!, colour: colour[run]!, kind: "line", x: t.values, y: y.values };
      return {
        title: "",
        x: { label: run === runs.length - 1 ? "time" : "", unit: "s", scale: "linear", low: 0, high: experiment.durationS },
        y: { label: `${experiment.names[run]!}: window`, unit: "segments", scale: "linear", zero: true },
        series: [line, losses(one, "lost on the line")],
      };
    }),
    across: 1,
    group: GROUP,
    height,
  };
}

const sum = (values: ArrayLike<number>): number => Array.from(values).reduce((all, one) => all + (one || 0), 0);
const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const count = (value: number, what: string): string => `${whole(value)} ${what}${Math.round(value) === 1 ? "" : "s"}`;

function mean(values: ArrayLike<number>): number {
  const known = Array.from(values).filter((one) => one > 0);
  return known.reduce((all, one) => all + one, 0) / known.length;
}
