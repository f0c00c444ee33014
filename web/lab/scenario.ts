// The page's question: a scenario of topology "path" with these fields; all others have their defaults.

import type { Control } from "./control";
import { InputError } from "./problem";

/** As in a scenario file: a text is the limit of tail drop, a table names a kind. */
export type QueueGiven = string | ({ kind: string } & Record<string, unknown>);

/** Texts have a unit, as in a scenario file. Absent fields have the defaults of crates/scenario/src/parts.rs. */
export interface Scenario {
  name?: string;
  duration?: string;
  interval?: string;
  seed?: number;
  path?: Path;
  host?: Host;
  flows?: Flow[];
}

export interface Path {
  rate?: string;
  reverse_rate?: string;
  rtt?: string;
  queue?: QueueGiven;
  loss?: string;
  ack_loss?: string;
}

export interface Host {
  ecn?: boolean | number;
  ecn_fallback?: boolean;
  receive_buffer?: string;
  processing?: string;
  hz?: number;
}

export interface Flow {
  name?: string;
  cc?: Control;
  count?: number;
  start?: string;
  duration?: string;
  bytes?: string;
}

/**
 * Reads part of a link or file as a scenario: checks that tables are tables. Raises InputError; the compiler checks the
 * fields' contents.
 */
export function shaped(value: unknown): Scenario {
  const given = table(value, undefined);
  for (const name of ["path", "host"]) if (given[name] !== undefined) table(given[name], name);
  const { flows, name } = given;
  if (flows !== undefined) {
    if (!Array.isArray(flows)) throw new InputError("wrong-type", "a list is needed", "write [[flows]] for a list of tables", "flows");
    flows.forEach((flow, at) => table(flow, `flows.${at}`));
  }
  if (name !== undefined && (typeof name !== "string" || !/^[^\x00-\x1f\x7f]{1,100}$/.test(name))) {
    throw new InputError("bad-name", "that is not a name that can be used here", "use 1 to 100 characters on one line", "name");
  }
  return given as Scenario;
}

function table(given: unknown, field: string | undefined): Record<string, unknown> {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return given as Record<string, unknown>;
  throw new InputError("wrong-type", "a table is needed", `write it as a table: ${field ?? "path"} = { FIELD = VALUE }`, field);
}

/** The fields that the page supports; the command line supports all. */
const FIELDS: Record<string, readonly string[]> = {
  "": ["name", "topology", "duration", "interval", "seed", "path", "host", "flows"],
  path: ["rate", "reverse_rate", "rtt", "queue", "loss", "ack_loss"],
  host: ["ecn", "ecn_fallback", "receive_buffer", "processing", "hz"],
  flows: ["name", "cc", "count", "start", "duration", "bytes"],
};

/** Refuses fields that a scenario file may have but the page does not support. */
export function onlyKnown(scenario: Scenario): void {
  const check = (given: object, table: string, at: string): void => {
    for (const name of Object.keys(given)) {
      if (FIELDS[table]!.includes(name)) continue;
      const fix = `run it with the command line; fields here: ${FIELDS[table]!.join(", ")}`;
      throw new InputError("unsupported", "the page does not have this field", fix, at === "" ? name : `${at}.${name}`);
    }
  };
  check(scenario, "", "");
  const { topology } = scenario as { topology?: string };
  if (topology !== undefined && topology !== "path") {
    throw new InputError("unsupported", `the page does not have the topology "${topology}"`, "run it with the command line", "topology");
  }
  check(scenario.path ?? {}, "path", "path");
  check(scenario.host ?? {}, "host", "host");
  (scenario.flows ?? []).forEach((flow, index) => check(flow, "flows", `flows.${index}`));
}

export const DEFAULTS = {
  duration: "60 s",
  interval: "1 s",
  seed: 1,
  path: { rate: "100 Mbit/s", rtt: "20 ms", queue: "1 bdp", loss: "0%", ack_loss: "0%" },
  flow: { cc: "cubic", count: 1, start: "0 s" },
} as const;
