// Quantities as scenario files have them: the grammar, limits and words of src/sawtooth/scenario/units.py, to which
// tests/test_lab_compiler.py holds this. Exact: whole numbers of the finest unit, never a rounded one.

import { InputError } from "./problem";

const NUMBER = String.raw`[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?`;
const QUANTITY = new RegExp(String.raw`^\s*(${NUMBER})(?![0-9.,_]|[eE][+-]?[0-9])\s*(\S.*?)?\s*$`, "su");

/** A number as a fraction. */
interface Fraction {
  over: bigint;
  under: bigint;
}
type Units = readonly (readonly [name: string, scale: bigint])[];

const RATES: Units = [["bit/s", 1n], ["kbit/s", 10n ** 3n], ["Mbit/s", 10n ** 6n], ["Gbit/s", 10n ** 9n], ["Tbit/s", 10n ** 12n]];
const TIMES: Units = [["ns", 1n], ["us", 10n ** 3n], ["ms", 10n ** 6n], ["s", 10n ** 9n]];
const SIZES: Units = [["bytes", 1n], ["kB", 10n ** 3n], ["MB", 10n ** 6n], ["GB", 10n ** 9n], ["TB", 10n ** 12n]];
const BINARY: Units = [["KiB", 1n << 10n], ["MiB", 1n << 20n], ["GiB", 1n << 30n], ["TiB", 1n << 40n]];

const SECOND = 10n ** 9n;
const TIMES_READ = new Map<string, bigint>([
  ...TIMES,
  ...["µs", "μs", "usec", "usecs"].map((unit) => [unit, 10n ** 3n] as const),
  ...["msec", "msecs"].map((unit) => [unit, 10n ** 6n] as const),
  ...["sec", "secs", "second", "seconds"].map((unit) => [unit, SECOND] as const),
  ["min", 60n * SECOND],
  ["h", 3600n * SECOND],
  ["d", 86400n * SECOND],
  ["days", 86400n * SECOND],
]);
const SIZES_READ = new Map<string, bigint>([
  ...[...SIZES, ...BINARY].map(([name, scale]) => [name.toLowerCase(), scale] as const),
  ["b", 1n],
  ["byte", 1n],
]);
const RATES_READ = new Map<string, bigint>(
  RATES.flatMap(([name, scale]) => [
    [name.toLowerCase(), scale] as const,
    [name.toLowerCase().replace(/\/s$/, ""), scale] as const,
  ]),
);

/** What a rate, a time, a size and a loss are read to: bit/s, ns, bytes, parts per billion. */
export type Queue = { unit: "packets" | "bytes" | "ns"; amount: bigint } | { unit: "bdp"; amount: bigint };

export function rate(text: string): bigint {
  const { number, unit } = split(text, "a rate", "50 Mbit/s", "Mbit/s");
  const lower = unit.toLowerCase();
  const scale = RATES_READ.get(lower);
  if (scale === undefined) {
    let fix = oneOf(RATES.map(([name]) => name));
    if (["bps", "kbps", "mbps", "gbps", "tbps"].includes(lower)) {
      const prefix = lower.replace(/bps$/, "");
      const meant = prefix === "k" ? prefix : prefix.toUpperCase();
      fix = `tc reads ${unit} as bytes a second, others as bits: write ${meant}bit/s`;
    }
    throw new InputError("unknown-unit", `"${shown(unit)}" is not a unit of rate`, fix);
  }
  const bps = whole(number, scale, "a rate", "1 bit/s", text);
  if (bps < 1n || bps > 10n * 10n ** 12n) {
    throw new InputError("out-of-range", `"${shown(text)}" is outside 1 bit/s … 10 Tbit/s`, 'write e.g. "50 Mbit/s"');
  }
  return bps;
}

