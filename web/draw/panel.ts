/** Panel: one uPlot chart with axes, scales, pointer, zoom and the figure's series. */
import uPlot from "uplot";
import { role, tint } from "./colours";
import { drawable, type Drawable } from "./columns";
import type { Axis, Panel as Form } from "./form";
import type { Group, Member } from "./group";
import { nearest, type Hit } from "./nearest";
import { bend, said, short, ticks, title, withUnit, type Ends } from "./scales";
import * as strokes from "./strokes";
import type { Ground } from "./strokes";

const FONT = "system-ui, sans-serif";
/** Below this width in CSS pixels, labels are smaller and further apart. */
const NARROW = 480;
/** A drag at least this many CSS pixels high and wide zooms y, too. */
const BOX = 24;
/** A mark can be grabbed within this many CSS pixels. */
const HOLD = 14;
/** The most rows in a readout. */
const MOST = 10;
/** uPlot does not get the series, only two ends of x. */
const DATA: uPlot.AlignedData = [[0, 1], [null, null]];

/** What a panel needs from its chart. */
export interface Owner {
  readonly height: number;
  hidden(name: string): boolean;
  /** The range of the visible series over this stretch of x. */
  ends(panel: Panel, range: Ends | null): { x: Ends; y: Ends };
  /** The width in CSS pixels for y labels. Panels below each other have the same width, so that their axes align. */
  room(size: number): number;
  /** A readout as text, for screen readers. */
  announce(words: string): void;
}

export class Panel implements Member {
  form: Form;
  series: Drawable[];
  readonly plot: uPlot;
  readonly root: HTMLElement;
  private width = 600;
  private x: Ends = [0, 1];
  private y: Ends = [0, 1];
  /** The y range chosen by a drag, with the x range chosen at the same time. */
  private chosen: { y: Ends; at: Ends } | null = null;
  private selected: Hit[] = [];
  /** The x that the last key press selected. */
  private stepped: number | null = null;
  private readonly readout: HTMLElement;
  private readonly line: HTMLElement;
  private readonly dots: HTMLElement[] = [];
  private readonly heading: HTMLElement;
  private readonly size: ResizeObserver;

  constructor(host: HTMLElement, form: Form, private readonly owner: Owner, readonly group: Group, sentence: string) {
    this.form = form;
    this.series = form.series.map(drawable);
    this.root = element(host, "div", "panel");
    this.heading = element(this.root, "div", "panel-title");
    this.heading.textContent = form.title;
    const body = element(this.root, "div", "plot");
    body.tabIndex = 0;
    body.setAttribute("role", "img");
    body.setAttribute("aria-label", [form.title, sentence].filter(Boolean).join(": "));
    this.fit();
    this.width = body.clientWidth || this.width;
    this.plot = new uPlot(this.options(), DATA, body);
    this.line = element(this.plot.over, "div", "at");
    this.readout = element(body, "div", "readout");
    this.line.hidden = this.readout.hidden = true;
    this.listen(body);
    this.size = new ResizeObserver(() => {
      if (body.clientWidth > 0 && body.clientWidth !== this.plot.width) this.resize(body.clientWidth);
    });
    this.size.observe(body);
    group.join(this);
    this.show(group.range);
  }

  destroy(): void {
    this.group.leave(this);
    this.size.disconnect();
    this.plot.destroy();
    this.root.remove();
  }

  /** Draws the current view onto another canvas. */
  drawTo(canvas: CanvasRenderingContext2D): void {
    const usual = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = (() => canvas) as unknown as typeof usual;
    try {
      const other = new uPlot(this.options(), DATA);
      // Draws at once, not with the next task.
      other.batch(() => {});
      other.destroy();
    } finally {
      HTMLCanvasElement.prototype.getContext = usual;
    }
  }

  /** Replaces the data and keeps the view. */
  set(form: Form): void {
    this.form = form;
    this.series = form.series.map(drawable);
    this.heading.textContent = form.title;
  }

  show(range: Ends | null): void {
    this.fit(range);
    this.rescale();
  }

