/**
 * Form: a figure as JSON. Python writes it (`sawtooth.figures.figure`), or a page makes it from its own results.
 *
 * Numbers are in columns. An unknown value is null in JSON and NaN in a Float64Array, and appears as a gap.
 */

/** Evenly spaced numbers: from, from + step, … */
export interface Even {
  from: number;
  step: number;
  count: number;
}

export type Column = readonly (number | null)[] | Float64Array | Even;

export interface Axis {
  /** The quantity without its unit: "throughput". */
  label: string;
  /** "Mbit/s"; "" if it has no unit. */
  unit: string;
  /** A category's values are 0, 1, … and have `names`. */
  scale: "linear" | "log" | "asinh" | "category";
  /** An asinh scale is linear up to about this value, and logarithmic above. */
  bend?: number;
  names?: readonly string[];
  /** Positions of labels, if they are fixed. */
  ticks?: readonly number[];
  /** Begins a linear scale at zero. */
  zero?: boolean;
  /** Fixed ends, if they do not follow from the data. */
  low?: number;
  high?: number;
  /** A y axis that a button switches between linear and logarithmic. */
  switch?: boolean;
}

export type Symbol = "none" | "circle" | "square" | "diamond" | "up" | "down" | "plus" | "cross" | "tick";

export interface Series {
  /** All series of a figure with this name share one legend entry. */
  name: string;
  /** The name in readouts and CSV, if other series have the same `name`. */
  called?: string;
  /** "#rrggbb"; colours of the palette have a counterpart for dark pages. */
  colour: string;
  /**
   * Bars and boxes are side by side at x: this is the one in `slot` of `slots`. For a box, y is the median, `lower` and
   * `upper` are its edges, `low` and `high` the ends of its whiskers.
   */
  kind: "line" | "steps" | "points" | "bars" | "boxes";
  x: Column;
  y: Column;
  /** Ends of each point's interval, drawn as bars or as a band. */
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
  /** Omits the series from the legend. */
  quiet?: boolean;
  /** The series may exceed the axis, whose range follows from the other series. */
  loose?: boolean;
  /**
   * The readout of a point in place of its y. Only figures that a page makes itself have this, because JSON has no
   * functions.
   */
  said?: (at: number) => string;
}

/** A shaded stretch of x. Its name is an entry of the legend. */
export interface Span {
  from: number;
  to: number;
  name: string;
  colour: string;
}

/** A line across the panel, with a label at its end. */
export interface Mark {
  along: "x" | "y";
  at: number;
  words: string;
  colour?: string;
  /** For a vertical line: puts the label at the bottom, because curves begin high. */
  low?: boolean;
  /** Across x: called with where it is dragged to; only for a page's own figures, for JSON has none. */
  moved?: (at: number) => void;
}

export interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  series: readonly Series[];
  spans?: readonly Span[];
  marks?: readonly Mark[];
  /** Dragging over some height zooms y, too. Shift and drag pans x. The wheel zooms x once the panel has the focus. */
  explored?: boolean;
}

/** A button of the page, beside those that save the figure. */
export interface Button {
  words: string;
  title: string;
  pressed: boolean;
  act: () => void;
}

export interface Figure {
  /** The base name of its files. */
  name: string;
  title: string;
  /** What the figure shows, for readers who cannot see it. */
  sentence: string;
  panels: readonly Panel[];
  /** Puts panels in a row where the width allows. */
  across?: number;
  /** All panels use the same scales. */
  alike?: boolean;
  /** Figures of a group show the same stretch of x, and share the pointer's x. */
  group?: string;
  /** Height of a panel in CSS pixels. */
  height?: number;
  /** Only in figures that the page itself makes: JSON has no functions. */
  button?: Button;
  /** What was run: a line below saved pictures, and the scenario file, which SVG and CSV contain. */
  ran?: { words: string; scenario: string };
  /** The table for the CSV file, if it has more than what is drawn. */
  table?: Readonly<Record<string, readonly (number | string | null)[]>>;
}

/** A column as numbers; a Float64Array is returned as it is. */
export function numbers(column: Column): Float64Array {
  if (column instanceof Float64Array) return column;
  if ("step" in column) {
    return Float64Array.from({ length: column.count }, (_, at) => column.from + at * column.step);
  }
  return Float64Array.from(column as readonly (number | null)[], (value) => value ?? NaN);
}
