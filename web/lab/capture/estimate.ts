// The path behind a connection, as the core estimates it for `sawtooth whatif` too (crates/capture/src/path). The words
// are the core's; the fields are filled as `sawtooth whatif --scenario` writes them.

import type { Language } from "../language";

/** One quantity with its 90% interval. A bound has only one measured end. */
interface Estimated {
  value: number;
  low: number;
  high: number;
  how: string;
  bound: "" | "at least" | "at most";
}

/** Rates in bit/s of frames, times in s, the queue in packets, losses as shares, the window in bytes. */
interface Path {
  rate: Estimated;
  rtt: Estimated;
  queue: Estimated;
  loss: Estimated;
  burst: Estimated;
  ack_loss: Estimated;
  window: Estimated | null;
  cannot_tell: string[];
}

interface Refused {
  code: string;
  message: string;
  fix: string;
}

type Result<A> = { Ok: A; Err?: undefined } | { Ok?: undefined; Err: Refused };

/** The core's answer about a connection. */
export type Shown = Result<{ path: Result<Path> }>;

/** Fields of a scenario. */
export interface Estimate {
  path: { rate: string; rtt: string; queue: string; loss: string; ack_loss: string };
  receiveBuffer?: string;
  /** The rate is only a lower bound. */
  open: boolean;
}

/** The share of a receive buffer that becomes window at full segments on Linux (src/sawtooth/whatif/replay.py). */
const WINDOW_SHARE = 162 / 256;
/** Longer bursts of losses are not chance. */
const BURSTY = 1.05;

/** The description, and the path if there is one. */
export function estimate(shown: Shown, language: Language): { how: string; path?: Estimate } {
  const refused = shown.Err ?? shown.Ok.path.Err;
  if (refused !== undefined) return { how: `No path is estimated: ${refused.message}. To get one: ${refused.fix}.` };
  const found = shown.Ok!.path.Ok!;
  const { rate, rtt, queue, loss, burst, ack_loss, window } = found;
  const sentences = [
    quantity("Rate", rate, bits),
    quantity("Base RTT", rtt, seconds),
    quantity("Queue", queue, (packets) => `${digits(packets)} packets`),
    quantity("Random loss", loss, share),
    quantity("ACK loss", ack_loss, share),
    ...(window === null ? [] : [quantity("Window", window, (bytes) => `${digits(bytes / 1024)} KiB`)]),
    ...found.cannot_tell.map((open) => `Cannot tell: ${open}.`),
  ];
  if (burst.value > BURSTY) sentences.push(`Losses come in bursts of ${burst.value.toFixed(2)} packets; here each packet is lost independently.`);
  const path: Estimate = {
    path: {
      rate: language.print("rate", rate.value),
      rtt: language.print("span", Math.round(rtt.value * 1e6) * 1000),
      queue: `${Math.max(1, Math.round(queue.value))} packets`,
      loss: language.print("loss", loss.value * 1e9),
      ack_loss: language.print("loss", ack_loss.value * 1e9),
    },
    open: rate.bound === "at least",
  };
  if (window !== null) path.receiveBuffer = language.print("size", Math.min(2 ** 30, Math.max(4096, window.value / WINDOW_SHARE)));
  return { how: sentences.join(" "), path };
}

/** As `sawtooth whatif` prints it (src/sawtooth/whatif/text.py). */
function quantity(name: string, { value, low, high, how, bound }: Estimated, shown: (value: number) => string): string {
  let figure = low === high ? shown(value) : `${shown(value)} (${shown(low)} … ${shown(high)})`;
  if (bound === "at least") figure = `at least ${shown(low)} (tried up to ${shown(high)})`;
  if (bound === "at most") figure = `at most ${shown(high)} (tried from ${shown(low)})`;
  return `${name} ${figure}: ${how}.`;
}

const RATES = [[1e12, "Tbit/s"], [1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]] as const;

function bits(bps: number): string {
  const [scale, unit] = RATES.find(([scale]) => bps >= scale) ?? RATES.at(-1)!;
  return `${digits(bps / scale)} ${unit}`;
}

function seconds(s: number): string {
  if (s >= 1) return `${digits(s)} s`;
  return s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} us`;
}

const share = (part: number): string => `${Number((part * 100).toPrecision(part < 0.1 ? 2 : 3))}%`;
const digits = (value: number): string => (value >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4))));
