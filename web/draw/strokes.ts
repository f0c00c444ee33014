/** Strokes: draws series, spans and marks on a canvas. */
import { tint } from "./colours";
import { between, type Drawable } from "./columns";
import type { Mark, Series, Span, Symbol } from "./form";

/** A panel's canvas. Coordinates are canvas pixels; one CSS pixel has `ratio` of them. */
export interface Ground {
  canvas: CanvasRenderingContext2D;
  x: (value: number) => number;
  y: (value: number) => number;
  left: number;
  top: number;
  width: number;
  height: number;
  ratio: number;
  /** The visible range of x. */
  from: number;
  to: number;
}

const DASHES: Record<NonNullable<Series["dash"]>, readonly number[]> = {
  solid: [],
  dashed: [6, 4],
  dotted: [1.5, 3],
  dashdot: [7, 3, 1.5, 3],
};
const RADIUS = 3.4;
/** Radius of an isolated value on a line. */
const DOT = 2.2;
/** With more points than this, each is a plain square. */
const MANY = 4000;
const BAND = 0.22;

export function dashes(of: Series): readonly number[] {
  return DASHES[of.dash ?? "solid"];
}

export function span(ground: Ground, of: Span): void {
  const left = Math.max(ground.left, ground.x(of.from));
  const right = Math.min(ground.left + ground.width, ground.x(of.to));
  if (right <= left) return;
  ground.canvas.save();
  ground.canvas.globalAlpha = BAND;
  ground.canvas.fillStyle = tint(of.colour);
  ground.canvas.fillRect(left, ground.top, right - left, ground.height);
  ground.canvas.restore();
}

/** The position of a mark's line on its axis; null if it is out of view. */
function lineOf(ground: Ground, of: Mark): number | null {
  const at = Math.round(of.along === "x" ? ground.x(of.at) : ground.y(of.at));
  const [first, last] = of.along === "x" ? [ground.left, ground.left + ground.width] : [ground.top, ground.top + ground.height];
  return at >= first && at <= last ? at : null;
}

export function mark(ground: Ground, of: Mark, ink: string): void {
  const { canvas, ratio } = ground;
  const at = lineOf(ground, of);
  if (at === null) return;
  canvas.strokeStyle = of.colour === undefined ? ink : tint(of.colour);
  canvas.lineWidth = ratio;
  canvas.setLineDash([4 * ratio, 3 * ratio]);
  canvas.beginPath();
  if (of.along === "x") {
    canvas.moveTo(at, ground.top);
    canvas.lineTo(at, ground.top + ground.height);
  } else {
    canvas.moveTo(ground.left, at);
    canvas.lineTo(ground.left + ground.width, at);
  }
  canvas.stroke();
  canvas.setLineDash([]);
  if (of.moved === undefined) return;
  // What it is taken hold of by.
  canvas.fillStyle = canvas.strokeStyle;
  canvas.beginPath();
  canvas.arc(at, ground.top + 6 * ratio, 5 * ratio, 0, 2 * Math.PI);
  canvas.fill();
}

/** Where labels are: left, top, width, height. */
export type Place = readonly [number, number, number, number];

/**
 * A mark's label, drawn over the series. A background and a rim in the page's colour keep it legible. It moves down a
 * line rather than overlap `others`.
 */
export function words(ground: Ground, of: Mark, ink: string, paper: string, others: Place[]): void {
  const { canvas, ratio } = ground;
  const at = lineOf(ground, of);
  if (at === null || of.words === "") return;
  const room = 4 * ratio;
  let [x, y] = [ground.left + ground.width - room, at - room];
  canvas.textAlign = "right";
  canvas.textBaseline = "bottom";
  if (of.along === "x") {
    const right = at + room + canvas.measureText(of.words).width < ground.left + ground.width;
    [x, y] = [right ? at + room : at - room, of.low === true ? ground.top + ground.height - room / 2 : ground.top + room / 2];
    canvas.textAlign = right ? "left" : "right";
    canvas.textBaseline = of.low === true ? "bottom" : "top";
  } else if (at - ground.top < 16 * ratio) {
    y = at + room;
    canvas.textBaseline = "top";
  }
  const { width } = canvas.measureText(of.words);
  const height = 14 * ratio;
  const down = canvas.textBaseline === "top";
  if (canvas.textAlign === "right") x = Math.max(x, ground.left + width);
  const box = (): Place => [canvas.textAlign === "right" ? x - width : x, down ? y : y - height, width, height];
  while (others.some((other) => meet(other, box()))) {
    y += down ? height : -height;
    if (box()[1] < ground.top || box()[1] + height > ground.top + ground.height) return;
  }
  const place = box();
  others.push(place);
  canvas.globalAlpha = 0.8;
  canvas.fillStyle = paper;
  canvas.fillRect(...place);
  canvas.globalAlpha = 1;
  canvas.lineJoin = "round";
  canvas.lineWidth = 3 * ratio;
  canvas.strokeStyle = paper;
  canvas.strokeText(of.words, x, y);
  canvas.fillStyle = of.colour === undefined ? ink : tint(of.colour);
  canvas.fillText(of.words, x, y);
}

