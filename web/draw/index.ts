/**
 * What a page calls: `sawtooth.figures(host, figure)`. Figures that are part of the page draw themselves without a
 * call.
 *
 * `<script type="application/json" class="figures">` holds a list of figures; `<figure data-figure="NAME">` marks the
 * place of one.
 */
import { Chart } from "./chart";
import type { Figure } from "./form";
import "uplot/dist/uPlot.min.css";
import "./draw.css";

export { group } from "./group";
export { csv, svg } from "./saving";
export type { Figure } from "./form";
export { Chart };

/** All figures of the page, by name. */
export const charts = new Map<string, Chart>();

/** Draws a figure into an element. Call `set` of the result to replace the data. */
export function draw(host: HTMLElement, figure: Figure): Chart {
  const { name } = figure;
  const chart: Chart = new Chart(host, figure, () => charts.get(name) === chart && charts.delete(name));
  charts.set(name, chart);
  return chart;
}

// This script comes after both in the page.
for (const script of document.querySelectorAll<HTMLScriptElement>('script[type="application/json"].figures')) {
  for (const figure of JSON.parse(script.textContent ?? "[]") as Figure[]) {
    const host = document.querySelector<HTMLElement>(`[data-figure="${CSS.escape(figure.name)}"]`);
    if (host !== null) draw(host, figure);
  }
}
