// Formats numbers for the page: a given number of significant digits, and never an exponent.

/** Whole numbers keep all their digits. NaN means unknown. */
export function significant(value: number, digits: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0 || Math.abs(value) >= 10 ** digits) return value.toFixed(0);
  const rounded = Number(value.toPrecision(digits));
  const power = Math.floor(Math.log10(Math.abs(rounded)));
  return rounded.toFixed(Math.min(20, Math.max(0, digits - 1 - power)));
}

/** A duration as in a scenario file, rounded to milliseconds. */
export function milliseconds(ms: number): string {
  return ms < 1e3 ? `${ms} ms` : `${ms / 1e3} s`;
}

/** Units of time: the number of seconds below which each is used, and its length in seconds. */
const UNITS: readonly [number, number, string][] = [
  [1e-3, 1e-6, "µs"],
  [1, 1e-3, "ms"],
  [90, 1, "s"],
  [5_400, 60, "minutes"],
  [172_800, 3_600, "hours"],
  [Infinity, 86_400, "days"],
];

/** A duration in words. */
export function stretch(s: number, digits = 2): string {
  const [, size, unit] = UNITS.find(([below]) => s < below)!;
  return `${significant(s / size, digits)} ${unit}`;
}
