// Warnings about figures that show less than they seem to, in the words of the command line
// (src/sawtooth/run/metadata.py).

import type { Experiment } from "./experiment";
import { byMarks } from "./control";
import type { Language } from "./language";

/** Flows whose control needs ECN, but whose receiving host does not negotiate it. */
export function warnings({ flows, names, question }: Experiment, language: Language): string[] {
  if (Number(question.scenario.host?.ecn ?? 0) !== 0) return [];
  return flows.flatMap(({ control, cc }, at) =>
    byMarks(control, language)
      ? [
          `flow "${names[at]}": without ECN, ${cc} slows down only after losses. The receiving host ` +
            "does not negotiate ECN: set host.ecn = 2, Linux's default",
        ]
      : [],
  );
}
