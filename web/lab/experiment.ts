// Reads the page's question: compiles the scenario, once for all flows together or once for each.

import type { Control } from "./control";
import type { Compiled, Language } from "./language";
import { InputError, within } from "./problem";
import { DEFAULTS, onlyKnown, type Flow, type Scenario } from "./scenario";

/** Everything that a link to the page holds. */
export interface Question {
  scenario: Scenario;
  /** Runs each flow alone on the path, and draws all on the same axes. */
  alone: boolean;
}

export interface Experiment {
  question: Question;
  compiled: Compiled[];
  /** `durationS`: Infinity if only the end of the run ends it. */
  flows: { control: Control; cc: string; count: number; startS: number; durationS: number; bytes?: string }[];
  names: string[];
  alone: boolean;
  durationS: number;
  intervalS: number;
  /** The bottleneck's queue. */
  rateBps: number;
  /** The share of the rate that payload can use, in Mbit/s. */
  mostMbps: number;
}

/** More flows could not be distinguished, and each is a line in every figure. */
const MOST_FLOWS = 100;
const SAMPLES = 400;
/** Payload of a full frame. */
const PAYLOAD = 1448 / 1514;

/** Raises InputError. */
export function read(question: Question, language: Language): Experiment {
  const { alone } = question;
  onlyKnown(question.scenario);
  const duration = within("duration", () => language.read("span", question.scenario.duration ?? DEFAULTS.duration).amount);
  const scenario = { ...question.scenario, interval: language.print("span", interval(duration)) };
  const flows: Flow[] = scenario.flows ?? [{}];
  if (flows.length > MOST_FLOWS) {
    const message = `the page draws at most ${MOST_FLOWS} flows, and these are ${flows.length}`;
    throw new InputError("unsupported", message, "give flows that are alike a count, or run it with the command line", "flows");
  }
  // Compiles all flows together first, so that an error names its field.
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

/** An interval of 1, 2 or 5 times a power of ten, at least 1 ms, that gives about this many samples. */
function interval(durationNs: number): number {
  const wanted = durationNs / SAMPLES;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const nice = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= wanted * 0.999)!;
  return Math.max(1_000_000, Math.round(nice));
}
