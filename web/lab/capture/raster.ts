// Thinning: of very many segments what a picture of so many places can show, and all where they are few.

import type { Points } from "./protocol";

/** Bars up to so many are drawn as they are. */
const FEW = 3_000;
/** Places within which one mark is enough. */
const CELL = 5;

/** A stretch of time and of numbers, and into how many places it is divided. */
export interface Grid {
  from: number;
  to: number;
  low: number;
  high: number;
  columns: number;
  rows: number;
}

/** The rows of `t`, which ascends, within from … to, and one more at each end: [first, after the last]. */
export function within(t: Float64Array, from: number, to: number): [number, number] {
  return [Math.max(0, lowest(t, (one) => one >= from) - 1), Math.min(t.length, lowest(t, (one) => one > to) + 1)];
}

/** Bars from `low` to `high`, each as two points and a gap. `every`: they were few enough. */
export function bars(grid: Grid, t: Float64Array, low: Float64Array, high: Float64Array, rows: ArrayLike<number>): Points & { every: boolean } {
  const [x, y]: number[][] = [[], []];
  const bar = (at: number, from: number, to: number): void => {
    x!.push(at, at, at);
    y!.push(from, to, NaN);
  };
  const every = rows.length <= FEW;
  if (every) {
    for (let at = 0; at < rows.length; at += 1) bar(t[rows[at]!]!, low[rows[at]!]!, high[rows[at]!]!);
  } else {
    const taken = new Uint8Array(grid.columns * grid.rows);
    for (let at = 0; at < rows.length; at += 1) {
      const row = rows[at]!;
      const begin = place(grid, t[row]!) * grid.rows;
      taken.fill(1, begin + level(grid, low[row]!), begin + level(grid, high[row]!) + 1);
    }
    const height = (grid.high - grid.low) / grid.rows;
    for (let column = 0; column < grid.columns; column += 1) {
      const begin = column * grid.rows;
      const middle = grid.from + ((column + 0.5) / grid.columns) * (grid.to - grid.from);
      for (let from = 0; from < grid.rows; ) {
        if (taken[begin + from] === 0) {
          from += 1;
          continue;
        }
        let to = from;
        while (to < grid.rows && taken[begin + to] === 1) to += 1;
        bar(middle, grid.low + from * height, grid.low + to * height);
        from = to;
      }
    }
  }
  return { x: Float64Array.from(x!), y: Float64Array.from(y!), every };
}

/** A line: of each column its least and its most, in their order. */
export function line(grid: Grid, t: Float64Array, value: Float64Array): Points {
  const [first, last] = within(t, grid.from, grid.to);
  if (last - first <= 2 * grid.columns) return { x: t.slice(first, last), y: value.slice(first, last) };
  const kept: number[] = [];
  for (let at = first; at < last; ) {
    const column = place(grid, t[at]!);
    let [least, most] = [at, at];
    for (; at < last && place(grid, t[at]!) === column; at += 1) {
      if (value[at]! < value[least]!) least = at;
      if (value[at]! >= value[most]!) most = at;
    }
    kept.push(Math.min(least, most));
    if (least !== most) kept.push(Math.max(least, most));
  }
  return { x: Float64Array.from(kept, (at) => t[at]!), y: Float64Array.from(kept, (at) => value[at]!) };
}

/** Marks in the middle of bars: one of those that would lie upon each other. */
export function marks(grid: Grid, t: Float64Array, low: Float64Array, high: Float64Array, rows: readonly number[]): Points {
  const middle = (row: number): number => (low[row]! + high[row]!) / 2;
  const seen = new Set<number>();
  const across = Math.ceil(grid.columns / CELL) + 1;
  const kept = rows.filter((row) => {
    const cell = Math.floor(level(grid, middle(row)) / CELL) * across + Math.floor(place(grid, t[row]!) / CELL);
    return !seen.has(cell) && seen.add(cell);
  });
  return { x: Float64Array.from(kept, (row) => t[row]!), y: Float64Array.from(kept, middle) };
}

/** The first row from which on it `is` so. */
function lowest(t: Float64Array, is: (time: number) => boolean): number {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(t[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function place({ from, to, columns }: Grid, time: number): number {
  return clamped(Math.floor(((time - from) / (to - from)) * columns), columns);
}

function level({ low, high, rows }: Grid, value: number): number {
  return clamped(Math.floor(((value - low) / (high - low)) * rows), rows);
}

function clamped(at: number, count: number): number {
  return Math.min(count - 1, Math.max(0, at));
}
