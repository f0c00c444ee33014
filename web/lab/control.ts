// Which congestion control a flow has: by name, or another text of one.

import { shown } from "./fields";
import type { Language } from "./language";

export type Control = string | { name: string; variant: string };

/** Those that are what they are by ECN's marks. */
const BY_MARKS = ["dctcp", "prague", "bbr3-ecn"];

/** What it is called: "bbr3-ecn". */
export function called(control: Control): string {
  // A link may hold anything, and is shown before it is refused.
  return typeof control === "object" && control !== null ? `${shown(control.name)}-${shown(control.variant)}` : String(control);
}

export function byMarks(control: Control): boolean {
  return BY_MARKS.includes(called(control));
}

/** Those of the simulator, each followed by its variants. */
export function choices({ controls, variants }: Language): Control[] {
  return controls.flatMap((name) => [name, ...(variants[name] ?? []).map((variant) => ({ name, variant }))]);
}
