// The flows: one row each, with congestion control, number of connections, start and bytes.

import { called, choices, type Control } from "./control";
import { made, shown } from "./fields";
import type { Language } from "./language";
import { DEFAULTS, type Flow } from "./scenario";

const MOST = 6;

interface Row {
  root: HTMLElement;
  wrong: HTMLElement;
  /** The input fields, by their names in a scenario. */
  inputs: Map<string, HTMLElement>;
}

export class Flows {
  readonly root = made("div", "flows");
  private readonly add = made("button", "add");
  private rows: Row[] = [];
  private flows: Flow[] = [];
  private readonly choices: readonly Control[];

  constructor(
    language: Language,
    private readonly changed: (flows: Flow[]) => void,
  ) {
    this.choices = choices(language);
    this.add.type = "button";
    this.add.textContent = "Add a flow";
    this.add.addEventListener("click", () => {
      const used = this.flows.map(({ cc }) => cc);
      const cc = language.controls.find((one) => !used.includes(one)) ?? DEFAULTS.flow.cc;
      this.set([...this.flows, { cc }]);
      this.changed(this.flows);
      this.rows.at(-1)!.root.querySelector("select")!.focus();
    });
  }

  /** Replaces the flows. Creates rows only if their number changes, so that the focused field keeps the focus. */
  set(flows: readonly Flow[]): void {
    const anew = JSON.stringify(flows) !== JSON.stringify(this.flows);
    this.flows = flows.map((flow) => ({ ...flow }));
    if (!anew) return;
    this.rows = this.flows.map((flow, at) => this.row(flow, at));
    this.add.disabled = this.flows.length >= MOST;
    this.root.replaceChildren(...this.rows.map(({ root }) => root), this.add);
  }

  /** Shows an error at a flow's field; -1: at no flow. */
  showError(at: number, words: string, field?: string): void {
    this.rows.forEach(({ wrong, inputs }, index) => {
      wrong.hidden = index !== at;
      wrong.textContent = index === at ? words : "";
      for (const [name, input] of inputs) {
        if (index === at && name === field) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
    });
  }

  private row(flow: Flow, at: number): Row {
    const root = made("fieldset", "flow");
    const legend = made("legend", "");
    legend.textContent = `Flow ${at + 1}`;
    const cc = made("select", "");
    cc.setAttribute("aria-label", `Flow ${at + 1}: congestion control`);
    for (const choice of this.choices) {
      const option = made("option", "");
      option.value = option.textContent = called(choice);
      cc.append(option);
    }
    cc.value = called(flow.cc ?? DEFAULTS.flow.cc);
    cc.addEventListener("change", () => this.edit(at, { cc: this.choices[cc.selectedIndex]! }));
    const wrong = made("p", "wrong");
    wrong.hidden = true;
    wrong.id = `flow-${at}-wrong`;
    wrong.setAttribute("role", "alert");
    root.append(legend, cc, this.text(at, "count", "connections", shown(flow.count ?? DEFAULTS.flow.count), (value) =>
      ({ count: /^\d+$/.test(value.trim()) ? Number(value) : Number.NaN })));
    root.append(this.text(at, "start", "starts at", shown(flow.start ?? DEFAULTS.flow.start), (start) => ({ start })));
    root.append(this.text(at, "bytes", "sends", shown(flow.bytes ?? ""), (bytes) => ({ bytes: bytes.trim() === "" ? undefined : bytes }), "no end"));
    root.append(this.text(at, "name", "name", shown(flow.name ?? ""), (name) => ({ name: name.trim() === "" ? undefined : name }), "its control"));
    if (this.flows.length > 1) {
      const remove = made("button", "remove");
      remove.type = "button";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove flow ${at + 1}`);
      remove.addEventListener("click", () => {
        this.set(this.flows.filter((_, index) => index !== at));
        this.changed(this.flows);
        this.add.focus();
      });
      root.append(remove);
    }
    root.append(wrong);
    const inputs = new Map<string, HTMLElement>([["cc", cc]]);
    for (const input of root.querySelectorAll("input")) inputs.set(input.name, input);
    for (const input of inputs.values()) input.setAttribute("aria-describedby", wrong.id);
    return { root, wrong, inputs };
  }

  private text(
    at: number,
    name: string,
    words: string,
    value: string,
    read: (text: string) => { [field in keyof Flow]?: Flow[field] | undefined },
    empty = "",
  ): HTMLElement {
    const label = made("label", name);
    const input = made("input", "");
    input.name = name;
    input.value = value;
    input.placeholder = empty;
    input.autocomplete = "off";
    input.spellcheck = false;
    input.addEventListener("input", () => this.edit(at, read(input.value)));
    label.append(words, " ", input);
    return label;
  }

  private edit(at: number, change: { [field in keyof Flow]?: Flow[field] | undefined }): void {
    const edited = Object.entries({ ...this.flows[at], ...change }).filter(([, value]) => value !== undefined);
    this.flows = this.flows.map((flow, index) => (index === at ? (Object.fromEntries(edited) as Flow) : flow));
    this.changed(this.flows);
  }
}