  /** Redraws the same view after a change of colours, data or hidden series. */
  rescale(): void {
    this.plot.batch(() => {
      this.plot.setScale("x", { min: this.x[0], max: this.x[1] });
      this.plot.setScale("y", { min: this.y[0], max: this.y[1] });
    });
    this.plot.redraw(false, true);
  }

  point(x: number | null, quiet = false): void {
    if (x === null || x < this.x[0] || x > this.x[1]) this.clear();
    else if (quiet) this.mark(this.plot.valToPos(x, "x", true));
    else this.look(this.plot.valToPos(x, "x", true), null);
  }

  shown(): Drawable[] {
    return this.series.filter((one) => !this.owner.hidden(one.of.name));
  }

  private fit(range: Ends | null = this.group.range): void {
    const found = this.owner.ends(this, range);
    this.x = found.x;
    this.y = this.chosen !== null && this.chosen.at === range ? this.chosen.y : found.y;
  }

  private resize(width: number): void {
    this.width = width;
    this.plot.setSize({ width, height: this.owner.height });
  }

  private get narrow(): boolean {
    return this.width < NARROW;
  }

  private font(size = 0): string {
    return `${(this.narrow ? 11 : 12) + size}px ${FONT}`;
  }

  private options(): uPlot.Options {
    const scale = (axis: Axis, ends: () => Ends): uPlot.Scale => ({
      time: false,
      distr: axis.scale === "log" ? 3 : axis.scale === "asinh" ? 4 : 1,
      asinh: bend(axis),
      range: () => ends(),
    });
    const axis = (of: () => Axis, own: uPlot.Axis): uPlot.Axis => ({
      stroke: () => role("ink"),
      ticks: { stroke: () => role("muted"), width: 1, size: 4 },
      gap: 4,
      values: (_, splits) => splits.map((at) => (of().scale === "category" ? (of().names?.[at] ?? "") : short(at))),
      filter: (_, splits) => splits,
      ...own,
    });
    return {
      width: this.width,
      height: this.owner.height,
      padding: [22, () => this.right(), 0, 0],
      legend: { show: false },
      cursor: { y: false, x: false, points: { show: false }, drag: { x: true, y: this.form.explored === true, uni: BOX, setScale: false }, dataIdx: () => 0 },
      scales: { x: scale(this.form.x, () => this.x), y: scale(this.form.y, () => this.y) },
      series: [{}, { paths: () => null, points: { show: false } }],
      axes: [
        axis(() => this.form.x, {
          grid: { show: false },
          font: this.font(),
          size: () => this.xSize(),
          rotate: () => (this.leaning() ? -30 : 0),
          splits: (plot) => ticks(this.form.x, this.x, plot.bbox.width / uPlot.pxRatio, this.xSpace()),
        }),
        axis(() => this.form.y, {
          grid: { stroke: () => role("grid"), width: 1 },
          font: this.font(),
          size: (_, values) => this.owner.room(14 + Math.max(12, ...(values ?? []).map((text) => this.widthOf(String(text))))),
          splits: (plot) => ticks(this.form.y, this.y, plot.bbox.height / uPlot.pxRatio, 26),
        }),
      ],
      hooks: {
        drawClear: [(plot) => this.behind(this.ground(plot))],
        draw: [(plot) => this.draw(this.ground(plot))],
        setSelect: [(plot) => this.select(plot)],
        setCursor: [(plot) => this.moved(plot)],
      },
    };
  }

  private widthOf(text: string): number {
    return text.length * (this.narrow ? 6 : 6.7);
  }

  private longest(): number {
    return Math.max(0, ...(this.form.x.names ?? []).map((name) => this.widthOf(name)));
  }

  /** Names that do not fit side by side are slanted. */
  private leaning(): boolean {
    const names = this.form.x.names?.length ?? 0;
    return names > 1 && this.longest() + 8 > (this.width * 0.88) / names;
  }

