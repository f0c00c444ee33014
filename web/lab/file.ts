// Writes the question as a file for the command line, and reads such files.

import { InputError } from "./problem";
import type { Question } from "./experiment";
import { called, type Control } from "./control";
import type { Language } from "./language";
import { shaped, type Scenario } from "./scenario";

export const LARGEST = 4 << 20;

/** The question as TOML: a scenario; or a study, if controls are compared each alone on the path. */
export function toml({ scenario, alone }: Question): string {
  const { interval: _, ...fields } = scenario;
  const compared = alone ? controls(fields) : undefined;
  if (compared === undefined) return text(fields, "");
  const study = [`name = ${value_(fields.name ?? "controls")}`, 'title = "Congestion controls compared"', ""];
  const flow = { ...fields.flows![0], name: COMPARED };
  const vary = ["", "[vary]", `"flows.${COMPARED}.cc" = ${value_(compared)}`];
  return `${study.join("\n")}\n${text({ ...fields, flows: [flow] }, "scenario")}${vary.join("\n")}\n`;
}

/**
 * Reads a scenario, or a study of that form, as a question. Raises InputError; the compiler checks the fields'
 * contents.
 */
export function read(text: string, language: Language): Question {
  const tables = language.tables(text);
  const { scenario: inner, vary } = tables as { scenario?: Record<string, unknown>; vary?: Record<string, unknown> };
  if (inner === undefined) return { scenario: plain(tables), alone: false };
  const scenario = plain(inner);
  const [axis, ...more] = Object.entries(vary ?? {});
  const [flow, ...others] = scenario.flows ?? [{}];
  const [field, compared] = axis ?? [];
  if (more.length > 0 || others.length > 0 || !Array.isArray(compared) || !/^flows\.[^.]+\.cc$/.test(field ?? "")) {
    const message = "of studies the page has those that vary the congestion control of one flow";
    throw new InputError("unsupported", message, "run it with the command line", "vary");
  }
  const { name: _, ...common } = flow ?? {};
  return { scenario: { ...scenario, flows: compared.map((cc: Control) => ({ ...common, cc })) }, alone: true };
}

/**
 * The shell command that gives the same numbers. A name from somebody else's link becomes one word, and never an
 * option.
 */
export function command({ scenario }: Question): string {
  return `sawtooth run ${word(fileName(scenario))}`;
}

/** The file's name in the current directory. */
export function fileName({ name = "scenario" }: Scenario): string {
  return `${name.replace(/[/\\]/g, "-").replace(/^[.-]+/, "") || "scenario"}.toml`;
}

function word(text: string): string {
  return /^[\w.,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const COMPARED = "compared";

/** The controls of flows that differ in nothing else. */
function controls({ flows = [] }: Scenario): Control[] | undefined {
  const rest = new Set(flows.map(({ cc: _, name: __, ...flow }) => JSON.stringify(flow)));
  const found = flows.map(({ cc }) => cc ?? "cubic");
  const different = new Set(found.map(called)).size === flows.length;
  return flows.length > 1 && rest.size === 1 && different ? found : undefined;
}

function text({ path, host, flows, ...rest }: Scenario, at: string): string {
  const inner = (name: string): string => (at === "" ? name : `${at}.${name}`);
  const lines = [...(at === "" ? [] : [`[${at}]`]), ...values({ ...rest, topology: "path" })];
  if (path !== undefined) lines.push("", `[${inner("path")}]`, ...values(path));
  if (host !== undefined) lines.push("", `[${inner("host")}]`, ...values(host));
  for (const flow of flows ?? []) lines.push("", `[[${inner("flows")}]]`, ...values(flow));
  return `${lines.join("\n")}\n`;
}

/** Omits what a page cannot use; the compiler refuses what it does not support. */
function plain(tables: Record<string, unknown>): Scenario {
  const { warmup: _, traffic: __, interval: ___, topology, ...scenario } = tables;
  if (topology !== undefined && topology !== "path") {
    const message = `the page does not have the topology "${String(topology)}"`;
    throw new InputError("unsupported", message, "run it with the command line", "topology");
  }
  return shaped(scenario);
}

function values(table: object): string[] {
  return Object.entries(table).map(([name, value]) => `${name} = ${value_(value)}`);
}

/** JSON's escapes are TOML's too. */
function value_(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(value_).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value).map(([name, one]) => `${name} = ${value_(one)}`).join(", ")} }`;
}