export function span(text: string): bigint {
  const { number, unit } = split(text, "a length of time", "20 ms", "s", "ms");
  const scale = TIMES_READ.get(unit.toLowerCase());
  if (scale === undefined) {
    const fix = oneOf(["ns", "us", "ms", "s", "min", "h", "d"]);
    throw new InputError("unknown-unit", `"${shown(unit)}" is not a unit of time`, fix);
  }
  const ns = whole(number, scale, "time", "1 ns", text);
  if (ns < 0n || ns > 30n * 86400n * SECOND) {
    throw new InputError("out-of-range", `"${shown(text)}" is outside 0 s … 30 d`, 'write e.g. "20 ms"');
  }
  return ns;
}

export function size(text: string): bigint {
  const { number, unit } = split(text, "a size", "64 MiB", "bytes");
  const scale = SIZES_READ.get(unit.toLowerCase());
  if (scale === undefined) {
    const fix = oneOf([...SIZES, ...BINARY].map(([name]) => name));
    throw new InputError("unknown-unit", `"${shown(unit)}" is not a unit of size`, fix);
  }
  const bytes = whole(number, scale, "a size", "1 byte", text);
  if (bytes < 0n || bytes > 10n ** 18n) {
    throw new InputError("out-of-range", `"${shown(text)}" is outside 0 bytes … 1000000 TB`, 'write e.g. "64 MiB"');
  }
  return bytes;
}

export function loss(text: string): bigint {
  const { number, unit } = split(text, "a loss", "1%", "%");
  if (!["%", "percent"].includes(unit.toLowerCase())) {
    throw new InputError("unknown-unit", `"${shown(unit)}" is not a unit of loss`, "write it in percent, like 1%");
  }
  const ppb = whole(number, 10n ** 7n, "a loss", "1e-7 %", text);
  if (ppb < 0n || ppb > 10n ** 9n) {
    throw new InputError("out-of-range", `"${shown(text)}" is outside 0% … 100%`, 'write e.g. "1%"');
  }
  return ppb;
}

/** The amount of a bdp is in billionths. */
export function queue(text: string): Queue {
  const { number, unit } = split(text, "a queue", "1000 packets", "packets");
  const lower = unit.toLowerCase();
  const [bytes, ns] = [SIZES_READ.get(lower), TIMES_READ.get(lower)];
  let found: Queue;
  if (["p", "packet", "packets", "pkt", "pkts"].includes(lower)) {
    found = { unit: "packets", amount: whole(number, 1n, "a queue", "1 packet", text) };
  } else if (lower === "bdp") {
    found = { unit: "bdp", amount: whole(number, BDP, "a queue", "1e-9 bdp", text) };
  } else if (bytes !== undefined) {
    found = { unit: "bytes", amount: whole(number, bytes, "a queue", "1 byte", text) };
  } else if (ns !== undefined) {
    found = { unit: "ns", amount: whole(number, ns, "a queue", "1 ns", text) };
  } else {
    const fix = oneOf(["packets", "bytes", "KiB", "MiB", "ms", "us", "bdp"]);
    throw new InputError("unknown-unit", `"${shown(unit)}" is not a unit of a queue`, fix);
  }
  if (found.amount === 0n) {
    const fix = 'the packet in transmission does not wait; the smallest queue is "1 packet"';
    throw new InputError("zero-queue", "a queue of zero would drop every packet that meets another", fix);
  }
  const most = { packets: 10n ** 9n, bytes: 1n << 40n, ns: 3600n * SECOND, bdp: 10n ** 6n * BDP }[found.unit];
  if (found.amount < 0n || found.amount > most) {
    const limits = '"1 packet" … "1000000000 packets", "1 TiB", "3600 s" or "1000000 bdp"';
    throw new InputError("out-of-range", `"${shown(text)}" is outside what a queue may be`, `choose within ${limits}`);
  }
  return found;
}

/** Parts of a bandwidth-delay product. */
export const BDP = 10n ** 9n;

export const rateText = (bps: bigint): string => print(bps, RATES);
export const spanText = (ns: bigint): string => (ns === 0n ? "0 s" : print(ns, TIMES));
export const lossText = (ppb: bigint): string => `${decimal({ over: ppb, under: 10n ** 7n })}%`;

