// What a page asks: a scenario file of topology "path", of which it has these fields; all others have their defaults.

import type { Control } from "./control";
import { InputError } from "./problem";
import type { QueueGiven } from "./queues";

/** Text has its unit, as in a scenario file. What is absent has the default of src/sawtooth/scenario/parts.py. */
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
}

export interface Flow {
  name?: string;
  cc?: Control;
  count?: number;
  start?: string;
  duration?: string;
  bytes?: string;
}

/** Something of a link or file as a scenario: tables are tables. Raises InputError; what fields hold is the compiler's. */
export function shaped(told: unknown): Scenario {
  const given = table(told, undefined);
  for (const name of ["path", "host"]) if (given[name] !== undefined) table(given[name], name);
  const { flows, name } = given;
  if (flows !== undefined) {
    if (!Array.isArray(flows)) throw new InputError("wrong-type", "a list is needed", "write [[flows]] for a list of tables", "flows");
    flows.forEach((flow, at) => table(flow, `flows.${at}`));
  }
  if (name !== undefined && (typeof name !== "string" || !/^[^\x00-\x1f\x7f]{1,100}$/.test(name))) {
    throw new InputError("bad-name", "that is not a name that can be used here", "1 to 100 characters on one line", "name");
  }
  return given as Scenario;
}

function table(given: unknown, field: string | undefined): Record<string, unknown> {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return given as Record<string, unknown>;
  throw new InputError("wrong-type", "a table is needed", `write [${field ?? "path"}] and its fields below`, field);
}

export const DEFAULTS = {
  duration: "60 s",
  interval: "1 s",
  seed: 1,
  path: { rate: "100 Mbit/s", rtt: "20 ms", queue: "1 bdp", loss: "0%", ack_loss: "0%" },
  flow: { cc: "cubic", count: 1, start: "0 s" },
} as const;
