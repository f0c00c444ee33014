// Fields with a unit: a text as in a scenario file, a slider beside it, and any error below.

import type { Slider } from "./sliders";

export interface FieldSpec {
  /** Its path in a scenario: "path.rate". */
  field: string;
  label: string;
  hint: string;
  /** The name of its slider in sliders.ts; without one, text only. */
  slider?: string;
  /** The value of an empty field; without this, the field must not be empty. */
  optional?: string;
}

export const FIELDS: readonly FieldSpec[] = [
  { field: "path.rate", label: "Rate", hint: "of the bottleneck, e.g. 50 Mbit/s", slider: "rate" },
  { field: "path.rtt", label: "Round-trip time", hint: "without any queue, e.g. 20 ms", slider: "rtt" },
  { field: "path.loss", label: "Loss", hint: "of data, e.g. 1%", slider: "loss" },
  { field: "path.ack_loss", label: "Loss on the return path", hint: "of acknowledgements, e.g. 0.5%", slider: "loss" },
  { field: "path.reverse_rate", label: "Rate of the return path", hint: "of acknowledgements; empty: unlimited", slider: "limit", optional: "unlimited" },
  { field: "duration", label: "Duration", hint: "of the simulation, e.g. 10 s", slider: "duration" },
];

export class Field {
  readonly root: HTMLElement;
  readonly text: HTMLInputElement;
  private readonly range: HTMLInputElement | undefined;
  private readonly label = made("label", "");
  private readonly wrong: HTMLElement;

  constructor(
    readonly spec: FieldSpec,
    private readonly slider: Slider | undefined,
    changed: (text: string, moving: boolean) => void,
  ) {
    const id = `f-${spec.field.replaceAll(".", "-")}`;
    this.root = made("div", "field");
    this.label.htmlFor = id;
    this.label.textContent = spec.label;
    this.text = made("input", "");
    this.text.id = id;
    this.text.autocomplete = "off";
    this.text.spellcheck = false;
    this.text.title = spec.hint;
    this.text.placeholder = spec.optional ?? "";
    this.wrong = made("p", "wrong");
    this.wrong.id = `${id}-wrong`;
    this.wrong.hidden = true;
    this.text.setAttribute("aria-describedby", this.wrong.id);
    this.text.addEventListener("input", () => {
      this.follow();
      changed(this.text.value, false);
    });
    this.root.append(this.label, this.text);
    if (this.slider !== undefined) {
      const range = made("input", "");
      range.type = "range";
      range.min = "0";
      range.max = String(this.slider.last);
      range.setAttribute("aria-label", `${spec.label}, slider`);
      range.addEventListener("input", () => {
        this.text.value = this.slider!.text(Number(range.value));
        this.say(range);
        changed(this.text.value, true);
      });
      this.range = range;
      this.root.append(range);
    }
    this.root.append(this.wrong);
  }

  set(text: string): void {
    if (this.text.value !== text) this.text.value = text;
    this.follow();
  }

  /** Updates the field, but not while the reader is typing into it, unless `whole`. */
  show(value: unknown, whole: boolean): void {
    if (whole || document.activeElement !== this.text) this.set(value === undefined ? "" : shown(value));
  }

  /** Changes the quantity that this field holds. `empty`: the value of an empty field. */
  become({ label, hint }: { label: string; hint: string }, empty: string, sliding: boolean): void {
    this.label.textContent = label;
    this.text.title = hint;
    this.text.placeholder = empty;
    if (this.range === undefined) return;
    this.range.hidden = !sliding;
    this.range.setAttribute("aria-label", `${label}, slider`);
  }

  /** Shows what is wrong with the field, or clears it. */
  showError(words: string | undefined): void {
    this.wrong.hidden = words === undefined;
    this.wrong.textContent = words ?? "";
    if (words === undefined) this.text.removeAttribute("aria-invalid");
    else this.text.setAttribute("aria-invalid", "true");
  }

  private follow(): void {
    if (this.range === undefined) return;
    const place = this.slider!.place(this.text.value);
    this.range.disabled = place === null && this.text.value !== "";
    // For an empty field, the slider is at its end.
    this.range.value = String(place ?? this.slider!.last);
    this.say(this.range);
  }

  /**
   * The text that a screen reader reads for the slider: the field's text with its unit; for an empty field, its
   * default.
   */
  private say(range: HTMLInputElement): void {
    range.setAttribute("aria-valuetext", this.text.value || this.text.placeholder);
  }
}

/** A link from somebody else may hold anything in place of a text, even a table that cannot be converted to text. */
export function shown(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function made<K extends keyof HTMLElementTagNameMap>(tag: K, name: string): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (name !== "") element.className = name;
  return element;
}
