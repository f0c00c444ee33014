// Kinds of queues with the parameters that tc has for them: src/sawtooth/scenario/queue.py, in what a page asks.

import { InputError, within } from "./problem";
import { loss, queue, queueText, rate, rateText, size, sizeText, span, spanText, type Queue } from "./units";

/** As a scenario file has it: text is the limit of a tail drop, a table names a kind. */
export type QueueGiven = string | ({ kind: string } & Record<string, unknown>);

/** What the core takes of it: a limit, and a discipline where it is no tail drop. */
export interface QueueCompiled {
  limit: Queue | undefined;
  /** Given the limit in bytes where it has one, and what else the transmitter knows. */
  discipline?: (at: { limitBytes: bigint; frame: bigint; lineBps: bigint }) => Record<string, unknown>;
  /** Instead of a limit. */
  waitingBytes?: (frame: bigint) => bigint;
  /** It lets no more pass. */
  shapedBps?: bigint;
  /** Its limit is of memory. */
  endless?: true;
}

type Reader<A> = (given: unknown) => A;
type Fields = Record<string, unknown>;

const PRESETS: Record<string, string> = {
  datacentre: "100 us",
  lan: "1 ms",
  metro: "10 ms",
  regional: "30 ms",
  internet: "100 ms",
  oceanic: "300 ms",
  satellite: "1 s",
  interplanetary: "1000 s",
};
const ISOLATIONS = ["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"];
const CAKE_PACKETS = 10240n;
const CAKE_LEAST_BYTES = 4n << 20n;

/** The readers of units refuse what is none. */
function text(given: unknown): string {
  return given as string;
}

function between(read: (text: string) => bigint, show: (value: bigint) => string, low: string, high: string): Reader<bigint> {
  return (given) => {
    const value = read(text(given));
    if (value < read(low) || value > read(high)) {
      throw new InputError("out-of-range", `"${show(value)}" is outside ${low} … ${high}`, `choose ${low} … ${high}`);
    }
    return value;
  };
}

function limitIn(units: Queue["unit"][], like: string): Reader<Queue> {
  return (given) => {
    const value = queue(text(given));
    if (!units.includes(value.unit)) {
      throw new InputError("unknown-unit", `"${queueText(value)}" is no limit of this kind of queue`, `write it like ${like}`);
    }
    return value;
  };
}

function integer(least: number, most: number): Reader<bigint> {
  return (given) => {
    if (typeof given !== "number" || !Number.isInteger(given)) {
      throw new InputError("wrong-type", "a whole number is needed", "write it without quotes, unit or decimals");
    }
    if (given < least) throw new InputError("out-of-range", `${given} is not at least ${least}`, `choose at least ${least}`);
    if (given > most) throw new InputError("out-of-range", `${given} is not at most ${most}`, `choose at most ${most}`);
    return BigInt(given);
  };
}

const flag: Reader<boolean> = (given) => {
  if (typeof given === "boolean") return given;
  throw new InputError("wrong-type", "true or false is needed", "write true or false");
};

const packets = limitIn(["packets", "bdp"], '"1000 packets" or "2 bdp"');
const bytes = limitIn(["bytes", "ns"], '"64 KiB" or "50 ms"');
const step = limitIn(["packets", "ns"], '"1 ms" or "5 packets"');
const time = between(span, spanText, "1 ns", "3600 s");
const update = between(span, spanText, "100 us", "3600 s");
const quantum = between(size, sizeText, "256 bytes", "1 MiB");
const packet = between(size, sizeText, "1 byte", "64 KiB");
const burst = between(size, sizeText, "1 byte", "1 GiB");
const bandwidth = between(rate, rateText, "1 kbit/s", "10 Tbit/s");
const memory = between(size, sizeText, "4 KiB", "1 GiB");
const roundTrip: Reader<bigint> = (given) =>
  between(span, spanText, "1 us", "3600 s")(typeof given === "string" ? (PRESETS[given] ?? given) : given);