  /** Room at the right, where the last slanted name ends. */
  private right(): number {
    const half = (this.width * 0.44) / (this.form.x.names?.length ?? 1);
    return this.leaning() ? Math.max(16, this.longest() * Math.cos(Math.PI / 6) - half + 8) : 16;
  }

  private xSpace(): number {
    if (this.form.x.scale === "category") return this.leaning() ? 16 : this.longest() + 6;
    return this.form.x.ticks === undefined ? (this.narrow ? 52 : 64) : this.narrow ? 30 : 34;
  }

  private xSize(): number {
    return 40 + (this.leaning() ? Math.min(90, this.longest() * 0.55) : 0);
  }

  private ground(plot = this.plot): Ground {
    const { left, top, width, height } = plot.bbox;
    return {
      canvas: plot.ctx,
      x: place(this.form.x, this.x, left, width),
      y: place(this.form.y, this.y, top + height, -height),
      ratio: uPlot.pxRatio,
      from: this.x[0],
      to: this.x[1],
      ...{ left, top, width, height },
    };
  }

  private behind(ground: Ground): void {
    for (const one of this.form.spans ?? []) if (!this.owner.hidden(one.name)) strokes.span(ground, one);
  }

  private draw(ground: Ground): void {
    const { canvas, ratio } = ground;
    canvas.save();
    const font = `${(this.narrow ? 11 : 12) * ratio}px ${FONT}`;
    for (const one of this.form.marks ?? []) strokes.mark(ground, one, role("muted"));
    for (const one of this.shown()) strokes.series(ground, one);
    canvas.font = font;
    const placed: strokes.Place[] = [];
    for (const one of this.form.marks ?? []) strokes.words(ground, one, role("muted"), role("paper"), placed);
    canvas.fillStyle = role("muted");
    canvas.textBaseline = "alphabetic";
    canvas.textAlign = "left";
    canvas.fillText(fitted(canvas, title(this.form.y), this.width * ratio - 4 * ratio), 2 * ratio, 12 * ratio);
    canvas.textAlign = "right";
    const below = this.owner.height * ratio - 4 * ratio;
    canvas.fillText(fitted(canvas, title(this.form.x), this.width * ratio - 8 * ratio), ground.left + ground.width, below);
    canvas.restore();
  }

  /** The reader dragged over a stretch. */
  private select(plot: uPlot): void {
    const { left, width, top, height } = plot.select;
    if (width < 4) return;
    const range: Ends = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    const boxed = height > 0 && height < plot.over.clientHeight;
    this.chosen = boxed ? { y: [plot.posToVal(top + height, "y"), plot.posToVal(top, "y")], at: range } : null;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.group.show(range);
  }

  private moved(plot: uPlot): void {
    const { left, top } = plot.cursor;
    if (left === undefined || top === undefined || left < 0) {
      this.clear();
      this.group.point(null, this);
      return;
    }
    this.stepped = null;
    this.look(left * uPlot.pxRatio + plot.bbox.left, top * uPlot.pxRatio + plot.bbox.top);
    this.group.point(plot.posToVal(left, "x"), this);
  }

