// What is said of a transfer, in the words of `sawtooth capture` (src/sawtooth/capture/verdict.py).

import type { Data, Facts } from "./facts";
import type { Listed } from "./protocol";

const LIMITED: Record<string, string> = {
  sender: "the application had nothing to send",
  receiver_window: "the receiver's window was full: its application reads too slowly, or its buffer is too small",
  congestion_window: "the sender's congestion window was full while the bottleneck's queue was empty",
  path: "the path was full: packets waited in the bottleneck's queue",
  idle: "nothing was in flight",
  unknown: "the limit is unknown, because no round trip had been seen yet",
};
const SHORT: Record<string, string> = {
  sender: "nothing to send",
  receiver_window: "the receiver's window",
  congestion_window: "the congestion window",
  path: "the path",
  idle: "idle",
  unknown: "unknown",
};
const PLACES: Record<string, string> = {
  "data before": "between the sender and the capture point",
  "data after": "between the capture point and the receiver",
  "data both": "on both sides of the capture point",
  acknowledgements: "as acknowledgements, on the way back",
};
/** Share of the time from which on a further limit is worth a word. */
const TOLD = 0.05;
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"]] as const;

/** Pairs of what is asked and the answer. */
export function verdict(of: Data): [string, string][] {
  return [
    ["What did it get?", got(of)],
    ["What limited it?", limited(of)],
    ["What was lost, and where?", lost(of) + marked(of)],
  ];
}

/** What to divide by so that `largest` is easy to read, and the unit then. */
export function scale(largest: number, unit: string): [number, string] {
  const [factor, prefix] = PREFIXES.find(([factor]) => largest >= factor && !(unit === "B" && factor < 1)) ?? [1, ""];
  return [factor, prefix + unit];
}

export function quantity(value: number, unit: string): string {
  const [factor, scaled] = scale(value, unit);
  return `${digits(value / factor, 3)} ${scaled}`;
}

export function rate(bps: number | null): string {
  if (bps === null) return "–";
  const [factor, scaled] = scale(bps, "bit/s");
  return `${digits(bps / factor, 4)} ${scaled}`;
}

/** What limited it for most of the time, and shares of it, the largest first. */
export function limits(of: Data): [string, number][] {
  const seconds = Object.entries(of.limits).filter(([, value]) => value > 0);
  const whole = seconds.reduce((sum, [, value]) => sum + value, 0);
  const shares = seconds.map(([name, value]): [string, number] => [name.replace(/_s$/, ""), value / whole]);
  return shares.sort(([, one], [, other]) => other - one);
}

export function limit(of: Data): string {
  const [first] = limits(of);
  return first === undefined ? "–" : SHORT[first[0]]!;
}

export const percent = (part: number): string => `${Number((100 * part).toPrecision(3))}%`;

/** The capture itself; what it has not, where it has no connection to show. */
export function capture({ facts, count, connections }: Listed, name: string, took: string): string {
  const what = `${name}: ${counted(facts.packets, "packet")}`;
  if (count === 0) return `${what}, and no TCP among them that could be read${others(facts)}.`;
  const listed = connections.length < count ? `, of which the ${connections.length} with the most data are listed` : "";
  return `${what}, ${counted(count, "TCP connection")}${listed}; read in ${took}.`;
}

function others({ not_tcp, unreadable, not_looked_into }: Omit<Facts, "connections">): string {
  const inside = Object.entries(not_looked_into).map(([name, number]) => `${whole(number)} of ${name}`);
  const told = [
    ...(not_tcp > 0 ? [`${whole(not_tcp)} of other protocols${inside.length > 0 ? ` (${inside.join(", ")})` : ""}`] : []),
    ...(unreadable > 0 ? [`${whole(unreadable)} too short or contradictory`] : []),
  ];
  return told.length > 0 ? `: ${told.join(", ")}` : "";
}

export function whole(number: number): string {
  return number.toLocaleString("en-US");
}

function counted(number: number, what: string): string {
  return `${whole(number)} ${what}${number === 1 ? "" : "s"}`;
}

function digits(value: number, most: number): string {
  return value < 1000 - 5 * 10 ** (2 - most) ? String(Number(value.toPrecision(most))) : value.toFixed(0);
}

function got(of: Data): string {
  const { whole: trip } = of.rtt;
  let told = `${quantity(of.acknowledged_bytes, "B")} in ${quantity(of.duration_s, "s")}`;
  if (of.goodput_bps !== null) told += `, ${rate(of.goodput_bps)}`;
  if (trip === null) return `${told}; no round trip was seen.`;
  return `${told}, with a minimum RTT of ${quantity(trip.min_s, "s")} and a median of ${quantity(trip.median_s, "s")}.`;
}

function limited(of: Data): string {
  const [first, ...others_] = limits(of);
  if (first === undefined) return "All data was sent at once, so nothing limited it.";
  const told = `For ${(100 * first[1]).toFixed(0)}% of the time ${LIMITED[first[0]]}`;
  const more = others_.filter(([, part]) => part >= TOLD).map(([name, part]) => `${SHORT[name]} for ${(100 * part).toFixed(0)}%`);
  return more.length > 0 ? `${told}; ${more.join(", ")}.` : `${told}.`;
}

/** What ECN said (RFC 3168, section 6.1), where it said something. */
function marked({ ecn_echoes: echoes, window_reductions: reductions }: Data): string {
  if (echoes === 0) return "";
  return ` ${whole(echoes)} acknowledgements echoed an ECN mark, and ${whole(reductions)} segments reported a reduced window (CWR).`;
}

function lost(of: Data): string {
  const { loss, retransmits: again } = of;
  const sent = `${whole(again)} of ${whole(of.data_packets)} segments were retransmitted`;
  if (loss.rate === null) return `Unknown; ${sent}.`;
  if (loss.lost === 0) return again > 0 ? `Nothing was lost; ${sent}.` : "Nothing was lost or retransmitted.";
  const place = PLACES[loss.where];
  const where = place === undefined ? ", it is unknown where" : ` ${place} (${loss.sure})`;
  const bursts = loss.largest_burst > loss.longest_run ? `, in ${whole(loss.bursts)} bursts` : "";
  const told = `${whole(loss.lost)} of ${whole(loss.segments)} segments, ${percent(loss.rate)}, were lost${where}`;
  return `${told}${bursts}; ${sent}, ${whole(of.timeout_retransmits)} of them after timeouts.`;
}