/** Reads the fields of a table: each at most once, and nothing else may be there. */
class Table {
  private readonly known = new Set(["kind"]);
  constructor(private readonly given: Fields) {}

  read<A>(name: string, reader: Reader<A>, otherwise: A): A {
    this.known.add(name);
    const value = this.given[name];
    return value === undefined ? otherwise : within(name, () => reader(value));
  }

  needed<A>(name: string, reader: Reader<A>): A {
    if (this.given[name] === undefined) {
      throw new InputError("missing-field", "this field is needed and missing", `give "${name}"`, name);
    }
    return this.read(name, reader, undefined as A);
  }

  end(): void {
    const unknown = Object.keys(this.given).find((name) => !this.known.has(name));
    if (unknown !== undefined) {
      throw new InputError("unknown-field", "there is no such field", `fields here: ${[...this.known].join(", ")}`, unknown);
    }
  }
}

/** Written only where it is set. */
function where(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== false && value !== null));
}

const ms = (count: number): bigint => BigInt(count) * 10n ** 6n;
const inPackets = (amount: bigint): Queue => ({ unit: "packets", amount });
const NONE: bigint | null = null;

const KINDS: Record<string, (table: Table) => QueueCompiled> = {
  pfifo: (table) => ({ limit: table.read("limit", packets, inPackets(1000n)), discipline: () => ({ fifo: {} }) }),

  bfifo: (table) => ({
    limit: table.read<Queue | undefined>("limit", bytes, undefined),
    discipline: () => ({ fifo: {} }),
  }),

  codel: (table) => {
    const limit = table.read("limit", packets, inPackets(1000n));
    const target_ns = table.read("target", time, ms(5));
    const interval_ns = table.read("interval", time, ms(100));
    const ecn = table.read("ecn", flag, false);
    const ce_threshold_ns = table.read<bigint | null>("ce_threshold", time, NONE);
    return { limit, discipline: () => ({ codel: { target_ns, interval_ns, ...where({ ecn, ce_threshold_ns }) } }) };
  },

  fq_codel: (table) => {
    const limit = table.read("limit", packets, inPackets(10240n));
    const target_ns = table.read("target", time, ms(5));
    const interval_ns = table.read("interval", time, ms(100));
    const flows = table.read("flows", integer(1, 65536), 1024n);
    const quantum_bytes = table.read<bigint | null>("quantum", quantum, NONE);
    const ecn = table.read("ecn", flag, true);
    const ce_threshold_ns = table.read<bigint | null>("ce_threshold", time, NONE);
    const law = { target_ns, interval_ns, flows, quantum_bytes, ...where({ ecn, ce_threshold_ns }) };
    return { limit, discipline: () => ({ fq_codel: law }) };
  },

  red: (table) => {
    const limit = table.needed("limit", bytes);
    const [least, most] = [
      table.read<Queue | undefined>("min", bytes, undefined),
      table.read<Queue | undefined>("max", bytes, undefined),
    ];
    const avpkt = table.read("avpkt", packet, 1000n);
    const wished = table.read<bigint | null>("burst", integer(1, 10 ** 6), NONE);
    const probability_ppb = table.read("probability", (given) => loss(text(given)), 20_000_000n);
    const adaptive = table.read("adaptive", flag, false);
    const ecn = table.read("ecn", flag, false);
    const harddrop = table.read("harddrop", flag, false) && ecn;
    if (probability_ppb === 0n) {
      throw new InputError("out-of-range", "of nothing, nothing is dropped", 'write "2%"', "probability");
    }
    for (const [name, given] of [["min", least], ["max", most]] as const) {
      if (given !== undefined && given.unit !== limit.unit) {
        const fix = `write it like the limit, "${queueText(limit)}"`;
        throw new InputError("conflict", `${name} and limit are a size and a time`, fix, name);
      }
    }
    const discipline = ({ limitBytes }: { limitBytes: bigint }): Fields => {
      const max_bytes = most === undefined ? limitBytes / 4n : (most.amount * limitBytes) / limit.amount;
      const min_bytes = least === undefined ? max_bytes / 3n : (least.amount * limitBytes) / limit.amount;
      if (!(0n < min_bytes && min_bytes < max_bytes && max_bytes <= limitBytes)) {
        const message = `min, max and limit do not follow each other: ${min_bytes}, ${max_bytes}, ${limitBytes} bytes`;
        throw new InputError("conflict", message, "leave min and max out, or set min < max < limit");
      }
      const reckoned = (2n * min_bytes + max_bytes) / (3n * avpkt);
      const packetsAtOnce = wished ?? (reckoned > 1n ? reckoned : 1n);
      const weight_log = weight(Number(min_bytes) / Number(avpkt), Number(packetsAtOnce));
      if (weight_log === null) {
        const message = `the average does not pass min, ${min_bytes} bytes, with a burst of ${packetsAtOnce} packets`;
        const fix = `choose a burst of at least ${min_bytes / avpkt + 1n}, or a smaller min`;
        throw new InputError("conflict", message, fix, "burst");
      }
      return { red: { min_bytes, max_bytes, weight_log, probability_ppb, adaptive, ...where({ ecn, harddrop }) } };
    };
    return { limit, discipline };
  },

  pie: (table) => {
    const limit = table.read("limit", packets, inPackets(1000n));
    return { limit, discipline: proportional("pie", table) };
  },

  fq_pie: (table) => {
    const limit = table.read("limit", packets, inPackets(10240n));
    const flows = table.read("flows", integer(1, 65536), 1024n);
    const quantum_bytes = table.read<bigint | null>("quantum", quantum, NONE);
    return { limit, discipline: proportional("fq_pie", table, { flows, quantum_bytes }) };
  },

  fq: (table) => {
    const limit = table.read("limit", packets, inPackets(10000n));
    const flow_limit = table.read("flow_limit", integer(1, 10 ** 9), 100n);
    const quantum_bytes = table.read<bigint | null>("quantum", quantum, NONE);
    const initial_quantum_bytes = table.read<bigint | null>("initial_quantum", quantum, NONE);
    const refill_delay_ns = table.read("refill_delay", time, ms(40));
    const orphan_mask = table.read("orphan_mask", integer(0, 65535), 1023n);
    const law = { flow_limit, quantum_bytes, initial_quantum_bytes, orphan_mask, refill_delay_ns };
    return { limit, discipline: () => ({ fq: law }) };
  },

  sfq: (table) => {
    const limit = table.read("limit", packets, inPackets(127n));
    const quantum_bytes = table.read<bigint | null>("quantum", quantum, NONE);
    const perturb_ns = table.read("perturb", (given) => span(text(given)), 0n);
    const flows = table.read("flows", integer(1, 65408), 128n);
    const divisor = table.read("divisor", integer(1, 65536), 1024n);
    const depth = table.read("depth", integer(1, 127), 127n);
    const headdrop = table.read("headdrop", flag, false);
    if (perturb_ns % 10n ** 9n !== 0n) {
      throw new InputError("out-of-range", "tc counts whole seconds", 'write e.g. "10 s"', "perturb");
    }
    if ((divisor & (divisor - 1n)) !== 0n) {
      throw new InputError("out-of-range", `${divisor} is no power of two`, "choose e.g. 1024", "divisor");
    }
    if (limit.unit === "packets" && limit.amount < 2n) {
      throw new InputError("out-of-range", "sfq takes two packets at least", 'write "2 packets"', "limit");
    }
    return { limit, discipline: () => ({ sfq: { quantum_bytes, perturb_ns, flows, divisor, depth, headdrop } }) };
  },

  tbf: (table) => {
    const rate_bps = table.needed("rate", (given) => rate(text(given)));
    const burst_bytes = table.needed("burst", burst);
    const latency = table.read<bigint | null>("latency", time, NONE);
    const limit = table.read<bigint | null>("limit", burst, NONE);
    const peakrate_bps = table.read<bigint | null>("peakrate", (given) => rate(text(given)), NONE);
    const minburst = table.read<bigint | null>("minburst", burst, NONE);
    if ((latency === null) === (limit === null)) {
      const code = limit === null ? "missing-field" : "conflict";
      const fix = 'write latency = "50 ms", or limit = "100 kB"';
      throw new InputError(code, "a token bucket needs the one of latency and limit", fix, "latency");
    }
    if (peakrate_bps !== null && peakrate_bps <= rate_bps) {
      const message = `a peak rate of "${rateText(peakrate_bps)}" is not above the rate`;
      throw new InputError("out-of-range", message, "leave it out, or choose a higher one", "peakrate");
    }
    if (minburst !== null && peakrate_bps === null) {
      const message = "minburst is of a peak rate, and there is none";
      throw new InputError("conflict", message, "leave it out, or give peakrate", "minburst");
    }
    const waitingBytes = (frame: bigint): bigint => {
      if (latency === null) return largest(frame, limit ?? 0n);
      const waits = (bps: bigint, more: bigint): bigint => (bps * latency) / (8n * 10n ** 9n) + more;
      const limits = [waits(rate_bps, burst_bytes)];
      if (peakrate_bps !== null) limits.push(waits(peakrate_bps, minburst ?? frame));
      return largest(frame, limits.reduce((one, other) => (other < one ? other : one)));
    };
    const discipline = ({ frame, lineBps }: { frame: bigint; lineBps: bigint }): Fields => {
      if (rate_bps >= lineBps) {
        const message = `a rate of "${rateText(rate_bps)}" is not below the transmitter's, "${rateText(lineBps)}", and shapes nothing`;
        throw new InputError("out-of-range", message, "choose a lower one, or leave the table out", "rate");
      }
      const least = minburst ?? frame;
      holds(burst_bytes, frame, "burst");
      holds(least, frame, "minburst");
      const peak = peakrate_bps === null ? {} : { peakrate_bps, minburst_bytes: least };
      return { tbf: { rate_bps, burst_bytes, ...peak } };
    };
    return { limit: undefined, discipline, waitingBytes, shapedBps: rate_bps };
  },

  cake: (table) => {
    const bandwidth_bps = table.read<bigint | null>("bandwidth", bandwidth, NONE);
    const interval_ns = table.read("rtt", roundTrip, ms(100));
    const isolation = table.read("isolation", oneOfIsolations, "triple-isolate");
    const memlimit = table.read<bigint | null>("memlimit", memory, NONE);
    const discipline = ({ frame }: { frame: bigint }): Fields => {
      const most = CAKE_PACKETS * frame;
      const share = bandwidth_bps === null ? most : (4n * bandwidth_bps * interval_ns) / (8n * 10n ** 9n);
      const atLeast = largest(share, CAKE_LEAST_BYTES);
      const memory_bytes = memlimit ?? (atLeast < most ? atLeast : most);
      const target_ns = largest(1000n, interval_ns / 20n);
      return { cake: { bandwidth_bps, interval_ns, target_ns, isolation, memory_bytes } };
    };
    return { limit: undefined, discipline, endless: true, ...(bandwidth_bps === null ? {} : { shapedBps: bandwidth_bps }) };
  },

  dualpi2: (table) => {
    const limit = table.read("limit", packets, inPackets(10000n));
    const target_ns = table.read("target", time, ms(15));
    const tupdate_ns = table.read("tupdate", update, ms(16));
    const alpha_256 = table.read("alpha", in256ths, 41n);
    const beta_256 = table.read("beta", in256ths, 819n);
    const coupling_factor = table.read("coupling_factor", integer(1, 255), 2n);
    const threshold = table.read<Queue>("step_thresh", step, { unit: "ns", amount: ms(1) });
    const min_qlen_step = table.read("min_qlen_step", integer(0, 10 ** 9), 0n);
    const protection = table.read("classic_protection", (given) => loss(text(given)), 100_000_000n);
    const drop_on_overload = table.read("drop_on_overload", flag, true);
    const drop_enqueue = table.read("drop_enqueue", flag, false);
    const any_ect = table.read("any_ect", flag, false);
    if (protection % 10n ** 7n !== 0n) {
      const percent = `${Number(protection) / 1e7}%`;
      throw new InputError("out-of-range", `"${percent}" is no whole percentage`, 'write e.g. "10%"', "classic_protection");
    }
    const inNs = threshold.unit === "ns";
    const law = {
      target_ns,
      tupdate_ns,
      alpha_256,
      beta_256,
      coupling_factor,
      step_thresh_ns: inNs ? threshold.amount : null,
      step_thresh_packets: inNs ? null : threshold.amount,
      min_qlen_step,
      classic_protection: protection / 10n ** 7n,
      drop_on_overload,
      drop_enqueue,
      any_ect,
    };
    return { limit, discipline: () => ({ dualpi2: law }) };
  },
};

