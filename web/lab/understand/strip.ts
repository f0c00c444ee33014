// Events against time, as a separate figure beside the others.

import type { Figure, Series } from "../../draw/form";
import { KINDS, type Class } from "./events";
import type { Story } from "./story";

const CLASSES: Record<Class, { name: string; colour: string }> = {
  network: { name: "lost or dropped in the network", colour: "#cc79a7" },
  loss: { name: "loss found", colour: "#d55e00" },
  less: { name: "window cut, or losses repaired", colour: "#0072b2" },
  state: { name: "other states", colour: "#009e73" },
};

/** Readouts use the names of the list of counts. */
export function strip(stories: readonly Story[], durationS: number): Figure {
  const lanes = Object.keys(CLASSES) as Class[];
  const series = lanes.map((one, lane): Series => {
    const all = stories.flatMap(({ steps }, flow) =>
      steps.filter(({ kind }) => KINDS[kind]?.class === one).map((step) => ({ step, flow })),
    );
    all.sort((a, b) => a.step.t - b.step.t);
    const x = Float64Array.from(all, ({ step }) => step.t);
    const y = Float64Array.from(all, ({ flow }) => stories.length - 1 - flow + (1.5 - lane) * 0.18);
    const said = (at: number): string => {
      const { step, flow } = all[at]!;
      const { name, cc } = stories[flow]!;
      return `${name}: ${KINDS[step.kind]!.short(cc)}`;
    };
    return { ...CLASSES[one], kind: "points", symbol: "tick", x, y, said };
  });
  const names = stories.map(({ name }) => name).reverse();
  return {
    name: "happenings",
    title: "What happened",
    sentence: "what happened to each flow, and when",
    group: "time",
    height: 110 + 60 * stories.length,
    panels: [
      {
        title: "What happened",
        x: { label: "time", unit: "s", scale: "linear", low: 0, high: durationS },
        y: { label: "", unit: "", scale: "category", names, low: -0.5, high: stories.length - 0.5 },
        series: series.filter(({ x }) => (x as Float64Array).length > 0),
      },
    ],
  };
}
