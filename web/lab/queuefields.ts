// The bottleneck's queue: its limit, which kind it is, and whether it marks. All of a kind's other parameters are a file's or a link's.

import { Field, made, shown as text } from "./fields";
import type { Language } from "./language";
import type { InputError } from "./problem";
import { ABOVE, LIMITS, PLAIN } from "./queuelimit";
import { DEFAULTS, type QueueGiven } from "./scenario";
import type { Slider } from "./sliders";

const WORDS: Record<string, string> = {
  pfifo: "pfifo: tail drop, in packets",
  bfifo: "bfifo: tail drop, in bytes",
  codel: "CoDel",
  fq_codel: "FQ-CoDel",
  red: "RED",
  pie: "PIE",
  fq_pie: "FQ-PIE",
  fq: "FQ",
  sfq: "SFQ",
  cake: "CAKE",
  dualpi2: "DualPI2 (L4S)",
  tbf: "token bucket",
};
/** What a kind needs that has no default. */
const NEEDED: Record<string, Record<string, string>> = {
  red: { limit: "400 kB" },
  tbf: { rate: "5 Mbit/s", burst: "20 kB", latency: "50 ms" },
};

export class QueueFields {
  readonly roots: HTMLElement[];
  private readonly limit: Field;
  private readonly kind = made("select", "");
  private readonly marks = made("input", "");
  private readonly marksRoot = made("label", "marks");
  private readonly above = new Field(
    { field: "path.queue.above", label: "Marks above", hint: "a delay, e.g. 1 ms; empty: the kind's default" },
    undefined,
    (text) => this.edit(this.marksAbove, text === "" ? undefined : text),
  );
  private readonly wrong = made("p", "wrong");
  private queue: QueueGiven = DEFAULTS.path.queue;
  private shown = "";
  /** The tail drop's limit, to come back to. */
  private plain: string = DEFAULTS.path.queue;

  constructor(
    private readonly language: Language,
    slider: Slider,
    private readonly changed: (queue: QueueGiven, moving?: boolean) => void,
  ) {
    this.limit = new Field({ field: "path.queue", ...shown(PLAIN) }, slider, (text, moving) => this.limited(text, moving));
    const label = made("label", "");
    label.htmlFor = this.kind.id = "f-kind";
    label.textContent = "Kind of queue";
    const plain = Object.assign(made("option", ""), { value: "", textContent: "tail drop" });
    const known = Object.keys(language.queues).map((kind) => Object.assign(made("option", ""), { value: kind, textContent: WORDS[kind] ?? kind }));
    this.kind.append(plain, ...known);
    this.wrong.hidden = true;
    this.wrong.id = "f-kind-wrong";
    this.kind.setAttribute("aria-describedby", this.wrong.id);
    this.kind.addEventListener("change", () => {
      const kind = this.kind.value;
      this.changed(kind === "" ? this.plain : { kind, ...NEEDED[kind] });
    });
    this.marks.type = "checkbox";
    this.marks.addEventListener("change", () => this.edit("ecn", this.marks.checked));
    this.marksRoot.append(this.marks, " marks packets of ECN flows instead of dropping them");
    const root = made("div", "field");
    root.append(label, this.kind, this.marksRoot, this.wrong);
    this.roots = [this.limit.root, root, this.above.root];
  }

  /** `whole`: also what somebody writes into. */
  set(queue: QueueGiven, whole: boolean): void {
    const table = typeof queue === "object" && queue !== null ? queue : undefined;
    const kind = table === undefined ? "" : text(table.kind);
    const limit = LIMITS[kind] ?? PLAIN;
    // What was written was another kind's.
    const anew = whole || kind !== this.shown;
    this.queue = queue;
    this.shown = kind;
    if (typeof queue === "string") this.plain = queue;
    this.kind.value = kind;
    this.limit.become(shown(limit), limit.empty ?? this.otherwise(limit.field), limit.bdp === true);
    this.limit.show(table === undefined ? queue : table[limit.field], anew);
    const ecn = this.fields["ecn"];
    const above = this.marksAbove;
    this.marksRoot.hidden = ecn === undefined;
    this.marks.checked = (table?.["ecn"] ?? ecn) === true;
    this.above.root.hidden = above === undefined;
    this.above.become({ label: "Marks above", hint: this.above.told.hint }, this.otherwise(above) || "no delay", false);
    this.above.show(above === undefined ? "" : table?.[above], anew);
  }

  /** What is wrong with it, in these words; true: it is of the queue. */
  tell(error: InputError | undefined, words: string | undefined): boolean {
    const [, queue, part] = error?.field?.split(".") ?? [];
    const its = error?.field?.startsWith("path.queue") === true && queue === "queue";
    const of = (field: string | undefined): boolean => its && field !== undefined && part === field;
    const limit = of(this.ownLimit) || (its && typeof this.queue === "string");
    const above = of(this.marksAbove);
    const kind = its && !limit && !above;
    this.limit.tell(limit ? words : undefined);
    this.above.tell(above ? words : undefined);
    this.wrong.hidden = !kind;
    this.wrong.textContent = kind ? (words ?? "") : "";
    if (kind) this.kind.setAttribute("aria-invalid", "true");
    else this.kind.removeAttribute("aria-invalid");
    return its;
  }

  /** The fields of its kind, and what each is where it is absent. */
  private get fields(): Readonly<Record<string, unknown>> {
    return this.language.queues[this.ownKind] ?? {};
  }

  private get ownKind(): string {
    return typeof this.queue === "object" && this.queue !== null ? text(this.queue.kind) : "";
  }

  private get marksAbove(): string | undefined {
    return ABOVE[this.ownKind];
  }

  private get ownLimit(): string | undefined {
    return LIMITS[this.ownKind]?.field;
  }

  /** What a field of its kind is where it is absent; "" where that is nothing. */
  private otherwise(field: string | undefined): string {
    return field === undefined ? "" : String(this.fields[field] ?? "");
  }

  private limited(text: string, moving: boolean): void {
    if (typeof this.queue === "string") this.changed(text, moving);
    else this.edit(this.ownLimit, text === "" ? undefined : text, moving);
  }

  private edit(field: string | undefined, value: unknown, moving = false): void {
    if (field === undefined || typeof this.queue !== "object") return;
    const { [field]: _, ...others } = this.queue;
    this.changed({ ...others, kind: this.queue.kind, ...(value === undefined ? {} : { [field]: value }) }, moving);
  }
}

function shown({ label, like }: { label: string; like: string }): { label: string; hint: string } {
  return { label, hint: like };
}
