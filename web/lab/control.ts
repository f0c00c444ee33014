// Which congestion control a flow has: by name, or another text of one, as src/sawtooth/scenario/control.py has them.

import { InputError } from "./problem";

export type Control = string | { name: string; variant: string };

/** What else than Linux's behaviour the simulator has under a control's name. */
const VARIANTS: Readonly<Record<string, readonly string[]>> = { bbr3: ["draft", "ecn"], reno: ["abe"], cubic: ["abe"] };
/** Those that are what they are by ECN's marks. */
const BY_MARKS = ["dctcp", "prague", "bbr3-ecn"];

export interface ControlRead {
  cc: string;
  variant: string | undefined;
}

/** What it is called: "bbr3-ecn". */
export function called(control: Control): string {
  // A link may hold anything, and is shown before it is refused.
  return typeof control === "object" && control !== null ? `${control.name}-${control.variant}` : String(control);
}

export function byMarks(control: Control): boolean {
  return BY_MARKS.includes(called(control));
}

/** Those of the simulator, each followed by its variants. */
export function choices(controls: readonly string[]): Control[] {
  return controls.flatMap((name) => [name, ...(VARIANTS[name] ?? []).map((variant) => ({ name, variant }))]);
}

/** Raises InputError, of `cc`. */
export function control(given: unknown, controls: readonly string[]): ControlRead {
  if (typeof given === "object" && given !== null && "variant" in given && !("source" in given)) return variant(given, controls);
  if (typeof given !== "string") {
    throw new InputError("unsupported", "the page has controls by name, and their variants", "run it with the command line", "cc");
  }
  if (!controls.includes(given)) {
    const message = `no congestion control is named "${given}" here`;
    throw new InputError("unknown-name", message, `choose one of ${controls.join(", ")}`, "cc");
  }
  return { cc: given, variant: undefined };
}

function variant(given: object, controls: readonly string[]): ControlRead {
  const other = Object.keys(given).find((field) => field !== "name" && field !== "variant");
  if (other !== undefined) {
    throw new InputError("unknown-field", "there is no such field", "fields here: name, variant", `cc.${other}`);
  }
  const { name, variant: text } = given as { name?: unknown; variant: unknown };
  if (name === undefined) {
    throw new InputError("missing-field", "this field is needed and missing", 'give "name"', "cc.name");
  }
  for (const [field, value] of [["name", name], ["variant", text]] as const) {
    if (typeof value === "string") continue;
    throw new InputError("wrong-type", "text is needed", `write it in quotes: ${field} = "…"`, `cc.${field}`);
  }
  const known = VARIANTS[name as string] ?? [];
  if (controls.includes(name as string) && known.includes(text as string)) return { cc: name as string, variant: text as string };
  const fix = known.length > 0 ? `choose one of: ${known.join(", ")}` : `${Object.keys(VARIANTS).join(", ")} have some; leave it out`;
  throw new InputError("unknown-name", `"${String(name)}" has no variant "${String(text)}"`, fix, "cc.variant");
}