function meet([left, top, width, height]: Place, [otherLeft, otherTop, otherWidth, otherHeight]: Place): boolean {
  return left < otherLeft + otherWidth && otherLeft < left + width && top < otherTop + otherHeight && otherTop < top + height;
}

export function series(ground: Ground, of: Drawable): void {
  const { canvas, ratio } = ground;
  const range = between(of, ground.from, ground.to);
  canvas.save();
  canvas.beginPath();
  // One pixel more, so that lines at the ends keep their width; marks may cross the border.
  const over = of.of.kind === "points" || (of.of.symbol ?? "none") !== "none" ? 6 * ratio : ratio;
  canvas.rect(ground.left - over, ground.top - over, ground.width + 2 * over, ground.height + 2 * over);
  canvas.clip();
  canvas.strokeStyle = canvas.fillStyle = tint(of.of.colour);
  // Round joins take most of the drawing time if there are many points.
  canvas.lineJoin = range[1] - range[0] > 500 ? "bevel" : "round";
  canvas.lineWidth = (of.of.width ?? 1.6) * ratio;
  if (of.of.kind === "bars") bars(ground, of, range);
  else if (of.of.kind === "boxes") boxes(ground, of, range);
  else {
    if (of.low !== null && of.high !== null) (of.of.band ? band : intervals)(ground, of, of.low, of.high, range);
    if (of.of.kind !== "points") {
      canvas.setLineDash(dashes(of.of).map((length) => length * ratio));
      canvas.lineCap = dashes(of.of).length ? "butt" : "round";
      line(ground, of, range);
      canvas.setLineDash([]);
      if ((of.of.symbol ?? "none") === "none") alone(ground, of, range);
    }
    const symbol = of.of.symbol ?? (of.of.kind === "points" ? "circle" : "none");
    if (symbol !== "none") symbols(ground, of, symbol, range);
  }
  canvas.restore();
}

/**
 * If several points share a column of pixels, draws the first, lowest, highest and last only; the picture is the same.
 */
function line(ground: Ground, { of, x, y, sorted }: Drawable, [from, to]: [number, number]): void {
  const { canvas } = ground;
  const dense = sorted && to - from > 3 * ground.width;
  const steps = of.kind === "steps";
  let pen = false;
  let before = 0;
  let column = NaN;
  let [least, most, last] = [0, 0, 0];
  const leave = (): void => {
    if (!pen || Number.isNaN(column)) return;
    canvas.lineTo(column, least);
    canvas.lineTo(column, most);
    canvas.lineTo(column, last);
    column = NaN;
  };
  canvas.beginPath();
  for (let at = from; at < to; at++) {
    const value = y[at]!;
    if (value !== value) {
      leave();
      pen = false;
      continue;
    }
    const [right, up] = [ground.x(x[at]!), ground.y(value)];
    if (!pen) {
      canvas.moveTo(right, up);
      pen = true;
    } else if (dense) {
      const here = Math.round(right);
      if (here === column) {
        if (up < least) least = up;
        if (up > most) most = up;
        last = up;
      } else {
        leave();
        if (steps) canvas.lineTo(right, before);
        canvas.lineTo(here, up);
        [column, least, most, last] = [here, up, up, up];
      }
    } else {
      if (steps) canvas.lineTo(right, before);
      canvas.lineTo(right, up);
    }
    before = up;
  }
  leave();
  canvas.stroke();
}

