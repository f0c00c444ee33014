// Sliders of quantities: a position for each value of two digits between two ends, and its text in a scenario file.

import { BDP, type Kind, type Language } from "./language";

/** A slider has at most this many positions, about the pixels of its track. Neighbors differ in their text. */
const MOST_PLACES = 400;

export interface Slider {
  /** The last position; the first is 0. */
  last: number;
  /** The text at a position. */
  text(place: number): string;
  /** The position with exactly this text if there is one, otherwise the nearest; null if the text has none. */
  place(text: string): number | null;
}

interface Quantity {
  low: number;
  high: number;
  read(text: string): number | null;
  show(value: number): string;
  /** One position below the lowest value is zero: "0%". */
  none?: string;
  /** One position above the highest value, the field is empty: without a limit. */
  unlimited?: true;
}

/** Positions by ratio, in values of two digits. */
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

/** The page's sliders, by name. */
export function sliders(language: Language): Record<string, Slider> {
  const of = (kind: Kind, low: number, high: number, ends: Pick<Quantity, "none" | "unlimited"> = {}): Slider =>
    slider({ low, high, read: (text) => language.read(kind, text).amount, show: (value) => language.print(kind, value), ...ends });
  const bdp = (text: string): number | null => {
    const { amount, unit } = language.read("queue", text);
    return unit === "bdp" ? amount : null;
  };
  return {
    rate: of("rate", 100e3, 10e9),
    limit: of("rate", 100e3, 10e9, { unlimited: true }),
    rtt: of("span", 100e3, 1e9),
    loss: of("loss", 1e4, 2e8, { none: "0%" }),
    duration: of("span", 1e9, 120e9),
    queue: slider({ low: 0.02 * BDP, high: 20 * BDP, read: bdp, show: (parts) => language.print("queue", parts) }),
  };
}
