/** Chart: a figure on a page, with its panels, legend, and buttons that save it. */
import { onThemeChange } from "./colours";
import type { Figure } from "./form";
import { group } from "./group";
import { Legend } from "./legend";
import { element, Panel, type Owner } from "./panel";
import { KINDS, save } from "./saving";
import { ends, Extent, measure, type Ends } from "./scales";

const HEIGHT = 300;
/** Height of panels in several rows. */
const LOWER = 230;

export class Chart implements Owner {
  readonly grid: HTMLElement;
  readonly legend: HTMLElement;
  panels: Panel[] = [];
  private readonly hiddenNames = new Set<string>();
  private readonly entries: Legend;
  private readonly live: HTMLElement;
  private readonly own: HTMLButtonElement;
  private waiting = false;
  private widest = 0;
  private logarithmic = false;
  private given: Figure;
  private readonly ended: () => void;

  /**
   * Draws `figure` as the last child of `host`, at its full width. Calls `removed` when the figure is removed from the
   * page.
   */
  constructor(readonly host: HTMLElement, public figure: Figure, private readonly removed = () => {}) {
    this.given = figure;
    const root = element(host, "div", "chart");
    const bar = element(root, "div", "bar");
    this.legend = element(bar, "div", "legend");
    this.legend.setAttribute("role", "group");
    this.legend.setAttribute("aria-label", "legend");
    const saving = element(bar, "div", "saving");
    this.own = element(saving, "button", "") as HTMLButtonElement;
    this.own.type = "button";
    this.own.addEventListener("click", () => this.given.button?.act());
    this.offer();
    if (figure.panels.some((one) => one.y.switch)) this.switcher(saving);
    for (const kind of KINDS) {
      const button = element(saving, "button", "") as HTMLButtonElement;
      button.type = "button";
      button.textContent = kind;
      button.title = `save the figure as ${kind}`;
      button.setAttribute("aria-label", `${kind} of ${figure.title}`);
      button.addEventListener("click", () => void save(this, kind));
    }
    this.grid = element(root, "div", "panels");
    this.live = element(root, "div", "unseen");
    this.live.setAttribute("aria-live", "polite");
    this.entries = new Legend(this.legend, this.hiddenNames, () => this.fresh());
    this.build();
    this.ended = onThemeChange(() => {
      this.entries.again(this.figure);
      this.fresh();
    });
  }

  /** The page's own button, where the figure has one. */
  private offer(): void {
    const { button } = this.given;
    this.own.hidden = button === undefined;
    if (button === undefined) return;
    this.own.textContent = button.words;
    this.own.title = button.title;
    this.own.setAttribute("aria-pressed", String(button.pressed));
  }

  private switcher(bar: HTMLElement): void {
    const button = element(bar, "button", "") as HTMLButtonElement;
    button.type = "button";
    button.textContent = "log";
    button.title = "a logarithmic scale, or a linear one";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      this.logarithmic = !this.logarithmic;
      button.setAttribute("aria-pressed", String(this.logarithmic));
      this.set(this.given);
    });
  }

  /** The figure as given, except for a scale that the reader switched. */
  private switched(figure: Figure): Figure {
    if (!this.logarithmic) return figure;
    const panels = figure.panels.map((one) => (one.y.switch ? { ...one, y: { ...one.y, scale: "log" as const } } : one));
    return { ...figure, panels };
  }

  /** Replaces the data. Zoom and hidden series stay. Drawn once, with the next frame. */
  set(given: Figure): void {
    const before = this.figure;
    this.given = given;
    this.offer();
    const figure = this.switched(given);
    this.figure = figure;
    const same =
      figure.panels.length === before.panels.length &&
      figure.panels.every((one, at) => one.x.scale === before.panels[at]!.x.scale && one.y.scale === before.panels[at]!.y.scale);
    if (!same) {
      for (const one of this.panels) one.destroy();
      this.build();
      return;
    }
    this.panels.forEach((one, at) => one.set(figure.panels[at]!));
    this.entries.set(figure);
    this.fresh();
  }

  /** Removes the chart from the page, with its event listeners. */
  remove(): void {
    this.ended();
    for (const one of this.panels) one.destroy();
    this.panels = [];
    this.removed();
    this.host.querySelector(":scope > .chart")?.remove();
  }

  get height(): number {
    const { height, panels, across } = this.figure;
    return height ?? (panels.length > (across ?? panels.length) ? LOWER : HEIGHT);
  }

  hidden(name: string): boolean {
    return this.hiddenNames.has(name);
  }

  ends(panel: Panel, range: Ends | null): { x: Ends; y: Ends } {
    const alike = this.figure.alike === true && this.panels.length > 0;
    const of = alike ? this.panels : [panel];
    const { x, y } = panel.form;
    const across = new Extent(x.scale === "log");
    const roomy = of.some((one) => one.shown().some(({ of: { kind, symbol } }) => kind === "points" || kind === "bars" || kind === "boxes" || (symbol ?? "none") !== "none"));
    for (const one of of) {
      for (const { x, sorted } of one.series) for (const value of sorted ? [x[0] ?? NaN, x[x.length - 1] ?? NaN] : x) across.take(value);
      for (const stretch of one.form.spans ?? []) {
        across.take(stretch.from);
        across.take(stretch.to);
      }
      for (const mark of one.form.marks ?? []) if (mark.along === "x") across.take(mark.at);
    }
    const boxed = of.some((one) => one.series.some(({ of: { kind } }) => kind === "bars" || kind === "boxes"));
    const whole = widened(ends(x, across, roomy), boxed && x.scale === "linear", of);
    const shown = range ?? whole;
    const up = new Extent(y.scale === "log");
    for (const one of of) {
      for (const series of one.shown()) if (series.of.loose !== true) measure(series, shown[0], shown[1], up);
      for (const mark of one.form.marks ?? []) if (mark.along === "y") up.take(mark.at);
    }
    return { x: shown, y: ends(y, up, true) };
  }

  room(size: number): number {
    if (size > this.widest) {
      this.widest = size;
      if (this.panels.length > 1) this.fresh();
    }
    return this.widest;
  }

  announce(words: string): void {
    this.live.textContent = words;
  }

  private build(): void {
    const { figure } = this;
    this.grid.replaceChildren();
    this.panels = [];
    this.grid.style.setProperty("--across", String(figure.across ?? Math.min(3, figure.panels.length)));
    const shared = group(figure.group);
    for (const form of figure.panels) {
      const own = figure.group !== undefined || figure.alike ? shared : group();
      this.panels.push(new Panel(this.grid, form, this, own, figure.sentence));
    }
    this.entries.set(figure);
    // The first panels did not know the width of the later ones.
    if (figure.alike) for (const one of this.panels) one.show(shared.range);
  }

  private fresh(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const one of this.panels) one.show(one.group.range);
    });
  }
}

/** Bars and boxes need half their width beside the first and the last x. */
function widened([low, high]: Ends, boxed: boolean, panels: readonly Panel[]): Ends {
  if (!boxed) return [low, high];
  let closest = Infinity;
  for (const { series } of panels) {
    for (const { x } of series) for (let at = 1; at < x.length; at++) closest = Math.min(closest, Math.abs(x[at]! - x[at - 1]!) || Infinity);
  }
  const room = Number.isFinite(closest) ? closest / 2 : 0;
  return [low - room, high + room];
}