export function sizeText(bytes: bigint): string {
  if (bytes !== 0n && bytes % 1024n === 0n) {
    const [name, scale] = BINARY.filter(([, scale]) => bytes % scale === 0n).at(-1) ?? BINARY[0]!;
    return `${bytes / scale} ${name}`;
  }
  if (bytes !== 0n && bytes % 1000n === 0n) return print(bytes, SIZES);
  return bytes === 1n ? "1 byte" : `${bytes} bytes`;
}

export function queueText({ unit, amount }: Queue): string {
  if (unit === "bytes") return sizeText(amount);
  if (unit === "ns") return spanText(amount);
  if (unit === "packets") return amount === 1n ? "1 packet" : `${amount} packets`;
  return `${decimal({ over: amount, under: BDP })} bdp`;
}

/** What is wrong with it where it is no text: links and files may hold anything. */
function split(text: unknown, what: string, example: string, ...usual: string[]): { number: Fraction; unit: string } {
  if (typeof text === "number") {
    throw new InputError("missing-unit", `${text} has no unit; ${what} needs one`, written(String(text), usual));
  }
  if (typeof text !== "string") {
    const kind = typeof text === "boolean" ? "bool" : Array.isArray(text) ? "list" : "dict";
    throw new InputError("wrong-type", `${what} is text with a unit, not a ${kind}`, `write it like "${example}"`);
  }
  const found = QUANTITY.exec(text);
  if (found === null) {
    throw new InputError("bad-quantity", `"${shown(text)}" is not ${what}`, `write it like "${example}"`);
  }
  const [, number, unit] = found as unknown as [string, string, string | undefined];
  if (unit === undefined) {
    throw new InputError("missing-unit", `"${shown(text)}" has no unit; ${what} needs one`, written(String(number), usual));
  }
  return { number: fraction(number), unit };
}

/** What a bare number may have meant. */
function written(number: string, usual: string[]): string {
  if (usual[0] !== "%") return `write ${usual.map((unit) => `"${number} ${unit}"`).join(" or ")}`;
  const { over, under } = fraction(number);
  const ofAll = over > 0n && over < under ? `"${decimal({ over: over * 100n, under })}%" for a share of ${number}, or ` : "";
  return `write ${ofAll}"${number}%"`;
}

function fraction(text: string): Fraction {
  const [, sign, before, after = "", power = "0"] = /^([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?$/.exec(text)!;
  const digits = BigInt(`${before}${after}`) * (sign === "-" ? -1n : 1n);
  const exponent = BigInt(power.replace("+", "")) - BigInt(after.length);
  return exponent < 0n ? { over: digits, under: 10n ** -exponent } : { over: digits * 10n ** exponent, under: 1n };
}

function whole({ over, under }: Fraction, scale: bigint, what: string, finest: string, text: string): bigint {
  if ((over * scale) % under !== 0n) {
    const message = `"${shown(text)}" is finer than ${finest}, the resolution of ${what}`;
    throw new InputError("bad-quantity", message, "round it");
  }
  return (over * scale) / under;
}

/** Exact; of denominators that have the factors 2 and 5 only. */
function decimal({ over, under }: Fraction): string {
  const amount = over < 0n ? -over : over;
  let [digits, rest] = ["", amount % under];
  while (rest !== 0n) {
    digits += String((rest * 10n) / under);
    rest = (rest * 10n) % under;
  }
  const sign = over < 0n ? "-" : "";
  return `${sign}${amount / under}${digits === "" ? "" : `.${digits}`}`;
}

/** In the largest of the units that leaves at least 1. */
function print(amount: bigint, units: Units): string {
  const [name, scale] = units.filter(([, scale]) => amount >= scale).at(-1) ?? units[0]!;
  return `${decimal({ over: amount, under: scale })} ${name}`;
}

function oneOf(units: string[]): string {
  return `units here: ${units.join(", ")}`;
}

/** Short enough for a message. A page shows text as text, so nothing need be escaped. */
function shown(text: string): string {
  const letters = [...text];
  return letters.length <= 60 ? text : `${letters.slice(0, 30).join("")}…${letters.slice(letters.length - 29).join("")}`;
}
