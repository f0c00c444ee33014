/** Scales: the visible range of an axis, and the positions and texts of its labels. */
import type { Axis } from "./form";
import { between, type Drawable } from "./columns";

export type Ends = [number, number];

/** The smallest and largest value drawn; [∞, -∞] if there is none. */
export class Extent {
  low = Infinity;
  high = -Infinity;

  constructor(private readonly positive: boolean) {}

  take(value: number): void {
    if (this.positive && value <= 0) return;
    if (value < this.low) this.low = value;
    if (value > this.high) this.high = value;
  }
}

/** The ends of an axis around the data. `roomy`: leaves room beside marks at the ends. */
export function ends(axis: Axis, extent: Extent, roomy: boolean): Ends {
  if (axis.scale === "category") return [-0.5, Math.max(1, axis.names?.length ?? 1) - 0.5];
  let { low, high } = extent;
  if (axis.scale === "log") {
    if (!(low <= high)) [low, high] = [1, 10];
    const factor = low === high ? 2 : roomy ? (high / low) ** 0.04 : 1;
    return [axis.low ?? low / factor, axis.high ?? high * factor];
  }
  if (!(low <= high)) [low, high] = [0, 1];
  if (axis.scale === "asinh") return [axis.low ?? Math.min(0, low), axis.high ?? (high > low ? high * 1.2 : low + bend(axis))];
  if (axis.zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) / 10, high + Math.abs(high) / 10];
  const room = roomy ? 0.04 * (high - low) : 0;
  const below = axis.zero && low === 0 ? 0 : low - room;
  const above = axis.zero && high === 0 ? 0 : high + room;
  return [axis.low ?? below, axis.high ?? above];
}

/** The value at which an asinh scale turns from linear to logarithmic. */
export function bend(axis: Axis): number {
  return axis.bend ?? 1;
}

/** The range of a series in y between two x. */
export function measure(series: Drawable, from: number, to: number, extent: Extent): void {
  const { x, y, low, high } = series;
  const [first, last] = between(series, from, to);
  for (let at = first; at < last; at++) {
    const here = x[at]!;
    if (here < from || here > to) continue;
    const value = y[at]!;
    extent.take(value);
    if (low !== null) extent.take(low[at]!);
    if (high !== null) extent.take(high[at]!);
  }
  if (series.of.kind === "bars") extent.take(0);
}

/** Positions of labels on an axis of `pixels` pixels, at least `space` apart. */
export function ticks(axis: Axis, [low, high]: Ends, pixels: number, space: number): number[] {
  const most = Math.max(2, Math.floor(pixels / space));
  if (axis.scale === "category") {
    const names = axis.names?.length ?? 0;
    const every = Math.ceil(names / most);
    return Array.from({ length: Math.ceil(names / every) || 0 }, (_, at) => at * every);
  }
  if (axis.ticks !== undefined) return apart(axis, axis.ticks.filter((at) => at >= low && at <= high), [low, high], pixels, space);
  if (axis.scale === "log" && high / low > 5) {
    const found: number[] = [];
    const decades = Math.log10(high / low);
    const within = decades * 3 <= most ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / most));
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      if (power % every) continue;
      for (const factor of within) {
        const at = Number(`${factor}e${power}`);
        if (at >= low * 0.9999 && at <= high * 1.0001) found.push(at);
      }
    }
    return found;
  }
  if (axis.scale === "asinh") {
    const decades = Math.max(1, Math.ceil(Math.log10(high / bend(axis))));
    const every = Math.max(1, Math.ceil(decades / (most - 1)));
    const found = low <= 0 ? [0] : [];
    for (let power = Math.ceil(Math.log10(bend(axis))); power <= Math.floor(Math.log10(high)); power += every) found.push(Number(`1e${power}`));
    return found;
  }
  const rough = (high - low) / most;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.9999) ?? rough;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Those labels in `at` that do not overlap. */
function apart(axis: Axis, at: readonly number[], [low, high]: Ends, pixels: number, space: number): number[] {
  const place = (value: number): number =>
    axis.scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const found: number[] = [];
  let last = -Infinity;
  for (const value of [...at].sort((a, b) => a - b)) {
    const here = place(value) * pixels;
    if (here - last >= space * 0.8) {
      found.push(value);
      last = here;
    }
  }
  return found;
}

const THOUSANDS: readonly [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** A label with as few characters as are needed. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e4) {
    for (const [unit, letter] of THOUSANDS) {
      if (size >= unit) return `${Number((value / unit).toPrecision(4))}${letter}`.replace("-", "−");
    }
  }
  if (size > 0 && size < 1e-4) return value.toExponential().replace("-", "−");
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

/** A value in a readout: four digits, or a whole number. */
export function said(value: number): string {
  if (Number.isNaN(value)) return "–";
  const digits = Number.isInteger(value) || Math.abs(value) >= 1e4 ? 0 : undefined;
  const rounded = digits === 0 ? Math.round(value) : Number(value.toPrecision(4));
  if (rounded !== 0 && Math.abs(rounded) < 1e-4) return rounded.toExponential().replace("-", "−");
  return rounded.toLocaleString("en", { maximumFractionDigits: 10 }).replace("-", "−");
}

export function withUnit(text: string, unit: string): string {
  return unit === "" ? text : unit === "%" ? `${text}%` : `${text} ${unit}`;
}

/** The label of an axis: "throughput, Mbit/s". An axis without a label has its title elsewhere. */
export function title(axis: Axis): string {
  if (axis.label === "") return "";
  return [axis.label, axis.unit].filter((part) => part !== "").join(", ");
}
