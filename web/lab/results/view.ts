// One result, or several compared: lines, figures and tables from the server.

import { draw, type Figure } from "../../draw/index";
import { made } from "../fields";

/** In the format of src/sawtooth/lab/result_page.py, study_page.py and comparison_page.py. */
export interface ResultView {
  heading: string;
  lead?: string;
  lines?: string[];
  figures: Figure[];
  tables: { title: string; columns: string[]; rows: string[][]; all: number }[];
}

/** A result's own report, for a separate page. */
export function link(report: string | false): HTMLElement[] {
  if (report === false) return [];
  return [Object.assign(made("a", "button"), { href: report, target: "_blank", rel: "noopener", textContent: "Open its report" })];
}

export function show(host: HTMLElement, view: ResultView, report: string | false): void {
  const heading = Object.assign(made("h2", ""), { textContent: view.heading, tabIndex: -1 });
  host.replaceChildren(heading, ...link(report));
  if (view.lead !== undefined) host.append(Object.assign(made("p", "lead"), { textContent: view.lead }));
  for (const line of view.lines ?? []) host.append(Object.assign(made("p", view.lead === undefined ? "" : "aside"), { textContent: line }));
  for (const figure of view.figures) {
    const [title, place] = [made("h3", ""), made("div", "")];
    host.append(title, place);
    try {
      title.textContent = figure.title;
      draw(place, figure);
    } catch {
      // From another version, or damaged: shows the rest anyway.
      place.textContent = "This version cannot draw this figure; the report has it.";
    }
  }
  for (const { title, columns, rows, all } of view.tables) host.append(...table(title, columns, rows, all));
  heading.focus({ preventScroll: true });
  host.scrollIntoView();
}

function table(title: string, columns: string[], rows: string[][], all: number): HTMLElement[] {
  const line = (tag: "th" | "td", cells: string[]): HTMLElement => {
    const made_ = made("tr", "");
    made_.append(...cells.map((text) => Object.assign(made(tag, ""), { textContent: text })));
    return made_;
  };
  const shown = made("table", "");
  shown.append(line("th", columns), ...rows.map((row) => line("td", row)));
  const scroll = Object.assign(made("div", "scroll"), { tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  scroll.append(shown);
  const left = all - rows.length;
  const more = left > 0 ? [Object.assign(made("p", ""), { textContent: `… and ${left} more rows` })] : [];
  return [Object.assign(made("h3", ""), { textContent: title }), scroll, ...more];
}