/** The names that tc has for them. */
export const QUEUE_KINDS: readonly string[] = Object.keys(KINDS);

export function queueCompiled(given: QueueGiven): QueueCompiled {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return { limit: queue(given as string) };
  const kind = KINDS[given.kind];
  if (kind === undefined) {
    if (given.kind === undefined) {
      const fix = `name one of ${QUEUE_KINDS.join(", ")}: queue = { kind = "codel" }`;
      throw new InputError("missing-field", "a queue needs a kind", fix, "kind");
    }
    const message = `"${String(given.kind).slice(0, 60)}" is no kind of queue`;
    throw new InputError("unknown-name", message, `choose one of ${QUEUE_KINDS.join(", ")}`, "kind");
  }
  const table = new Table(given);
  const compiled = kind(table);
  table.end();
  return compiled;
}

/** PIE's law, of one queue or of many. */
function proportional(name: string, table: Table, flows: Fields = {}): () => Fields {
  const target_ns = table.read("target", time, ms(15));
  const tupdate_ns = table.read("tupdate", time, ms(15));
  const alpha = table.read("alpha", integer(0, 32), 2n);
  const beta = table.read("beta", integer(0, 32), 20n);
  const bytemode = table.read("bytemode", flag, false);
  const ecn = table.read("ecn", flag, false);
  return () => ({ [name]: { target_ns, tupdate_ns, alpha, beta, bytemode, ...flows, ...where({ ecn }) } });
}

