// Which congestion control a flow has: by name, or another text of one.

import { shown } from "./fields";
import type { Language } from "./language";

export type Control = string | { name: string; variant: string };

/** What it is called: "bbr3-ecn". */
export function called(control: Control): string {
  // A link may hold anything, and is shown before it is refused.
  return typeof control === "object" && control !== null ? `${shown(control.name)}-${shown(control.variant)}` : String(control);
}

/** Whether it is what it is by ECN's marks. */
export function byMarks(control: Control, { records }: Language): boolean {
  const [name, variant] = typeof control === "object" ? [control.name, control.variant] : [control, null];
  return records.get(name)?.by_marks.includes(variant) === true;
}

/** Those of the simulator, each followed by its variants. */
export function choices({ controls, records }: Language): Control[] {
  return controls.flatMap((name) =>
    (records.get(name)?.simulated ?? []).map((variant) => (variant === null ? name : { name, variant })),
  );
}
