// Sliders of quantities: a place between two ends, by ratio, and the text that a scenario file has for it.

import { BDP, loss, lossText, queue, queueText, rate, rateText, span, spanText } from "./units";

export const STEPS = 400;

export interface Slider {
  /** The text at a place from 0 to STEPS. */
  text(place: number): string;
  /** The nearest place; null where the text has none. */
  place(text: string): number | null;
}

/** From `low` to `high` by ratio; `nothing` stands before them, at place 0. */
function byRatio(low: number, high: number, read: (text: string) => number | null, show: (value: number) => string, nothing?: string): Slider {
  const first = nothing === undefined ? 0 : 1;
  return {
    text: (place) => (place < first ? nothing! : show(rounded(low * (high / low) ** ((place - first) / (STEPS - first))))),
    place: (text) => {
      let value: number | null;
      try {
        value = read(text);
      } catch {
        return null;
      }
      if (value === null) return null;
      if (value < low) return first === 1 && value < low / 2 ? 0 : first;
      const share = Math.log(value / low) / Math.log(high / low);
      return Math.round(first + Math.min(1, share) * (STEPS - first));
    },
  };
}

/** Two digits that matter. */
function rounded(value: number): number {
  return Number(value.toPrecision(2));
}

const whole = (value: number): bigint => BigInt(Math.round(value));

export const SLIDERS: Record<string, Slider> = {
  rate: byRatio(100e3, 10e9, (text) => Number(rate(text)), (bps) => rateText(whole(bps))),
  rtt: byRatio(100e3, 1e9, (text) => Number(span(text)), (ns) => spanText(whole(ns))),
  loss: byRatio(1e4, 2e8, (text) => Number(loss(text)), (ppb) => lossText(whole(ppb)), "0%"),
  duration: byRatio(1e9, 120e9, (text) => Number(span(text)), (ns) => spanText(whole(ns))),
  queue: byRatio(
    0.02 * Number(BDP),
    20 * Number(BDP),
    (text) => {
      const found = queue(text);
      return found.unit === "bdp" ? Number(found.amount) : null;
    },
    (parts) => queueText({ unit: "bdp", amount: whole(parts) }),
  ),
};
