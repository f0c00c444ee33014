// From what a page asks to what the core takes: the same text as Scenario.compile().to_json() of the command line, to which
// tests/test_lab_compiler.py holds this, errors included.

import { called, control } from "./control";
import { InputError, within } from "./problem";
import { queueCompiled, type QueueCompiled } from "./queues";
import { DEFAULTS, type Flow, type Path, type Scenario } from "./scenario";
import { BDP, loss, queueText, rate, size, sizeText, span, spanText, type Queue } from "./units";

type Json = string | bigint | boolean | null | Json[] | { [name: string]: Json };

const SECOND = 10n ** 9n;
const HOSTS = ["sender", "router", "loss", "delay", "receiver"];
const MSS = 1448n;
/** Of a full segment with timestamps, as Linux counts it. */
const FRAME = MSS + 66n;
/** A device's queue length, which tc takes where no limit is given. */
const DEFAULT_FRAMES = 1000n;
const MAX_CONNECTIONS = 100_000;
const MAX_SAMPLES = 10_000_000n;
const MAX_QUEUE_PACKETS = 10n ** 9n;
/** Segment and acknowledgement must be on their way so long, or TCP's clock would not move. */
const ROUND_TRIP_MIN_NS = 1000n;
const FIELDS: Record<string, readonly string[]> = {
  "": ["name", "topology", "duration", "interval", "seed", "path", "host", "flows"],
  path: ["rate", "reverse_rate", "rtt", "queue", "loss", "ack_loss"],
  host: ["ecn", "ecn_fallback", "receive_buffer"],
  flows: ["name", "cc", "count", "start", "duration", "bytes"],
};

/** Numbers that figures and sentences need, beside the text that the core takes. */
export interface Compiled {
  json: string;
  durationNs: number;
  intervalNs: number;
  /** Of the bottleneck: its shaper's, where it has a slower one. */
  rateBps: number;
  reverseBps: number | undefined;
  rttNs: number;
  flows: { name: string; cc: string; count: number }[];
}

/** Raises InputError, with the field. `controls`: the congestion controls that the core has. */
export function compile(asked: Scenario, controls: readonly string[]): Compiled {
  onlyKnown(asked);
  const durationNs = within("duration", () => ranged(asked.duration ?? DEFAULTS.duration, 1_000_000n, "1 ms … 30 d"));
  const intervalNs = within("interval", () => ranged(asked.interval ?? DEFAULTS.interval, 1_000_000n, "1 ms … 30 d"));
  const seed = within("seed", () => whole(asked.seed ?? DEFAULTS.seed, 0, Number.MAX_SAFE_INTEGER));
  const path = within("path", () => readPath(asked.path ?? {}));
  const ecn = within("host.ecn", () => whole(Number(asked.host?.ecn ?? 0), 0, 2));
  const fallback = within("host.ecn_fallback", () => isTrue(asked.host?.ecn_fallback ?? true, "ecn_fallback"));
  const receiveBuffer = within("host.receive_buffer", () => buffer(asked.host?.receive_buffer ?? "64 MiB"));
  const flows = (asked.flows ?? [{}]).map((flow, index) => within(`flows.${index}`, () => readFlow(flow, controls)));
  if (flows.length === 0) {
    const fix = "leave flows out for one cubic flow";
    throw new InputError("missing-field", "there is neither a flow nor a probe", fix, "flows");
  }
  checkTimes(durationNs, intervalNs, flows);
  const names = flowNames(flows);
  if (flows.reduce((sum, flow) => sum + flow.count, 0) > MAX_CONNECTIONS) {
    throw new InputError("out-of-range", `more than ${MAX_CONNECTIONS} connections in all`, "lower the counts", "flows");
  }
  const transmitters = [transmitter("router>loss", path.rate, path)];
  if (path.reverse !== undefined) transmitters.push(transmitter("loss>router", path.reverse, path));
  checkRoundTrip(path, names[0]!);

  const told = {
    duration_ns: durationNs,
    interval_ns: intervalNs,
    seed,
    hosts: HOSTS.map((name) => host(name, ecn, fallback, receiveBuffer)),
    transmitters,
    links: links(path),
    flows: flows.map((flow, index) => ({
      name: names[index]!,
      cc: flow.cc,
      count: BigInt(flow.count),
      start_ns: flow.startNs,
      duration_ns: flow.durationNs,
      bytes: flow.bytes,
      lifetime_ns: null,
      forward: [0n, 1n, 2n, 3n],
      backward: [4n, 5n, 6n, 7n],
      ...(flow.variant === undefined ? {} : { variant: flow.variant }),
    })),
    probes: [],
  };
  return {
    json: text(told),
    durationNs: Number(durationNs),
    intervalNs: Number(intervalNs),
    rateBps: Math.min(Number(path.rate), Number(path.queue.shapedBps ?? path.rate)),
    reverseBps: path.reverse === undefined ? undefined : Number(path.reverse),
    rttNs: Number(path.rttNs),
    flows: flows.map(({ cc, count }, index) => ({ name: names[index]!, cc, count })),
  };
}

