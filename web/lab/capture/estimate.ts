// A path to try: what a capture shows of rate, round-trip time and loss, each by one plain measure.

import type { Language } from "../language";
import { data, type Connection } from "./facts";
import type { Curves } from "./protocol";
import { limits, percent, quantity } from "./words";

/** Shorter stretches show the bursts in which acknowledgements come. */
const ROUND_TRIPS = 3;
const LEAST_S = 0.1;
/** Round trips before and after a retransmission in which a hole may stand open. */
const REPAIRED = 1.5;
/** What a frame has beside its segment: Ethernet, IPv4 and TCP. A scenario's rate counts it. */
const HEADERS = 14 + 20 + 20;
const TIMESTAMPS = 12;
/** A queue that stood for this share of the time: the path was full. */
const FULL = 0.25;

export interface Estimate {
  rate: string;
  rtt?: string;
  loss?: string;
  /** By which measures, in sentences. */
  how: string;
}

/** Undefined where nothing was acknowledged or sent. */
export function estimate(connection: Connection, curves: Curves, language: Language): Estimate | undefined {
  const of = data(connection);
  if (of === undefined) return undefined;
  const headers = HEADERS + (connection.handshake.timestamps === false ? 0 : TIMESTAMPS);
  const trip = of.rtt.whole;
  const tripS = trip?.median_s ?? 0;
  const mean = of.goodput_bps ?? 0;
  const found = highest(curves, Math.max(LEAST_S, ROUND_TRIPS * tripS), tripS);
  const higher = found !== undefined && found.bps > mean;
  const bps = ((higher ? found.bps : mean) * (of.mss + headers)) / of.mss;
  if (!(bps >= 1)) return undefined;
  const rate = language.print("rate", rounded(bps));
  const measure =
    higher
      ? `the highest goodput over ${quantity(found.overS, "s")} that begin with no loss being repaired`
      : "the mean goodput, for no stretch of three round trips that begins with no loss being repaired has more";
  const queued = limits(of).find(([name]) => name === "path")?.[1] ?? 0;
  const bound =
    queued >= FULL
      ? `a lower bound: a queue stood for ${(100 * queued).toFixed(0)}% of the time, so it is near the path's rate unless others shared it`
      : "a lower bound: the path may be much faster, for hardly any queue stood";
  const how = [`Rate ${rate}: ${measure}, with headers; ${bound}.`];
  const told: Estimate = { rate, how: "" };
  if (trip !== null && trip.min_s > 0) {
    told.rtt = language.print("span", rounded(trip.min_s * 1e6) * 1000);
    how.push(`Round-trip time ${told.rtt}: the least that was seen.`);
  } else how.push("No round trip was seen: that field stays.");
  if (of.loss.rate !== null) {
    told.loss = language.print("loss", rounded(of.loss.rate * 1e9));
    const { lost, segments } = of.loss;
    const queue = lost > 0 ? "; what a full queue dropped is among them" : "";
    how.push(`Loss ${told.loss}: ${lost} of ${segments} segments (${percent(of.loss.rate)})${queue}.`);
  } else how.push("Losses can't be told: that field stays.");
  return { ...told, how: how.join(" ") };
}

/** The highest mean of intervals in a row that last `leastS` together and begin where no loss was being repaired: what is
 *  acknowledged at once when a hole is filled has arrived before. Undefined without such a stretch.
 */
function highest({ t, goodputBps, retransmits }: Curves, leastS: number, tripS: number): { bps: number; overS: number } | undefined {
  if (t.length < 2) return undefined;
  const length = (t.at(-1)! - t[0]!) / (t.length - 1);
  const many = Math.ceil(leastS / length - 1e-9);
  const near = Math.ceil((REPAIRED * tripS) / length);
  const sums = (of: Float64Array): number[] => {
    let sum = 0;
    return [0, ...Array.from(of, (one) => (sum += one))];
  };
  const [bits, again] = [sums(goodputBps), sums(retransmits)];
  let most = 0;
  for (let from = 0; from + many <= t.length; from += 1) {
    const [before, after] = [Math.max(0, from - near), Math.min(t.length, from + near)];
    const stood = from > 0 && bits[from] === bits[Math.max(0, from - Math.max(1, Math.floor(tripS / length)))];
    if (stood || again[after]! > again[before]!) continue;
    most = Math.max(most, (bits[from + many]! - bits[from]!) / many);
  }
  return most > 0 ? { bps: most, overS: many * length } : undefined;
}

/** Three digits that matter. */
function rounded(value: number): number {
  return Math.round(Number(value.toPrecision(3)));
}