/** A value between two gaps is a line without length, so draw a dot. */
function alone(ground: Ground, { x, y }: Drawable, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  const gap = (at: number): boolean => y[at] === undefined || Number.isNaN(y[at]);
  canvas.beginPath();
  for (let at = from; at < to; at++) {
    if (!gap(at) && gap(at - 1) && gap(at + 1)) shape(canvas, "circle", ground.x(x[at]!), ground.y(y[at]!), DOT * ratio);
  }
  canvas.fill();
}

function band(ground: Ground, { x, y, of }: Drawable, low: Float64Array, high: Float64Array, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  canvas.save();
  canvas.globalAlpha = BAND;
  canvas.fillStyle = tint(of.colour);
  canvas.lineWidth = 2 * DOT * ratio;
  canvas.lineCap = "butt";
  let start = from;
  for (let at = from; at <= to; at++) {
    const known = at < to && y[at]! === y[at]! && low[at]! === low[at]! && high[at]! === high[at]!;
    if (known) continue;
    if (at > start) {
      canvas.beginPath();
      if (at === start + 1) {
        whisker(canvas, ground.x(x[start]!), edge(ground, low[start]!), edge(ground, high[start]!), 0);
        canvas.stroke();
      } else {
        for (let place = start; place < at; place++) canvas.lineTo(ground.x(x[place]!), ground.y(high[place]!));
        for (let place = at - 1; place >= start; place--) canvas.lineTo(ground.x(x[place]!), ground.y(low[place]!));
        canvas.fill();
      }
    }
    start = at + 1;
  }
  canvas.restore();
}

/** If a logarithmic scale cannot show an end, uses the end of the panel. */
function edge(ground: Ground, value: number): number {
  const at = ground.y(value);
  return Number.isFinite(at) ? at : ground.top + ground.height;
}

function intervals(ground: Ground, { x, of }: Drawable, low: Float64Array, high: Float64Array, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  const cap = of.symbol === "none" ? 0 : 3 * ratio;
  canvas.save();
  canvas.lineWidth = (of.symbol === "none" ? (of.width ?? 1) : 1.2) * ratio;
  canvas.beginPath();
  // Merges vertical lines that touch within a column of pixels: a million then draw as fast as a thousand.
  const dense = cap === 0 && to - from > 3 * ground.width;
  let [column, foot, head] = [NaN, 0, 0];
  for (let at = from; at < to; at++) {
    const [bottom, top] = [low[at]!, high[at]!];
    if (bottom !== bottom || top !== top) continue;
    const [right, below, above] = [ground.x(x[at]!), edge(ground, bottom), ground.y(top)];
    if (!dense) {
      whisker(canvas, right, below, above, cap);
      continue;
    }
    const here = Math.round(right);
    if (here === column && above <= foot + 1 && below >= head - 1) {
      [foot, head] = [Math.max(foot, below), Math.min(head, above)];
      continue;
    }
    if (column === column) whisker(canvas, column, foot, head, 0);
    [column, foot, head] = [here, below, above];
  }
  if (column === column) whisker(canvas, column, foot, head, 0);
  canvas.stroke();
  canvas.restore();
}

function whisker(canvas: CanvasRenderingContext2D, x: number, bottom: number, top: number, cap: number): void {
  canvas.moveTo(x, bottom);
  canvas.lineTo(x, top);
  if (cap > 0 && bottom !== top) {
    for (const y of [bottom, top]) {
      canvas.moveTo(x - cap, y);
      canvas.lineTo(x + cap, y);
    }
  }
}

function symbols(ground: Ground, { of, x, y }: Drawable, symbol: Symbol, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  const size = RADIUS * ratio;
  const stroked = of.open === true || symbol === "plus" || symbol === "cross" || symbol === "tick";
  const plain = to - from > MANY && symbol !== "tick";
  if (stroked) canvas.lineWidth = (of.open ? 1.4 : (of.width ?? 1.6)) * ratio;
  canvas.beginPath();
  for (let at = from; at < to; at++) {
    const value = y[at]!;
    if (value !== value) continue;
    const [right, up] = [ground.x(x[at]!), ground.y(value)];
    if (plain) canvas.rect(right - ratio, up - ratio, 2 * ratio, 2 * ratio);
    else shape(canvas, symbol, right, up, of.open ? size * 1.4 : size);
  }
  if (stroked && !plain) canvas.stroke();
  else canvas.fill();
}

/** The canvas calls that a symbol needs. */
export type Pen = Pick<CanvasRenderingContext2D, "moveTo" | "lineTo" | "arc" | "rect" | "closePath">;

