// The scenario as a file of the command line, and back.

import { InputError } from "./problem";
import type { Question } from "./asked";
import { called, type Control } from "./control";
import type { Language } from "./language";
import { shaped, type Scenario } from "./scenario";

export const LARGEST = 4 << 20;

/** As TOML: a scenario; or, where controls are compared that each have the path for themselves, a study. */
export function toml({ scenario, alone }: Question): string {
  const { interval: _, ...asked } = scenario;
  const compared = alone ? controls(asked) : undefined;
  if (compared === undefined) return text(asked, "");
  const study = [`name = ${value_(asked.name ?? "controls")}`, 'title = "Congestion controls compared"', ""];
  const flow = { ...asked.flows![0], name: COMPARED };
  const vary = ["", "[vary]", `"flows.${COMPARED}.cc" = ${value_(compared)}`];
  return `${study.join("\n")}\n${text({ ...asked, flows: [flow] }, "scenario")}${vary.join("\n")}\n`;
}

/** What a file asks, a scenario or a study of that form. Raises InputError; what fields hold is looked at by the compiler. */
export function read(text: string, language: Language): Question {
  const told = language.tables(text);
  const { scenario: inner, vary } = told as { scenario?: Record<string, unknown>; vary?: Record<string, unknown> };
  if (inner === undefined) return { scenario: plain(told), alone: false };
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

/** What gives the same numbers, to be typed into a shell: a name of somebody else's link is one word there, and no option. */
export function command({ scenario }: Question): string {
  return `sawtooth run ${word(fileName(scenario))}`;
}

/** What its file is called: in this directory. */
export function fileName({ name = "scenario" }: Scenario): string {
  return `${name.replace(/[/\\]/g, "-").replace(/^[.-]+/, "") || "scenario"}.toml`;
}

function word(text: string): string {
  return /^[\w.,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const COMPARED = "compared";

/** Those of the flows, where the flows differ in nothing else. */
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

/** What a page has no use for is left out, what it cannot have is refused when it is compiled. */
function plain(told: Record<string, unknown>): Scenario {
  const { warmup: _, traffic: __, interval: ___, topology, ...scenario } = told;
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
