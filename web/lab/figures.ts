// The figures of a run: the rows so far, in the form that the drawing code takes.

import type { Figure, Panel, Series } from "../draw/form";
import palette from "../draw/palette.json";
import type { Experiment } from "./experiment";
import type { Line, RunLines } from "./series";

const TIME = { label: "time", unit: "s", scale: "linear" } as const;
export const { controls, others, roles } = palette as { controls: Record<string, string>; others: string[]; roles: Record<string, string> };

const LOST = "#5f6b78";

/** What is drawn of a line. */
type Drawn = { readonly [column in "t" | "y"]: { readonly values: Float64Array } };

/** A colour for each flow: its control's colour for the first flow with that control. */
export function colours(flows: readonly { cc: string }[]): string[] {
  const taken = new Set<string>();
  return flows.map(({ cc }) => {
    const own = controls[cc];
    const found = own !== undefined && !taken.has(own) ? own : (others.find((colour) => !taken.has(colour)) ?? roles["muted"]!);
    taken.add(found);
    return found;
  });
}

/** Up to this many flows have a window panel each: a small window would be flat below a large one. */
const MOST_PANELS = 4;

/** Goodput is drawn as its mean over this time. */
const SMOOTH_S = 0.2;

/** How to draw goodput: as a mean, or each interval by itself. */
export interface Shown {
  raw: boolean;
  toggle: () => void;
}

/** Figures by name, in the order of the page. `runs`: one of all flows, or one of each. */
export function figures(experiment: Experiment, runs: readonly RunLines[], { raw, toggle }: Shown): Figure[] {
  const { names, alone, durationS, flows } = experiment;
  const colour = colours(flows);
  const of = (flow: number) => (alone ? runs[flow]!.flows[0]! : runs[0]!.flows[flow]!);
  const lines = (take: (flow: number) => Drawn, more: Partial<Series> = {}): Series[] =>
    names.map((name, flow) => line(name, colour[flow]!, take(flow), more));
  const queues = (take: (run: RunLines) => Line): Series[] =>
    alone ? names.map((name, run) => line(name, colour[run]!, take(runs[run]!))) : [line("all flows", roles["muted"]!, take(runs[0]!))];
  const x = { ...TIME, low: 0, high: durationS };
  const panel = (title: string, label: string, unit: string, series: Series[]): Panel => ({
    title,
    x,
    y: { label, unit, scale: "linear", zero: true },
    series,
  });
  const over = Math.round(SMOOTH_S / experiment.intervalS);
  const smooth = over > 1 && !raw;
  const how = smooth ? "mean over 200 ms" : "in order: what waited for a repair comes at once";
  const goodput = panel(`Goodput (${how})`, "goodput", "Mbit/s", lines((flow) => (smooth ? smoothed(of(flow).goodput, over) : of(flow).goodput)));
  const button = { words: "raw", title: "each interval by itself, or the mean over 200 ms", pressed: raw, act: toggle };
  const rate = { along: "y", at: experiment.mostMbps, words: "what the rate allows", colour: roles["muted"]! } as const;
  const ssthresh = dotted(lines((flow) => of(flow).ssthresh), "ssthresh");
  const first = flows.some(({ count }) => count > 1) ? " of the first connection" : "";
  const figure = (name: string, title: string, sentence: string, ...panels: Panel[]): Figure => ({
    name,
    title,
    sentence,
    panels,
    group: "time",
    height: name === "window" || name === "goodput" ? 240 : 170,
  });
  const windows = (): Figure => {
    const drawn = lines((flow) => of(flow).window);
    const title = `Congestion window${first} (dotted: ssthresh)`;
    const sentence = "congestion window of each flow against time; dotted: where slow start ends; a tick where the path lost packets";
    if (names.length === 1 || names.length > MOST_PANELS) {
      const ticks = alone && names.length > 1 ? [] : [losses(runs[0]!, "lost on the path")];
      return figure("window", "Window", sentence, panel(title, "window", "segments", [...drawn, ...ssthresh, ...ticks]));
    }
    const panels = names.map((name, flow): Panel => {
      const one = panel(flow === 0 ? title : "", `${name}: window`, "segments", [drawn[flow]!, ssthresh[flow]!, losses(runs[alone ? flow : 0]!, "lost on the path")]);
      return { ...one, x: { ...x, label: flow === names.length - 1 ? x.label : "" } };
    });
    return { ...figure("window", "Window", sentence, ...panels), across: 1, height: names.length === 2 ? 150 : 130 };
  };
  const lost = dotted(queues((run) => run.lost), "lost on the path");
  const dropped = queues((run) => run.drops).map((one) => ({ ...one, called: `${one.name}, dropped by the queue` }));
  return [
    { ...figure("goodput", "Goodput", "goodput of each flow against time", { ...goodput, marks: [rate] }), ...(over > 1 ? { button } : {}) },
    windows(),
    figure("rtt", "Round-trip time", "round-trip time that each sender sees", panel(`Round-trip time${first}`, "RTT", "ms", lines((flow) => of(flow).rtt))),
    figure("queue", "Queue", "packets that wait at the bottleneck", panel("Queue at the bottleneck", "waiting", "packets", queues((run) => run.queue))),
    figure("lost", "Packets lost and dropped", "packets that the queue drops in each interval; dotted: that the path loses", panel("Packets dropped (dotted: lost)", "packets in each interval", "", [...dropped, ...lost])),
  ];
}

/** At each place the mean of the last `count` values, or of fewer at the start. */
function smoothed({ t, y }: Line, count: number): Drawn {
  const { values } = y;
  const means = new Float64Array(values.length);
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) {
    sum += values[at]! - (at >= count ? values[at - count]! : 0);
    means[at] = Math.max(0, sum) / Math.min(count, at + 1);
  }
  return { t, y: { values: means } };
}

function line(name: string, colour: string, { t, y }: Drawn, more: Partial<Series> = {}): Series {
  // The columns keep growing; this draws what they hold now.
  return { name, colour, kind: "line", x: t.values, y: y.values, ...more };
}

/** A tick at zero for each interval in which the path lost packets. */
export function losses({ lost }: RunLines, name: string): Series {
  const x = Array.from(lost.t.values).filter((_, row) => lost.y.values[row]! > 0);
  return { name, colour: LOST, kind: "points", symbol: "tick", width: 1, x, y: x.map(() => 0), said: () => "packets lost" };
}

/** Adds lines that share a legend entry with others of the same name. */
function dotted(lines: readonly Series[], what: string): Series[] {
  return lines.map((one) => ({ ...one, dash: "dotted", quiet: true, width: 1.2, called: `${one.name}, ${what}` }));
}