/** Of RED's average, as a power of a half: Floyd and Jacobson 1993, equation 3, as the command line reckons it. */
function weight(minPackets: number, atOnce: number): number | null {
  if (atOnce < minPackets) return null;
  for (let power = 1; power < 32; power += 1) {
    const half = 0.5 ** power;
    if (atOnce + 1 - (1 - (1 - half) ** atOnce) / half <= minPackets) return power;
  }
  return null;
}

function holds(given: bigint, frame: bigint, field: string): void {
  if (given >= frame) return;
  const message = `a burst of "${sizeText(given)}" lets no full frame of ${frame} bytes pass`;
  throw new InputError("out-of-range", message, `choose at least "${frame} bytes"`, field);
}

const oneOfIsolations: Reader<string> = (given) => {
  if (ISOLATIONS.includes(given as string)) return given as string;
  throw new InputError("unknown-name", `"${String(given).slice(0, 60)}" is not known here`, `choose one of ${ISOLATIONS.join(", ")}`);
};

const in256ths: Reader<bigint> = (given) => {
  if (typeof given !== "number" || !(given >= 0.004 && given <= 8e6)) {
    throw new InputError("out-of-range", "a number from 0.004 to 8000000 is needed", "leave it out");
  }
  // As Python rounds, halves to the even neighbour.
  const scaled = given * 256;
  const down = Math.floor(scaled);
  const even = down % 2 === 0 ? down : down + 1;
  return BigInt(scaled - down === 0.5 ? even : Math.round(scaled));
};

function largest(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
