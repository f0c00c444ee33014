/** Columns: a series with its numbers ready to draw, search and measure. */
import { numbers, type Series } from "./form";

export interface Drawable {
  of: Series;
  x: Float64Array;
  y: Float64Array;
  low: Float64Array | null;
  high: Float64Array | null;
  lower: Float64Array | null;
  upper: Float64Array | null;
  /** x never decreases, so it can be searched. */
  sorted: boolean;
}

export function drawable(of: Series): Drawable {
  const x = numbers(of.x);
  const optional = (column: Series["low"]): Float64Array | null => (column === undefined ? null : numbers(column));
  return {
    of,
    x,
    y: numbers(of.y),
    low: optional(of.low),
    high: optional(of.high),
    lower: optional(of.lower),
    upper: optional(of.upper),
    sorted: rises(x),
  };
}

function rises(x: Float64Array): boolean {
  for (let at = 1; at < x.length; at++) if (!(x[at]! >= x[at - 1]!)) return false;
  return true;
}

/** The first index in a sorted column whose x is at or above `value`. */
export function lowest(x: Float64Array, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Indexes [from, to) to draw between two x, with one neighbor on both sides. */
export function between(series: Drawable, from: number, to: number): [number, number] {
  if (!series.sorted) return [0, series.x.length];
  return [Math.max(0, lowest(series.x, from) - 1), Math.min(series.x.length, lowest(series.x, to) + 2)];
}
