// The language of scenarios: the core reads, refuses and compiles what a page asks, as it does for the command line.

import type { Core } from "./core";
import { InputError } from "./problem";
import type { Scenario } from "./scenario";

const KINDS = { rate: 0, span: 1, size: 2, loss: 3, queue: 4 } as const;
export type Kind = keyof typeof KINDS;

/** Billionths of a bandwidth-delay product: what the amount of a queue in `bdp` counts. */
export const BDP = 1e9;

/** What figures and sentences need of a compiled scenario, beside the text that the core takes. */
export interface Compiled {
  json: string;
  durationNs: number;
  intervalNs: number;
  /** Of the bottleneck: its shaper's, where it has a slower one. */
  rateBps: number;
  rttNs: number;
  lossPpb: number;
  /** Half of it is window, as Linux splits it. */
  receiveBuffer: number;
  /** `durationNs`, `bytes`: undefined where nothing but the run ends it. */
  flows: { name: string; cc: string; count: number; startNs: number; durationNs: number | undefined; bytes: number | undefined }[];
}

/** As crates/net has it. */
interface Told {
  duration_ns: number;
  interval_ns: number;
  hosts: { receive_buffer: number }[];
  transmitters: { rate_bps: number; discipline?: { tbf?: { rate_bps: number }; cake?: { bandwidth_bps: number | null } } }[];
  links: { delay_ns: number; loss_ppb: number }[];
  flows: { name: string; cc: string; count: number; start_ns: number; duration_ns: number | null; bytes: number | null }[];
}

/** A congestion control, as crates/tcp records it. Of its versions null is Linux's. */
export interface ControlRecord {
  name: string;
  /** Those that the simulator has, and of these those that are what they are by ECN's marks. */
  simulated: (string | null)[];
  by_marks: (string | null)[];
}

/** A kind of queue, as crates/scenario records it. */
export interface QueueRecord {
  kind: string;
  label: string;
  /** The field that limits it, what that is, whether it counts packets or bytes, and what it follows from where it is absent. */
  limit: { field: string; words: string; counts: "packets" | "bytes" | null; absent: string | null };
  /** The field above whose delay it marks at once. */
  marks_above: string | null;
  /** Values of what has no default. */
  needs: Readonly<Record<string, string>>;
  /** Its fields, and what each is where it is absent. */
  fields: Readonly<Record<string, unknown>>;
}

export class Language {
  /** Names of the congestion controls that the simulator has. */
  readonly controls: readonly string[];
  /** Their records, by name. */
  readonly records: ReadonlyMap<string, ControlRecord>;
  /** By tc's name of a kind. */
  readonly queues: ReadonlyMap<string, QueueRecord>;

  constructor(private readonly core: Core) {
    this.controls = core.controls();
    const { controls, queues } = core.registry() as { controls: ControlRecord[]; queues: QueueRecord[] };
    this.records = new Map(controls.map((one) => [one.name, one]));
    this.queues = new Map(queues.map((one) => [one.kind, one]));
  }

  /** Of topology "path". Raises InputError. */
  compile(scenario: Scenario): Compiled {
    const json = refused(this.core.compile(JSON.stringify(scenario)));
    const { duration_ns, interval_ns, hosts, transmitters, links, flows } = JSON.parse(json) as Told;
    const { rate_bps, discipline } = transmitters[0]!;
    return {
      json,
      durationNs: duration_ns,
      intervalNs: interval_ns,
      rateBps: Math.min(rate_bps, discipline?.tbf?.rate_bps ?? discipline?.cake?.bandwidth_bps ?? rate_bps),
      rttNs: links.reduce((sum, { delay_ns }) => sum + delay_ns, 0),
      lossPpb: links[2]!.loss_ppb,
      receiveBuffer: hosts.at(-1)!.receive_buffer,
      flows: flows.map(({ name, cc, count, start_ns, duration_ns, bytes }) =>
        ({ name, cc, count, startNs: start_ns, durationNs: duration_ns ?? undefined, bytes: bytes ?? undefined })),
    };
  }

  /** The tables of a TOML file. Raises InputError. */
  tables(toml: string): Record<string, unknown> {
    const json = refused(this.core.toml(toml));
    try {
      return JSON.parse(json) as Record<string, unknown>;
    } catch {
      // TOML has nan and inf, which no field takes and JSON has not.
      throw new InputError("out-of-range", "the file has a number that is nan or inf", "write digits");
    }
  }

  /** bit/s, ns, bytes, parts per billion; of a queue in its `unit`. Raises InputError. */
  read(kind: Kind, text: string): { amount: number; unit: string | undefined } {
    const [amount, unit] = refused(this.core.quantity(KINDS[kind], text)).split(" ");
    return { amount: Number(amount), unit };
  }

  /** As a scenario file has it; of a queue billionths of a bandwidth-delay product. */
  print(kind: Kind, amount: number): string {
    return this.core.printed(KINDS[kind], BigInt(Math.round(amount)));
  }
}

/** The core's answer. Raises InputError where it says what is wrong. */
function refused({ fine, answer }: { fine: boolean; answer: string }): string {
  if (fine) return answer;
  const { code, message, fix, field } = JSON.parse(answer) as { code: string; message: string; fix: string; field: string | null };
  throw new InputError(code, message, fix, field ?? undefined);
}