  private listen(body: HTMLElement): void {
    this.plot.over.addEventListener("dblclick", () => this.group.show(null));
    body.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const moves: Record<string, () => void> = {
        Escape: () => this.group.show(null),
        ArrowLeft: () => this.step(-1),
        ArrowRight: () => this.step(1),
        "+": () => this.closer(0.5),
        "-": () => this.closer(2),
      };
      const move = moves[event.key];
      if (move === undefined) return;
      event.preventDefault();
      move();
    });
    if (this.form.explored === true) this.explore(body);
    if (this.form.marks?.some(({ moved }) => moved !== undefined)) this.drag();
    body.addEventListener("blur", () => {
      this.clear();
      this.group.point(null, this);
    });
  }

  private explore(body: HTMLElement): void {
    const wheel = (event: WheelEvent): void => {
      if (document.activeElement !== body) return;
      event.preventDefault();
      this.closer(1.0015 ** event.deltaY);
    };
    body.addEventListener("wheel", wheel, { passive: false });
    const begin = (event: MouseEvent): void => {
      if (!event.shiftKey || event.button !== 0) return;
      // Hides the event from uPlot, which would select a stretch.
      event.stopPropagation();
      const [from, [low, high]] = [event.clientX, this.x];
      const move = ({ clientX }: MouseEvent): void => {
        const by = Math.max(-low, ((from - clientX) * (high - low)) / this.plot.over.clientWidth);
        this.group.show([low + by, high + by]);
      };
      addEventListener("mousemove", move);
      addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
    };
    body.addEventListener("mousedown", begin, true);
  }

  /** Lets marks follow the mouse or a finger. */
  private drag(): void {
    const { over } = this.plot;
    // A vertical swipe still scrolls the page.
    over.style.touchAction = "pan-y";
    const left = (event: PointerEvent): number => event.clientX - over.getBoundingClientRect().left;
    const held = (event: PointerEvent) =>
      this.form.marks?.find(({ moved, at }) => moved !== undefined && Math.abs(this.plot.valToPos(at, "x") - left(event)) < HOLD);
    let holding = false;
    over.addEventListener("pointermove", (event) => {
      if (!holding) over.style.cursor = held(event) === undefined ? "" : "ew-resize";
      else this.form.marks?.find(({ moved }) => moved)?.moved!(this.plot.posToVal(Math.min(over.clientWidth, Math.max(0, left(event))), "x"));
    });
    over.addEventListener("pointerdown", (event) => {
      if (held(event) === undefined || event.button !== 0) return;
      // Otherwise a mouse event would follow, and uPlot would zoom.
      event.preventDefault();
      over.setPointerCapture(event.pointerId);
      holding = true;
    });
    for (const end of ["pointerup", "pointercancel"] as const) over.addEventListener(end, () => (holding = false));
  }

  /** Moves to the next x of any series. */
  private step(direction: 1 | -1): void {
    const here = this.stepped ?? (this.selected[0] === undefined ? (direction > 0 ? -Infinity : Infinity) : this.selected[0].series.x[this.selected[0].at]!);
    let next = direction * Infinity;
    for (const { x } of this.shown()) {
      for (const value of x) {
        if (value < this.x[0] || value > this.x[1] || (value - here) * direction <= 0) continue;
        if ((next - value) * direction > 0) next = value;
      }
    }
    if (!Number.isFinite(next)) return;
    this.point(next);
    this.stepped = next;
    this.group.point(next, this);
    this.owner.announce(this.readout.innerText.replace(/\s+/g, " "));
  }

  private closer(factor: number): void {
    const ground = this.ground();
    const middle = this.selected[0]?.x ?? ground.left + ground.width / 2;
    const from = middle - (middle - ground.left) * factor;
    const to = middle + (ground.left + ground.width - middle) * factor;
    const whole = this.owner.ends(this, null).x;
    const range: Ends = [this.plot.posToVal(from, "x", true), this.plot.posToVal(to, "x", true)];
    this.group.show(range[0] <= whole[0] && range[1] >= whole[1] ? null : [Math.max(range[0], whole[0]), Math.min(range[1], whole[1])]);
  }

  /** Draws a line at exactly this place of the canvas, and dots where the series cross it. */
  private mark(x: number): void {
    const ground = this.ground();
    this.stand(ground, x, nearest(ground, this.shown(), x, null));
    this.readout.hidden = true;
  }

  private stand(ground: Ground, x: number, selected: Hit[]): void {
    this.selected = selected;
    const css = (pixels: number): string => `${pixels / ground.ratio}px`;
    this.line.hidden = false;
    this.line.style.transform = `translateX(${css(x - ground.left)})`;
    selected.forEach((hit, at) => {
      const dot = (this.dots[at] ??= element(this.plot.over, "div", "dot"));
      dot.hidden = !(hit.y >= ground.top - 1 && hit.y <= ground.top + ground.height + 1);
      dot.style.transform = `translate(${css(hit.x - ground.left)}, ${css(hit.y - ground.top)})`;
      dot.style.background = tint(hit.series.of.colour);
    });
    for (const dot of this.dots.slice(selected.length)) dot.hidden = true;
  }

  /** Shows the values at a place of the canvas. */
  private look(x: number, y: number | null): void {
    const ground = this.ground();
    const selected = nearest(ground, this.shown(), x, y);
    this.stand(ground, selected[0]?.x ?? x, selected);
    const value = this.plot.posToVal(x, "x", true);
    const over = (this.form.spans ?? []).filter((one) => one.from <= value && value < one.to && !this.owner.hidden(one.name));
    if (this.selected.length === 0 && over.length === 0) {
      this.readout.hidden = true;
      return;
    }
    this.readout.replaceChildren();
    const top = element(this.readout, "div", "readout-x");
    top.textContent = valueText(this.form.x, this.selected[0] === undefined ? value : this.selected[0].series.x[this.selected[0].at]!);
    let hits = this.selected;
    if (hits.length > MOST && y !== null) hits = [...hits].sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
    for (const hit of hits.slice(0, MOST)) this.row(tint(hit.series.of.colour), hit.series.of.called ?? hit.series.of.name, this.values(hit), hit.series.of.said !== undefined);
    if (hits.length > MOST) element(this.readout, "div", "").textContent = `and ${hits.length - MOST} more`;
    for (const one of over) this.row(tint(one.colour), one.name, "");
    this.readout.hidden = false;
    const right = x / ground.ratio;
    const flip = right > this.plot.width / 2;
    const across = flip ? right - 12 - this.readout.offsetWidth : right + 12;
    this.readout.style.transform = `translate(${Math.max(0, Math.min(across, this.plot.width - this.readout.offsetWidth))}px, 26px)`;
  }

  /** `wordy`: the text is a sentence rather than a number. */
  private row(colour: string, name: string, text: string, wordy = false): void {
    const row = element(this.readout, "div", wordy ? "readout-row wordy" : "readout-row");
    element(row, "i", "").style.background = colour;
    element(row, "span", "").textContent = name;
    element(row, "b", "").textContent = text;
  }

  private values({ series, at }: Hit): string {
    if (series.of.said !== undefined) return series.of.said(at);
    const value = valueText(this.form.y, series.y[at]!);
    const [low, high] = [series.low?.[at], series.high?.[at]];
    if (low === undefined || high === undefined || low !== low || high !== high || low === high) return value;
    return `${value} (${said(low)} … ${said(high)})`;
  }

  private clear(): void {
    this.selected = [];
    this.stepped = null;
    this.line.hidden = this.readout.hidden = true;
    for (const dot of this.dots) dot.hidden = true;
  }
}