export function shape(pen: Pen, symbol: Symbol, x: number, y: number, r: number): void {
  const through = (...points: readonly (readonly [number, number])[]): void => {
    points.forEach(([right, down], at) => (at ? pen.lineTo(x + right * r, y + down * r) : pen.moveTo(x + right * r, y + down * r)));
  };
  if (symbol === "circle") {
    pen.moveTo(x + r, y);
    pen.arc(x, y, r, 0, 2 * Math.PI);
  } else if (symbol === "square") pen.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else if (symbol === "plus" || symbol === "cross") {
    const turned = symbol === "cross" ? 0.8 : 1;
    const other = symbol === "cross" ? 0.8 : 0;
    through([-turned, -other], [turned, other]);
    through([-other, turned], [other, -turned]);
  } else if (symbol === "tick") through([0, -r / 2], [0, r / 2]);
  else if (symbol !== "none") {
    if (symbol === "diamond") through([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
    else if (symbol === "up") through([0, -1.2], [1.15, 0.9], [-1.15, 0.9]);
    else through([0, 1.2], [1.15, -0.9], [-1.15, -0.9]);
    pen.closePath();
  }
}

/** The width in pixels of a slot of bars or boxes, and the offset of its middle from x. */
function slot(ground: Ground, { of, x }: Drawable): [number, number] {
  let closest = Infinity;
  for (let at = 1; at < x.length; at++) {
    const apart = Math.abs(ground.x(x[at]!) - ground.x(x[at - 1]!));
    if (apart > 0 && apart < closest) closest = apart;
  }
  const slots = of.slots ?? 1;
  const room = Number.isFinite(closest) ? closest : ground.width / 4;
  const width = (Math.min(room, 90 * slots * ground.ratio) * 0.84) / slots;
  return [width, ((of.slot ?? 0) - (slots - 1) / 2) * width];
}

function bars(ground: Ground, series: Drawable, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  const [width, beside] = slot(ground, series);
  const zero = Math.min(edge(ground, 0), ground.top + ground.height);
  for (let at = from; at < to; at++) {
    const value = series.y[at]!;
    if (value !== value) continue;
    const middle = ground.x(series.x[at]!) + beside;
    const top = ground.y(value);
    canvas.fillRect(middle - width * 0.46, Math.min(top, zero), width * 0.92, Math.abs(zero - top));
  }
  if (series.low === null || series.high === null) return;
  canvas.strokeStyle = tint("#1f2933");
  canvas.lineWidth = ratio;
  canvas.beginPath();
  for (let at = from; at < to; at++) {
    const [low, high] = [series.low[at]!, series.high[at]!];
    if (low !== low || high !== high) continue;
    whisker(canvas, ground.x(series.x[at]!) + beside, edge(ground, low), ground.y(high), Math.min(3 * ratio, width / 3));
  }
  canvas.stroke();
}

function boxes(ground: Ground, series: Drawable, [from, to]: [number, number]): void {
  const { canvas, ratio } = ground;
  const { x, y, low, high, lower, upper } = series;
  if (low === null || high === null || lower === null || upper === null) return;
  const [width, beside] = slot(ground, series);
  const half = width * 0.4;
  for (let at = from; at < to; at++) {
    const middle = ground.x(x[at]!) + beside;
    const [top, bottom, median] = [ground.y(upper[at]!), edge(ground, lower[at]!), ground.y(y[at]!)];
    if (!Number.isFinite(median)) continue;
    canvas.globalAlpha = 0.35;
    canvas.fillRect(middle - half, top, 2 * half, bottom - top);
    canvas.globalAlpha = 1;
    canvas.lineWidth = ratio;
    canvas.beginPath();
    canvas.rect(middle - half, top, 2 * half, bottom - top);
    whisker(canvas, middle, top, ground.y(high[at]!), half * 0.5);
    whisker(canvas, middle, edge(ground, low[at]!), bottom, half * 0.5);
    canvas.stroke();
    canvas.lineWidth = 2.4 * ratio;
    canvas.beginPath();
    canvas.moveTo(middle - half, median);
    canvas.lineTo(middle + half, median);
    canvas.stroke();
  }
}

/** The middle of each bar or box at x, as an offset in canvas pixels. */
export function beside(ground: Ground, series: Drawable): number {
  return series.of.kind === "bars" || series.of.kind === "boxes" ? slot(ground, series)[1] : 0;
}
