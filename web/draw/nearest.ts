/** Nearest: finds the points of a panel's series that the pointer refers to. */
import { between, lowest, type Drawable } from "./columns";
import { beside, type Ground } from "./strokes";

export interface Hit {
  series: Drawable;
  at: number;
  /** In canvas pixels. */
  x: number;
  y: number;
}

/** The largest distance from the pointer, in CSS pixels, at which a point is still selected. */
const REACH = 26;

/**
 * `x` and `y` are in canvas pixels; without `y`, selects what is at x. Lines and bars are selected by x, points by
 * distance.
 */
export function nearest(ground: Ground, series: readonly Drawable[], x: number, y: number | null): Hit[] {
  const found: Hit[] = [];
  let closest: [number, Hit] | null = null;
  const reach = REACH * ground.ratio;
  for (const one of series) {
    const hit = along(ground, one, x);
    if (one.of.kind !== "points") {
      if (hit !== null) found.push(hit);
      continue;
    }
    if (y === null) {
      if (hit !== null && Math.abs(hit.x - x) < 3 * ground.ratio) found.push(hit);
      continue;
    }
    const near = around(ground, one, x, y, reach);
    // What is drawn last covers the others.
    if (near !== null && (closest === null || near[0] <= closest[0])) closest = near;
  }
  // Prefers a point at the place of the line, or directly under the pointer.
  if (closest !== null && (found.length === 0 || closest[0] < reach / 2)) found.push(closest[1]);
  return found;
}

function hitAt(ground: Ground, series: Drawable, at: number): Hit {
  return { series, at, x: ground.x(series.x[at]!) + beside(ground, series), y: ground.y(series.y[at]!) };
}

/** The index in a line nearest to x, if the line reaches x. */
function along(ground: Ground, series: Drawable, x: number): Hit | null {
  let best = -1;
  let least = Infinity;
  const consider = (at: number): void => {
    const value = series.y[at];
    if (value === undefined || value !== value) return;
    const away = Math.abs(ground.x(series.x[at]!) - x);
    if (away < least) [least, best] = [away, at];
  };
  if (series.sorted && series.x.length > 64) {
    const ratio = (x - ground.left) / ground.width;
    const near = lowest(series.x, inverse(ground, ratio));
    for (let at = near - 2; at <= near + 2; at++) consider(at);
  } else for (let at = 0; at < series.x.length; at++) consider(at);
  if (best < 0) return null;
  const first = ground.x(series.x[0]!);
  const last = ground.x(series.x[series.x.length - 1]!);
  const within = x >= Math.min(first, last) - 2 * ground.ratio && x <= Math.max(first, last) + 2 * ground.ratio;
  return within || least < REACH * ground.ratio ? hitAt(ground, series, best) : null;
}

/** The x at this fraction of the panel's width. */
function inverse(ground: Ground, share: number): number {
  const middle = ground.x(Math.sqrt(Math.max(0, ground.from * ground.to)));
  const linear = ground.from <= 0 || Math.abs((middle - ground.left) / ground.width - 0.5) > 1e-3;
  return linear ? ground.from + share * (ground.to - ground.from) : ground.from * (ground.to / ground.from) ** share;
}

function around(ground: Ground, series: Drawable, x: number, y: number, reach: number): [number, Hit] | null {
  let best = -1;
  let least = reach;
  const { low, high } = series;
  const beyond = (side: number): number => inverse(ground, (x + side * reach - ground.left) / ground.width);
  const [from, to] = between(series, beyond(-1), beyond(1));
  for (let at = from; at < to; at++) {
    const right = Math.abs(ground.x(series.x[at]!) - x);
    if (right > least) continue;
    // The distance to a vertical line is that to its nearest end or point.
    const lies = series.of.symbol === "none" && low !== null && high !== null;
    const down = lies ? Math.max(0, ground.y(high[at]!) - y, y - ground.y(low[at]!)) : ground.y(series.y[at]!) - y;
    const away = Math.hypot(right, down);
    if (away < least) [least, best] = [away, at];
  }
  return best < 0 ? null : [least, hitAt(ground, series, best)];
}
