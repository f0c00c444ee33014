// Sliders of quantities: a place for each value of two digits between two ends, and the text that a scenario file has for it.

import { BDP, loss, lossText, queue, queueText, rate, rateText, span, spanText } from "./units";

/** At most so many places a slider has, about the pixels of its track; neighbours differ in their text. */
const MOST_PLACES = 400;

export interface Slider {
  /** The last place; the first one is 0. */
  last: number;
  /** The text at a place. */
  text(place: number): string;
  /** The nearest place, whose text is this one wherever there is such a place; null where the text has none. */
  place(text: string): number | null;
}

interface Quantity {
  low: number;
  high: number;
  read(text: string): number | null;
  show(value: number): string;
  /** Before the lowest value stands none of it: "0%". */
  none?: string;
  /** After the highest value the field is empty: without a limit. */
  unlimited?: true;
}

/** By ratio, in values of two digits. */
function slider({ low, high, read, show, none, unlimited }: Quantity): Slider {
  const wanted = Array.from({ length: MOST_PLACES + 1 }, (_, step) => Number((low * (high / low) ** (step / MOST_PLACES)).toPrecision(2)));
  const values = [...new Set(wanted)];
  const texts = [...(none === undefined ? [] : [none]), ...values.map(show), ...(unlimited ? [""] : [])];
  const first = none === undefined ? 0 : 1;
  return {
    last: texts.length - 1,
    text: (place) => texts[place]!,
    place: (text) => {
      const same = texts.indexOf(text);
      if (same >= 0) return same;
      let value: number | null;
      try {
        value = read(text);
      } catch {
        return null;
      }
      if (value === null) return null;
      if (value < low / 2 && first === 1) return 0;
      const far = (one: number): number => Math.abs(Math.log(one / value!));
      return first + values.reduce((nearest, one, at) => (far(one) < far(values[nearest]!) ? at : nearest), 0);
    },
  };
}

const whole = (value: number): bigint => BigInt(Math.round(value));

const RATE: Quantity = { low: 100e3, high: 10e9, read: (text) => Number(rate(text)), show: (bps) => rateText(whole(bps)) };
const PARTS = Number(BDP);

export const SLIDERS: Record<string, Slider> = {
  rate: slider(RATE),
  limit: slider({ ...RATE, unlimited: true }),
  rtt: slider({ low: 100e3, high: 1e9, read: (text) => Number(span(text)), show: (ns) => spanText(whole(ns)) }),
  loss: slider({ low: 1e4, high: 2e8, read: (text) => Number(loss(text)), show: (ppb) => lossText(whole(ppb)), none: "0%" }),
  duration: slider({ low: 1e9, high: 120e9, read: (text) => Number(span(text)), show: (ns) => spanText(whole(ns)) }),
  queue: slider({
    low: 0.02 * PARTS,
    high: 20 * PARTS,
    read: (text) => {
      const found = queue(text);
      return found.unit === "bdp" ? Number(found.amount) : null;
    },
    show: (parts) => queueText({ unit: "bdp", amount: whole(parts) }),
  }),
};