interface PathRead {
  rate: bigint;
  reverse: bigint | undefined;
  rttNs: bigint;
  queue: QueueCompiled;
  lossPpb: bigint;
  ackLossPpb: bigint;
}

function readPath(given: Path): PathRead {
  const all = { ...DEFAULTS.path, ...given };
  return {
    rate: within("rate", () => rate(all.rate)),
    reverse: all.reverse_rate === undefined ? undefined : within("reverse_rate", () => rate(all.reverse_rate!)),
    rttNs: within("rtt", () => ranged(all.rtt, 0n, "0 s … 3600 s", 3600n * SECOND)),
    queue: within("queue", () => queueCompiled(all.queue)),
    lossPpb: within("loss", () => loss(all.loss)),
    ackLossPpb: within("ack_loss", () => loss(all.ack_loss)),
  };
}

interface FlowRead {
  name: string | undefined;
  /** What it is called, where it has no name. */
  called: string;
  cc: string;
  variant: string | undefined;
  count: number;
  startNs: bigint;
  durationNs: bigint | null;
  bytes: bigint | null;
}

function readFlow(given: Flow, controls: readonly string[]): FlowRead {
  const all = { ...DEFAULTS.flow, ...given };
  const name = within("name", () => (all.name === undefined ? undefined : flowName(all.name)));
  const startNs = within("start", () => span(all.start));
  const { cc, variant } = control(all.cc, controls);
  const count = within("count", () => Number(whole(all.count, 1, MAX_CONNECTIONS)));
  const durationNs = all.duration === undefined
    ? null
    : within("duration", () => ranged(all.duration!, 1_000_000n, "1 ms … 30 d"));
  const bytes = all.bytes === undefined ? null : within("bytes", () => volume(all.bytes!));
  if (bytes !== null && durationNs !== null) {
    const message = "a flow ends after its bytes or after its duration, not both";
    throw new InputError("conflict", message, "remove one of the two", "bytes");
  }
  return { name, called: called(all.cc), cc, variant, count, startNs, durationNs, bytes };
}

function volume(given: string): bigint {
  const bytes = size(given);
  if (bytes < 1n || bytes > 10n ** 15n) {
    const limits = "1 byte … 1000 TB";
    throw new InputError("out-of-range", `"${sizeText(bytes)}" is outside ${limits}`, `choose ${limits}`);
  }
  return bytes;
}

function flowName(given: string): string {
  if (!/^[A-Za-z0-9_+-]{1,40}$/.test(given)) {
    const message = `"${given}" is not a name that can be used here`;
    throw new InputError("bad-name", message, 'letters, digits, "-", "_" and "+", at most 40');
  }
  if (/^[0-9]+$/.test(given)) {
    const message = `a name made of digits only, "${given}", reads as a position`;
    throw new InputError("bad-name", message, "begin it with a letter: flows.0 means the first one");
  }
  return given;
}

function checkTimes(durationNs: bigint, intervalNs: bigint, flows: FlowRead[]): void {
  if (intervalNs > durationNs) {
    const message = `"${spanText(intervalNs)}" is longer than the duration, "${spanText(durationNs)}"`;
    throw new InputError("out-of-range", message, "shorten it", "interval");
  }
  if (durationNs / intervalNs > MAX_SAMPLES) {
    throw new InputError("out-of-range", `more than ${MAX_SAMPLES} samples`, "choose a longer interval", "interval");
  }
  flows.forEach(({ startNs }, index) => {
    if (startNs < durationNs) return;
    const message = `"${spanText(startNs)}" is not before the end, "${spanText(durationNs)}"`;
    throw new InputError("out-of-range", message, "start earlier", `flows.${index}.start`);
  });
}

