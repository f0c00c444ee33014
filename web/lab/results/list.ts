// The list of results: filter, sort and choose.

import { made } from "../fields";

/** In the format of src/sawtooth/lab/results.py. */
export interface Row {
  id: string;
  name: string;
  study: string;
  title: string;
  engine: string;
  when: string;
  scenario: string;
  problem: string;
  kind: "study" | "run" | "";
  points: number;
  done: number;
  bytes?: number;
  state: string;
  older: boolean;
  latest: boolean;
  report: string | false;
}

/** The most rows shown at once. */
const STEP = 200;
type Column = "when" | "name" | "engine" | "points" | "scenario" | "state";
const HEADS: readonly [Column, string][] = [
  ["when", "begun"],
  ["name", "result"],
  ["engine", "engine"],
  ["points", "points"],
  ["scenario", "scenario"],
  ["state", "state"],
];

export class List {
  private rows: Row[] = [];
  private readonly chosen: string[] = [];
  private by: Column = "when";
  private down = true;
  private most = STEP;
  private words = "";
  private state = "";

  constructor(
    private readonly table: HTMLTableElement,
    private readonly more: HTMLButtonElement,
    private readonly changed: (shown: number, of: number, chosen: readonly string[]) => void,
    private readonly open: (row: Row) => void,
  ) {
    more.addEventListener("click", () => {
      this.most += STEP;
      this.draw();
    });
  }

  add(rows: readonly Row[]): void {
    this.rows.push(...rows);
    this.draw();
  }

  filter(words: string, state: string): void {
    this.words = words.trim().toLowerCase();
    this.state = state;
    this.most = STEP;
    this.draw();
  }

  named(id: string): Row | undefined {
    return this.rows.find((row) => row.id === id);
  }

  private draw(): void {
    const found = this.rows.filter((row) => this.matches(row));
    const sign = this.down ? -1 : 1;
    found.sort((one, other) => sign * compared(value(one, this.by), value(other, this.by)));
    const head = made("tr", "");
    head.append(Object.assign(made("th", ""), { textContent: "compare" }), ...HEADS.map(([column, title]) => this.head(column, title)));
    this.table.replaceChildren(head, ...found.slice(0, this.most).map((row) => this.line(row)));
    this.more.hidden = found.length <= this.most;
    this.changed(found.length, this.rows.length, this.chosen);
  }

  private head(column: Column, title: string): HTMLElement {
    const cell = made("th", "");
    const button = Object.assign(made("button", ""), { type: "button", textContent: title });
    if (column === this.by) {
      cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      button.textContent = `${title} ${this.down ? "↓" : "↑"}`;
    }
    button.addEventListener("click", () => {
      this.down = column === this.by ? !this.down : column === "when" || column === "points";
      this.by = column;
      this.draw();
      this.table.querySelectorAll<HTMLElement>("th button")[HEADS.findIndex(([one]) => one === column)]?.focus();
    });
    cell.append(button);
    return cell;
  }

  private line(row: Row): HTMLElement {
    const line = made("tr", "");
    const cell = (text: string, css = ""): HTMLElement => Object.assign(made("td", css), { textContent: text });
    const open = Object.assign(made("button", ""), { type: "button", textContent: row.name });
    open.addEventListener("click", () => this.open(row));
    const name = made("td", "result");
    name.append(open);
    if (row.title !== "") name.append(Object.assign(made("div", "aside"), { textContent: row.title }));
    const state = cell(`${row.state}${row.older ? ", older format" : ""}`, `state ${row.state === "whole" ? "" : "bad"}`);
    if (row.problem !== "") state.append(Object.assign(made("div", "aside"), { textContent: row.problem }));
    const points = row.points === 0 ? "?" : row.done === row.points ? String(row.points) : `${row.done} of ${row.points}`;
    line.append(this.choice(row), cell(row.when.replace("T", " ").slice(0, 16)), name, cell(row.engine), cell(points), cell(row.scenario, "words"), state);
    return line;
  }

  private choice(row: Row): HTMLElement {
    const cell = made("td", "");
    const box = Object.assign(made("input", ""), { type: "checkbox", checked: this.chosen.includes(row.id) });
    box.setAttribute("aria-label", `Compare ${row.name}`);
    box.addEventListener("change", () => {
      // In the order of choice: the first is the reference.
      if (box.checked) this.chosen.push(row.id);
      else this.chosen.splice(this.chosen.indexOf(row.id), 1);
      this.changed(this.rows.filter((one) => this.matches(one)).length, this.rows.length, this.chosen);
    });
    cell.append(box);
    return cell;
  }

  private matches(row: Row): boolean {
    if (this.state !== "" && row.state !== this.state) return false;
    const text = `${row.name} ${row.study} ${row.title} ${row.engine} ${row.scenario} ${row.state} ${row.problem}`.toLowerCase();
    return this.words.split(/\s+/).every((word) => text.includes(word));
  }
}

function value(row: Row, column: Column): string | number {
  // Each time has its own offset.
  return column === "when" ? Date.parse(row.when) || 0 : row[column];
}

function compared(one: string | number, other: string | number): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}
