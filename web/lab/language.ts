// The scenario language: the core reads, refuses and compiles a page's question, as it does for the command line.

import type { Core } from "./core";
import { InputError } from "./problem";
import type { Scenario } from "./scenario";

const KINDS = { rate: 0, span: 1, size: 2, loss: 3, queue: 4 } as const;
export type Kind = keyof typeof KINDS;

/** One unit of a queue's amount in `bdp`: a billionth of a bandwidth-delay product. */
export const BDP = 1e9;

/** What figures and sentences need from a compiled scenario, in addition to the core's text. */
export interface Compiled {
  json: string;
  durationNs: number;
  intervalNs: number;
  /** The bottleneck's rate, or its shaper's if that is slower. */
  rateBps: number;
  rttNs: number;
  lossPpb: number;
  /** Half of this becomes window, as Linux splits it. */
  receiveBuffer: number;
  /** `durationNs`, `bytes`: undefined if only the end of the run ends it. */
  flows: { name: string; cc: string; count: number; startNs: number; durationNs: number | undefined; bytes: number | undefined }[];
}

/** As in crates/net. */
interface CompiledJson {
  duration_ns: number;
  interval_ns: number;
  hosts: { receive_buffer: number }[];
  transmitters: { rate_bps: number; discipline?: { tbf?: { rate_bps: number }; cake?: { bandwidth_bps: number | null } } }[];
  links: { delay_ns: number; loss_ppb: number }[];
  flows: { name: string; cc: string; count: number; start_ns: number; duration_ns: number | null; bytes: number | null }[];
}

/** A congestion control's record in crates/tcp. The version null is Linux's own. */
export interface ControlRecord {
  name: string;
  /** Whether the simulator has the control, and whether the control depends on ECN marks. */
  simulated: (string | null)[];
  by_marks: (string | null)[];
}

/** A kind of queue's record in crates/scenario. */
export interface QueueRecord {
  kind: string;
  label: string;
  /** The field that limits it, its meaning, whether it counts packets or bytes, and what determines its default. */
  limit: { field: string; words: string; counts: "packets" | "bytes" | null; absent: string | null };
  /** The field with the delay above which it marks at once. */
  marks_above: string | null;
  /** Values for fields without a default. */
  needs: Readonly<Record<string, string>>;
  /** Its fields with their defaults. */
  fields: Readonly<Record<string, unknown>>;
}

export class Language {
  /** Names of the simulator's congestion controls. */
  readonly controls: readonly string[];
  /** Their records, by name. */
  readonly records: ReadonlyMap<string, ControlRecord>;
  /** By tc's name for a kind. */
  readonly queues: ReadonlyMap<string, QueueRecord>;

  constructor(private readonly core: Core) {
    this.controls = core.controls();
    const { controls, queues } = core.registry() as { controls: ControlRecord[]; queues: QueueRecord[] };
    this.records = new Map(controls.map((one) => [one.name, one]));
    this.queues = new Map(queues.map((one) => [one.kind, one]));
  }

  /** For topology "path" only. Raises InputError. */
  compile(scenario: Scenario): Compiled {
    const json = refused(this.core.compile(JSON.stringify(scenario)));
    const { duration_ns, interval_ns, hosts, transmitters, links, flows } = JSON.parse(json) as CompiledJson;
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
      // TOML has nan and inf; no field accepts them, and JSON lacks them.
      throw new InputError("out-of-range", "the file has a number that is nan or inf", "write digits");
    }
  }

  /** bit/s, ns, bytes or parts per billion; for a queue, in its `unit`. Raises InputError. */
  read(kind: Kind, text: string): { amount: number; unit: string | undefined } {
    const [amount, unit] = refused(this.core.quantity(KINDS[kind], text)).split(" ");
    return { amount: Number(amount), unit };
  }

  /** The text as in a scenario file; for a queue, from billionths of a bandwidth-delay product. */
  print(kind: Kind, amount: number): string {
    return this.core.printed(KINDS[kind], BigInt(Math.round(amount)));
  }
}

/** The core's answer. Raises InputError if the core reports an error. */
function refused({ fine, answer }: { fine: boolean; answer: string }): string {
  if (fine) return answer;
  const { code, message, fix, field } = JSON.parse(answer) as { code: string; message: string; fix: string; field: string | null };
  throw new InputError(code, message, fix, field ?? undefined);
}
