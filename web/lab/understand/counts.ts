// Counts of each kind of event per flow: a table whose rows step from one event to the next.

import { made } from "../fields";
import { KINDS } from "./events";
import { kinds, type Story } from "./story";

/** `next`: steps to the next event of a kind. */
export function table(stories: readonly Story[], next: (kind: string) => void): HTMLElement {
  const whole = made("table", "counts");
  const row = (...cells: HTMLElement[]): HTMLElement => {
    const one = made("tr", "");
    one.append(...cells);
    return one;
  };
  const cell = (tag: "th" | "td", words: string): HTMLElement => Object.assign(made(tag, ""), { textContent: words });
  whole.append(row(cell("th", "what happened"), ...stories.map(({ name }) => cell("th", name)), cell("th", "where it is written")));
  const different = (words: string[]): string => [...new Set(words.filter((one) => one !== ""))].join("; ");
  for (const kind of kinds(stories)) {
    const event = KINDS[kind]!;
    const having = stories.filter(({ counts }) => counts.has(kind));
    const name = made("td", "");
    const button = Object.assign(made("button", "kind"), { type: "button", textContent: different(having.map(({ cc }) => event.short(cc))) });
    button.title = "go to the next of these";
    button.addEventListener("click", () => next(kind));
    name.append(button);
    const counts = stories.map(({ counts }) => cell("td", String(counts.get(kind) ?? "–")));
    whole.append(row(name, ...counts, cell("td", different(having.map(({ cc }) => event.source(cc))) || "in no RFC")));
  }
  return whole;
}
