// What happened against time, as a figure of its own beside the others.

import type { Figure, Series } from "../../draw/form";
import { KINDS, type Class } from "./happenings";
import type { Story } from "./story";

const CLASSES: Record<Class, { name: string; colour: string }> = {
  network: { name: "lost or dropped in the network", colour: "#cc79a7" },
  loss: { name: "loss found", colour: "#d55e00" },
  less: { name: "window cut, or losses repaired", colour: "#0072b2" },
  state: { name: "other states", colour: "#009e73" },
};

export function strip(stories: readonly Story[], durationS: number): Figure {
  const lanes = Object.keys(CLASSES) as Class[];
  const series = lanes.map((one, lane): Series => {
    const all = stories.flatMap(({ steps }, flow) =>
      steps.filter(({ kind }) => KINDS[kind]?.class === one).map(({ t }) => [t, stories.length - 1 - flow + (1.5 - lane) * 0.18] as const),
    );
    all.sort(([a], [b]) => a - b);
    const column = (of: 0 | 1): Float64Array => Float64Array.from(all, (row) => row[of]);
    return { ...CLASSES[one], kind: "points", symbol: "tick", x: column(0), y: column(1) };
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