/** Given names, and for the others their control, numbered from 2 when it is taken. */
export function flowNames(flows: readonly { name: string | undefined; called: string }[]): string[] {
  const given = flows.flatMap(({ name }) => (name === undefined ? [] : [name]));
  const twice = flows.findIndex(({ name }) => name !== undefined && given.indexOf(name) !== given.lastIndexOf(name));
  if (twice >= 0) {
    const message = `two flows are named "${flows[twice]!.name}"`;
    throw new InputError("duplicate-name", message, "name one of them otherwise", `flows.${twice}.name`);
  }
  const used = new Set(given);
  const numbers = new Map<string, number>();
  return flows.map(({ name: own, called }) => {
    let name = own ?? called;
    while (own === undefined && used.has(name)) {
      const number = (numbers.get(called) ?? 1) + 1;
      numbers.set(called, number);
      name = `${called}-${number}`;
    }
    used.add(name);
    return name;
  });
}

function buffer(given: string): bigint {
  const bytes = size(given);
  const limits = "4 KiB … 1 GiB";
  if (bytes < 4n << 10n || bytes > 1n << 30n) {
    throw new InputError("out-of-range", `"${sizeText(bytes)}" is outside ${limits}`, `choose ${limits}`);
  }
  // Of two segments, with what Linux takes for each beside its payload.
  const least = 2n * (MSS + 936n);
  if (bytes < least) {
    const message = `host ${HOSTS[0]}: "${sizeText(bytes)}" does not hold two segments of ${MSS} bytes`;
    throw new InputError("out-of-range", message, `choose at least "${least} bytes"`);
  }
  return bytes;
}

function host(name: string, ecn: bigint, fallback: boolean, receiveBuffer: bigint): Json {
  const settings: { [name: string]: Json } = {
    name,
    hz: 250n,
    mss: MSS,
    initial_window: 10n,
    receive_buffer: receiveBuffer,
    send_buffer: 64n << 20n,
    delayed_ack: true,
    sack: true,
    timestamps: true,
    offload: false,
  };
  if (ecn !== 0n) settings["ecn"] = ecn;
  if (!fallback) settings["ecn_insists"] = true;
  return settings;
}

function isTrue(given: unknown, name: string): boolean {
  if (typeof given === "boolean") return given;
  throw new InputError("wrong-type", "true or false is needed", `write ${name} = true or ${name} = false`);
}

function transmitter(name: string, rateBps: bigint, { queue, rttNs }: PathRead): Json {
  return within("path.queue", () => {
    const base: { [name: string]: Json } = { name, rate_bps: rateBps, queue_packets: null, queue_bytes: null };
    const at = { frame: FRAME, lineBps: rateBps, limitBytes: 0n };
    if (queue.waitingBytes !== undefined) {
      const discipline = queue.discipline!(at) as Json;
      return { ...base, queue_bytes: queue.waitingBytes(FRAME), discipline };
    }
    if (queue.endless) return { ...base, discipline: queue.discipline!(at) as Json };
    const limit = queue.limit ?? { unit: "bytes", amount: DEFAULT_FRAMES * FRAME };
    const [packets, bytes] = inUnits(limit, rateBps, rttNs);
    const own = queue.discipline?.({ ...at, limitBytes: bytes ?? 0n }) as Json | undefined;
    return { ...base, queue_packets: packets, queue_bytes: bytes, ...(own === undefined ? {} : { discipline: own }) };
  });
}

