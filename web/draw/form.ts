/** Form: the figure as JSON. Python writes it (`sawtooth.figures.web_figure`), or a page makes it of what it computes.
 *
 * Numbers are in columns. A value that is not known is null in JSON and NaN in a Float64Array: a gap.
 */

/** Numbers that lie evenly: from, from + step, … */
export interface Even {
  from: number;
  step: number;
  count: number;
}

export type Column = readonly (number | null)[] | Float64Array | Even;

export interface Axis {
  /** What it is, without its unit: "throughput". */
  label: string;
  /** "Mbit/s"; "" where there is none. */
  unit: string;
  /** A category's values are 0, 1, … and have `names`. */
  scale: "linear" | "log" | "asinh" | "category";
  /** An asinh scale is linear up to about here, and logarithmic above. */
  bend?: number;
  names?: readonly string[];
  /** Where labels stand, if not anywhere. */
  ticks?: readonly number[];
  /** A linear scale that begins at zero. */
  zero?: boolean;
  /** Ends, where they do not follow from what is drawn. */
  low?: number;
  high?: number;
  /** A y that a button makes logarithmic, and linear again. */
  switch?: boolean;
}

export type Symbol = "none" | "circle" | "square" | "diamond" | "up" | "down" | "plus" | "cross" | "tick";

export interface Series {
  /** One entry of the legend for all series of a figure with this name. */
  name: string;
  /** What it is called where it is pointed at, and in CSV, where others have its name. */
  called?: string;
  /** "#rrggbb"; one of the palette has a counterpart for dark pages. */
  colour: string;
  /** bars and boxes stand side by side in the `slot` of so many `slots` at x. A box: y is its median, `lower` and
   *  `upper` its edges, `low` and `high` the ends of its whiskers. */
  kind: "line" | "steps" | "points" | "bars" | "boxes";
  x: Column;
  y: Column;
  /** Ends of each point's interval: bars, or a band. */
  low?: Column;
  high?: Column;
  band?: boolean;
  lower?: Column;
  upper?: Column;
  dash?: "solid" | "dashed" | "dotted" | "dashdot";
  symbol?: Symbol;
  open?: boolean;
  /** CSS pixels. */
  width?: number;
  slot?: number;
  slots?: number;
  /** Not in the legend. */
  quiet?: boolean;
  /** It may lie above what the axis shows, which follows from the others. */
  loose?: boolean;
  /** What is read out of a point in place of its y; of a page's own figures, for JSON has none. */
  said?: (at: number) => string;
}

/** A stretch of x that is shaded. Its name is an entry of the legend. */
export interface Span {
  from: number;
  to: number;
  name: string;
  colour: string;
}

/** A line across the panel, with a word at its end. */
export interface Mark {
  along: "x" | "y";
  at: number;
  words: string;
  colour?: string;
  /** Across x: the word stands at the foot, where curves begin high. */
  low?: boolean;
}

export interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  series: readonly Series[];
  spans?: readonly Span[];
  marks?: readonly Mark[];
  /** A drag over some height zooms y, too; Shift and a drag move x; the wheel zooms x, once the panel has the focus. */
  explored?: boolean;
}

export interface Figure {
  /** What its files are called. */
  name: string;
  title: string;
  /** What is to be seen, for those who do not see it. */
  sentence: string;
  panels: readonly Panel[];
  /** Panels in a row where there is room. */
  across?: number;
  /** Panels have the same scales. */
  alike?: boolean;
  /** Figures of a group show the same stretch of x, and the same x under the pointer. */
  group?: string;
  /** Of a panel, in CSS pixels. */
  height?: number;
  /** What it is drawn from, where that is more than what is drawn: for its CSV. */
  table?: Readonly<Record<string, readonly (number | string | null)[]>>;
}

/** A column as numbers; a Float64Array is taken as it is. */
export function numbers(column: Column): Float64Array {
  if (column instanceof Float64Array) return column;
  if ("step" in column) {
    return Float64Array.from({ length: column.count }, (_, at) => column.from + at * column.step);
  }
  return Float64Array.from(column as readonly (number | null)[], (value) => value ?? NaN);
}