function place(axis: Axis, [low, high]: Ends, from: number, length: number): (value: number) => number {
  if (axis.scale === "log") {
    const factor = length / Math.log(high / low);
    const zero = Math.log(low);
    return (value) => from + (Math.log(value) - zero) * factor;
  }
  if (axis.scale === "asinh") {
    const zero = Math.asinh(low / bend(axis));
    const factor = length / (Math.asinh(high / bend(axis)) - zero);
    return (value) => from + (Math.asinh(value / bend(axis)) - zero) * factor;
  }
  const factor = length / (high - low);
  return (value) => from + (value - low) * factor;
}

function valueText(axis: Axis, value: number): string {
  if (axis.scale === "category") return axis.names?.[Math.round(value)] ?? "";
  return withUnit(said(value), axis.unit);
}

/** Shortens a text to the room that is left. */
function fitted(canvas: CanvasRenderingContext2D, text: string, width: number): string {
  let kept = text;
  while (kept.length > 4 && canvas.measureText(kept).width > width) kept = `${kept.slice(0, -2).trimEnd()}…`;
  return kept;
}

export function element(parent: HTMLElement, tag: string, name: string): HTMLElement {
  const made = document.createElement(tag);
  if (name !== "") made.className = name;
  parent.append(made);
  return made;
}