/** Packets, or bytes. */
function inUnits(limit: Queue, rateBps: bigint, rttNs: bigint): [bigint | null, bigint | null] {
  switch (limit.unit) {
    case "packets":
      return [limit.amount, null];
    case "bdp": {
      // Of the path's base round trip, in full frames, a half rounded up.
      const twice = 2n * limit.amount * rateBps * rttNs;
      const under = BDP * SECOND * 8n * FRAME;
      const packets = (twice + under) / (2n * under);
      if (packets > MAX_QUEUE_PACKETS) {
        const message = `"${queueText(limit)}" is ${packets} packets, more than ${MAX_QUEUE_PACKETS}`;
        throw new InputError("out-of-range", message, "choose a smaller queue");
      }
      return [packets > 1n ? packets : 1n, null];
    }
    case "ns": {
      const bytes = (rateBps * limit.amount) / (8n * SECOND);
      return [null, bytes > FRAME ? bytes : FRAME];
    }
    case "bytes":
      if (limit.amount < FRAME) {
        const message = `"${sizeText(limit.amount)}" does not hold one full frame of ${FRAME} bytes`;
        throw new InputError("zero-queue", message, `choose at least "${FRAME} bytes", or "1 packet"`);
      }
      return [null, limit.amount];
  }
}

function links(path: PathRead): Json[] {
  const backNs = path.rttNs / 2n;
  const way = (from: number, to: number, transmitter: bigint | null, delay_ns = 0n, loss_ppb = 0n): Json => ({
    name: `${HOSTS[from]}>${HOSTS[to]}`,
    from: BigInt(from),
    to: BigInt(to),
    transmitter,
    delay_ns,
    loss_ppb,
    loss_pattern: null,
    overhead_bytes: 0n,
  });
  return [
    way(0, 1, null),
    way(1, 2, 0n),
    way(2, 3, null, 0n, path.lossPpb),
    way(3, 4, null, path.rttNs - backNs),
    way(4, 3, null, backNs),
    way(3, 2, null, 0n, path.ackLossPpb),
    way(2, 1, path.reverse === undefined ? null : 1n),
    way(1, 0, null),
  ];
}

function checkRoundTrip(path: PathRead, flow: string): void {
  // In parts of a nanosecond, so that nothing is rounded.
  const acknowledgement = FRAME - MSS;
  const reverse = path.reverse ?? 1n;
  const back = path.reverse === undefined ? 0n : 8n * acknowledgement * SECOND * path.rate;
  const over = path.rttNs * path.rate * reverse + 8n * FRAME * SECOND * reverse + back;
  const under = path.rate * reverse;
  if (over >= ROUND_TRIP_MIN_NS * under) return;
  const took = (Number((over * 1_000_000n) / under) / 1e6).toPrecision(3);
  const message = `flow "${flow}": a segment and its acknowledgement take ${Number(took)} ns, and the engine sim needs 1 us for them`;
  throw new InputError("unsupported", message, "give the path a delay, e.g. 0.1 ms, or a lower rate", "path.rtt");
}

function ranged(given: string, least: bigint, limits: string, most = 30n * 86400n * SECOND): bigint {
  const ns = span(given);
  if (ns < least || ns > most) {
    throw new InputError("out-of-range", `"${spanText(ns)}" is outside ${limits}`, `choose ${limits}`);
  }
  return ns;
}

function whole(given: unknown, least: number, most: number): bigint {
  if (typeof given !== "number" || !Number.isInteger(given)) {
    throw new InputError("wrong-type", "a whole number is needed", "write it without quotes, unit or decimals");
  }
  if (given < least) throw new InputError("out-of-range", `${given} is not at least ${least}`, `choose at least ${least}`);
  if (given > most) throw new InputError("out-of-range", `${given} is not at most ${most}`, `choose at most ${most}`);
  return BigInt(given);
}

/** Refuses what a scenario file may have and a page has not. */
function onlyKnown(asked: Scenario): void {
  const check = (given: object, table: string, at: string): void => {
    for (const name of Object.keys(given)) {
      if (FIELDS[table]!.includes(name)) continue;
      const fix = `run it with the command line; fields here: ${FIELDS[table]!.join(", ")}`;
      throw new InputError("unsupported", "the page does not have this field", fix, at === "" ? name : `${at}.${name}`);
    }
  };
  check(asked, "", "");
  const { topology } = asked as { topology?: string };
  if (topology !== undefined && topology !== "path") {
    throw new InputError("unsupported", `the page does not have the topology "${topology}"`, "run it with the command line", "topology");
  }
  check(asked.path ?? {}, "path", "path");
  check(asked.host ?? {}, "host", "host");
  (asked.flows ?? []).forEach((flow, index) => check(flow, "flows", `flows.${index}`));
}

/** As Python's json writes it. */
function text(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(text).join(", ")}]`;
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${text(one)}`).join(", ")}}`;
}
