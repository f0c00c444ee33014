// Names the congestion control of a flow: its name, or the text of a table.

import { shown } from "./fields";
import type { Language } from "./language";

export type Control = string | { name: string; variant: string };

/** The displayed name: "bbr3-ecn". */
export function called(control: Control): string {
  // A link may hold anything, and is displayed before it is refused.
  return typeof control === "object" && control !== null ? `${shown(control.name)}-${shown(control.variant)}` : String(control);
}

/** Whether the control depends on ECN marks. */
export function byMarks(control: Control, { records }: Language): boolean {
  const [name, variant] = typeof control === "object" ? [control.name, control.variant] : [control, null];
  return records.get(name)?.by_marks.includes(variant) === true;
}

/** The simulator's controls, each followed by its variants. */
export function choices({ controls, records }: Language): Control[] {
  return controls.flatMap((name) =>
    (records.get(name)?.simulated ?? []).map((variant) => (variant === null ? name : { name, variant })),
  );
}
