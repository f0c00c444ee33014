/** Saving: a figure as PNG and SVG as displayed, and its data as CSV. */
import type { Chart } from "./chart";
import { role } from "./colours";
import { numbers, type Column, type Figure } from "./form";
import { entries, sample } from "./legend";
import { escaped, Recorder } from "./recorder";

export const KINDS = ["PNG", "SVG", "CSV"] as const;
export type Kind = (typeof KINDS)[number];

const FONT = "system-ui, sans-serif";
const ROOM = 16;
const LINE = 20;

/** Offers the file for download under the figure's name. */
export async function save(chart: Chart, kind: Kind): Promise<void> {
  const blob = kind === "CSV" ? new Blob([csv(chart.figure)], { type: "text/csv" }) : kind === "SVG" ? svg(chart) : await png(chart);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${chart.figure.name}.${kind.toLowerCase()}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The figure's table; without one, a row for each point drawn. The scenario comes first, in lines that begin with #. */
export function csv(figure: Figure): string {
  const rows = figure.ran === undefined ? [] : figure.ran.scenario.trimEnd().split("\n").map((line) => `# ${line}`.trimEnd());
  if (figure.table !== undefined) {
    const names = Object.keys(figure.table);
    const length = Math.max(0, ...names.map((name) => figure.table![name]!.length));
    rows.push(names.map(cell).join(","));
    for (let at = 0; at < length; at++) rows.push(names.map((name) => cell(figure.table![name]![at] ?? null)).join(","));
    return `${rows.join("\n")}\n`;
  }
  const extra = ["low", "high", "lower", "upper"] as const;
  const has = extra.filter((name) => figure.panels.some((panel) => panel.series.some((one) => one[name] !== undefined)));
  rows.push(["panel", "series", "x", "y", ...has, "x_unit", "y_unit"].join(","));
  for (const panel of figure.panels) {
    for (const one of panel.series) {
      const columns = [one.x, one.y, ...has.map((name) => one[name])].map((column: Column | undefined) => column && numbers(column));
      const place = (x: number): string | number => (panel.x.scale === "category" ? (panel.x.names?.[x] ?? x) : x);
      for (let at = 0; at < columns[0]!.length; at++) {
        const values = columns.map((column) => column?.[at] ?? null);
        rows.push([panel.title, one.called ?? one.name, place(values[0]!), ...values.slice(1), panel.x.unit, panel.y.unit].map(cell).join(","));
      }
    }
  }
  return `${rows.join("\n")}\n`;
}

function cell(value: number | string | null): string {
  if (value === null || (typeof value === "number" && Number.isNaN(value))) return "";
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Positions of the figure's parts, in CSS pixels. */
function parts(chart: Chart): { width: number; height: number; top: number; legend: [number, number, Element, string][] } {
  const width = chart.grid.clientWidth;
  const pen = document.createElement("canvas").getContext("2d")!;
  pen.font = `13px ${FONT}`;
  let [right, down] = [0, ROOM + 26];
  const shown = entries(chart.figure).filter((one) => !chart.hidden(one.name));
  const legend: [number, number, Element, string][] = [];
  for (const one of shown.length > 1 || shown.some((one) => "span" in one) ? shown : []) {
    const room = 34 + pen.measureText(one.name).width + 16;
    if (right > 0 && right + room > width) [right, down] = [0, down + LINE];
    legend.push([right, down, sample(one), one.name]);
    right += room;
  }
  const top = down + (legend.length ? LINE + 8 : 0);
  return { width, height: top + chart.grid.clientHeight + ROOM + (chart.figure.ran === undefined ? 0 : LINE), top, legend };
}

/** The figure as SVG: draws each panel once more, onto a recorder in place of the canvas. */
export function svg(chart: Chart): Blob {
  const { width, height, top, legend } = parts(chart);
  const { ran } = chart.figure;
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width + 2 * ROOM}" height="${height}" viewBox="${-ROOM} 0 ${width + 2 * ROOM} ${height}" font-family="${FONT}">`,
    `<rect x="${-ROOM}" width="100%" height="100%" fill="${role("paper")}"/>`,
    `<text y="${ROOM + 8}" font-size="16" font-weight="600" fill="${role("ink")}">${escaped(chart.figure.title)}</text>`,
  ];
  if (ran !== undefined) {
    out.push(`<metadata>${escaped(ran.scenario)}</metadata>`);
    out.push(`<text y="${height - ROOM / 2}" font-size="11" fill="${role("muted")}">${escaped(ran.words)}</text>`);
  }
  for (const [x, y, picture, name] of legend) {
    out.push(`<g transform="translate(${x},${y})">${picture.innerHTML}</g>`);
    out.push(`<text x="${x + 32}" y="${y + 11}" font-size="13" fill="${role("ink")}">${escaped(name)}</text>`);
  }
  const home = chart.grid.getBoundingClientRect();
  for (const panel of chart.panels) {
    const at = panel.plot.root.getBoundingClientRect();
    const [left, down] = [at.left - home.left, at.top - home.top + top];
    out.push(`<text x="${left}" y="${down - 6}" font-size="13" font-weight="600" fill="${role("ink")}">${escaped(panel.form.title)}</text>`);
    const recorder = new Recorder();
    panel.drawTo(recorder as unknown as CanvasRenderingContext2D);
    const scale = 1 / (panel.plot.ctx.canvas.width / panel.plot.width);
    out.push(`<g transform="translate(${left},${down}) scale(${scale})">${recorder.text()}</g>`);
  }
  out.push("</svg>");
  return new Blob([out.join("\n")], { type: "image/svg+xml" });
}

/** At least twice the screen's resolution. */
async function png(chart: Chart): Promise<Blob> {
  const source = URL.createObjectURL(svg(chart));
  try {
    const picture = new Image();
    picture.src = source;
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * picture.naturalWidth;
    canvas.height = 2 * picture.naturalHeight;
    canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no PNG")))));
  } finally {
    URL.revokeObjectURL(source);
  }
}
