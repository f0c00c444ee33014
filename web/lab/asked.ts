// What the page is asked, read: the scenario compiled, once for all flows together or once for each.

import type { Control } from "./control";
import type { Compiled, Language } from "./language";
import { InputError, within } from "./problem";
import { DEFAULTS, onlyKnown, type Flow, type Scenario } from "./scenario";

/** All that a link to the page holds. */
export interface Question {
  scenario: Scenario;
  /** Each flow by itself on the path, drawn on the same axes. */
  alone: boolean;
}

export interface Asked {
  question: Question;
  compiled: Compiled[];
  /** `durationS`: Infinity where nothing but the run ends it. */
  flows: { control: Control; cc: string; count: number; startS: number; durationS: number; bytes?: string }[];
  names: string[];
  alone: boolean;
  durationS: number;
  intervalS: number;
  /** Of the bottleneck. */
  rateBps: number;
  /** What of the rate can be payload, Mbit/s. */
  mostMbps: number;
}

/** More than can be told apart, and each is a line in every figure. */
const MOST_FLOWS = 100;
const SAMPLES = 400;
/** Of a full frame: payload. */
const PAYLOAD = 1448 / 1514;

/** Raises InputError. */
export function read(question: Question, language: Language): Asked {
  const { alone } = question;
  onlyKnown(question.scenario);
  const duration = within("duration", () => language.read("span", question.scenario.duration ?? DEFAULTS.duration).amount);
  const scenario = { ...question.scenario, interval: language.print("span", interval(duration)) };
  const flows: Flow[] = scenario.flows ?? [{}];
  if (flows.length > MOST_FLOWS) {
    const message = `the page draws at most ${MOST_FLOWS} flows, and these are ${flows.length}`;
    throw new InputError("unsupported", message, "give flows that are alike a count, or run it with the command line", "flows");
  }
  // All together first: what is wrong is told of the field that it is in.
  const whole = language.compile(scenario);
  const names = whole.flows.map(({ name }) => name);
  const compiled = alone ? flows.map((flow, at) => language.compile({ ...scenario, flows: [{ ...flow, name: names[at]! }] })) : [whole];
  return {
    question: { scenario, alone },
    compiled,
    flows: flows.map(({ cc: control = DEFAULTS.flow.cc, bytes }, at) => ({
      control,
      cc: whole.flows[at]!.cc,
      count: whole.flows[at]!.count,
      startS: whole.flows[at]!.startNs / 1e9,
      durationS: (whole.flows[at]!.durationNs ?? Infinity) / 1e9,
      ...(bytes === undefined ? {} : { bytes }),
    })),
    names,
    alone,
    durationS: whole.durationNs / 1e9,
    intervalS: whole.intervalNs / 1e9,
    rateBps: whole.rateBps,
    mostMbps: (whole.rateBps * PAYLOAD) / 1e6,
  };
}

/** About so many samples, of 1, 2 or 5 times a power of ten; ms at least. */
function interval(durationNs: number): number {
  const wanted = durationNs / SAMPLES;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const nice = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= wanted * 0.999)!;
  return Math.max(1_000_000, Math.round(nice));
}
