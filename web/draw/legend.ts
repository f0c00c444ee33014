/** Legend: one button per series, in the series' colour and symbol, that hides or shows it. */
import { tint } from "./colours";
import type { Figure, Series, Span } from "./form";
import { element } from "./panel";
import { dashes, shape, type Pen } from "./strokes";

const NAMESPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [26, 12];

export type Entry = { name: string; series: Series[] } | { name: string; span: Span };

export function entries(figure: Figure): Entry[] {
  const lines = new Map<string, Series[]>();
  const spans = new Map<string, Span>();
  for (const panel of figure.panels) {
    for (const one of panel.series) {
      if (one.quiet) continue;
      const found = lines.get(one.name);
      if (found === undefined) lines.set(one.name, [one]);
      else if (!found.some((other) => other.kind === one.kind)) found.push(one);
    }
    for (const one of panel.spans ?? []) if (!spans.has(one.name)) spans.set(one.name, one);
  }
  return [...[...lines].map(([name, series]) => ({ name, series })), ...[...spans].map(([name, span]) => ({ name, span }))];
}

export class Legend {
  private made = "";

  constructor(private readonly host: HTMLElement, private readonly hidden: Set<string>, private readonly changed: () => void) {}

  set(figure: Figure): void {
    const found = entries(figure);
    const now = JSON.stringify(found.map((one) => [one.name, "span" in one ? one.span.colour : one.series.map(look)]));
    if (now === this.made) return;
    this.made = now;
    this.host.replaceChildren();
    if (found.length < 2 && !found.some((one) => "span" in one)) return;
    for (const one of found) this.button(one);
  }

  /** Redraws the samples when the colours have changed. */
  again(figure: Figure): void {
    this.made = "";
    this.set(figure);
  }

  private button(entry: Entry): void {
    const button = element(this.host, "button", "entry") as HTMLButtonElement;
    button.type = "button";
    button.title = "hide or show";
    button.setAttribute("aria-pressed", String(!this.hidden.has(entry.name)));
    button.append(sample(entry));
    element(button, "span", "").textContent = entry.name;
    button.addEventListener("click", () => {
      if (!this.hidden.delete(entry.name)) this.hidden.add(entry.name);
      button.setAttribute("aria-pressed", String(!this.hidden.has(entry.name)));
      this.changed();
    });
  }
}

function look(one: Series): unknown[] {
  return [one.kind, one.colour, one.dash, one.symbol, one.open, one.band];
}

function svg(parent: Element, tag: string, attributes: Record<string, string | number>): Element {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  parent.append(made);
  return made;
}

/** A sample of how an entry is drawn. */
export function sample(entry: Entry): Element {
  const picture = document.createElementNS(NAMESPACE, "svg");
  for (const [name, value] of Object.entries({ width: WIDTH, height: HEIGHT, "aria-hidden": "true" })) picture.setAttribute(name, String(value));
  if ("span" in entry) {
    svg(picture, "rect", { x: 2, y: 0, width: WIDTH - 4, height: HEIGHT, fill: tint(entry.span.colour), "fill-opacity": 0.45 });
    return picture;
  }
  for (const one of entry.series) {
    const colour = tint(one.colour);
    if (one.kind === "bars" || one.kind === "boxes") {
      svg(picture, "rect", { x: 4, y: 1, width: WIDTH - 8, height: HEIGHT - 2, fill: colour, "fill-opacity": one.kind === "boxes" ? 0.35 : 1, stroke: colour });
      continue;
    }
    if (one.band) svg(picture, "rect", { x: 0, y: 1, width: WIDTH, height: HEIGHT - 2, fill: colour, "fill-opacity": 0.25 });
    if (one.kind !== "points") {
      svg(picture, "line", { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, stroke: colour, "stroke-width": Math.max(1.6, one.width ?? 1.6), "stroke-dasharray": dashes(one).join(" ") });
    }
    const symbol = one.symbol ?? (one.kind === "points" ? "circle" : "none");
    if (symbol !== "none") {
      const path = new PathText();
      shape(path, symbol, WIDTH / 2, HEIGHT / 2, one.open ? 4.4 : 3.6);
      const stroked = one.open === true || symbol === "plus" || symbol === "cross" || symbol === "tick";
      svg(picture, "path", { d: path.text, fill: stroked ? "none" : colour, stroke: colour, "stroke-width": stroked ? 1.6 : 0 });
    } else if (one.kind === "points") {
      svg(picture, "line", { x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT, stroke: colour, "stroke-width": 1.6 });
    }
  }
  return picture;
}

/** A pen that writes an SVG path. */
export class PathText implements Pen {
  text = "";

  moveTo(x: number, y: number): void {
    this.text += `M${trim(x)} ${trim(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.text += this.text === "" ? `M${trim(x)} ${trim(y)}` : `L${trim(x)} ${trim(y)}`;
  }

  /** Whole circles only. */
  arc(x: number, y: number, r: number): void {
    this.text += `M${trim(x + r)} ${trim(y)}a${trim(r)} ${trim(r)} 0 1 1 ${trim(-2 * r)} 0a${trim(r)} ${trim(r)} 0 1 1 ${trim(2 * r)} 0`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.text += `M${trim(x)} ${trim(y)}h${trim(width)}v${trim(height)}h${trim(-width)}z`;
  }

  closePath(): void {
    this.text += "z";
  }
}

export function trim(value: number): number {
  return Math.round(value * 100) / 100;
}
