// The bottleneck's queue: its limit, its kind, and whether it marks. Other parameters can only come from a file or a
// link.

import { Field, made, shown as text } from "./fields";
import type { Language, QueueRecord } from "./language";
import type { InputError } from "./problem";
import { DEFAULTS, type QueueGiven } from "./scenario";
import type { Slider } from "./sliders";

/** For tail drop, which has only a limit. */
const PLAIN = { label: "Queue", hint: "e.g. 1 bdp, 100 packets, 64 KiB, 20 ms" };

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
  /** The last limit of tail drop, to restore. */
  private plain: string = DEFAULTS.path.queue;

  constructor(
    private readonly language: Language,
    slider: Slider,
    private readonly changed: (queue: QueueGiven, moving?: boolean) => void,
  ) {
    this.limit = new Field({ field: "path.queue", ...PLAIN }, slider, (text, moving) => this.limited(text, moving));
    const label = made("label", "");
    label.htmlFor = this.kind.id = "f-kind";
    label.textContent = "Kind of queue";
    const plain = Object.assign(made("option", ""), { value: "", textContent: "tail drop" });
    const known = [...language.queues.values()].map(({ kind, label }) => Object.assign(made("option", ""), { value: kind, textContent: label }));
    this.kind.append(plain, ...known);
    this.wrong.hidden = true;
    this.wrong.id = "f-kind-wrong";
    this.kind.setAttribute("aria-describedby", this.wrong.id);
    this.kind.addEventListener("change", () => {
      const kind = this.kind.value;
      this.changed(kind === "" ? this.plain : { kind, ...language.queues.get(kind)?.needs });
    });
    this.marks.type = "checkbox";
    this.marks.addEventListener("change", () => this.edit("ecn", this.marks.checked));
    this.marksRoot.append(this.marks, " marks packets of ECN flows instead of dropping them");
    const root = made("div", "field");
    root.append(label, this.kind, this.marksRoot, this.wrong);
    this.roots = [this.limit.root, root, this.above.root];
  }

  /** `whole`: also updates a field that the reader is typing into. */
  set(queue: QueueGiven, whole: boolean): void {
    const table = typeof queue === "object" && queue !== null ? queue : undefined;
    const kind = table === undefined ? "" : text(table.kind);
    // The text belonged to another kind.
    const anew = whole || kind !== this.shown;
    this.queue = queue;
    this.shown = kind;
    if (typeof queue === "string") this.plain = queue;
    this.kind.value = kind;
    const { record } = this;
    const limit = record?.limit;
    const empty = this.otherwise(limit?.field) || (limit?.absent ?? "");
    this.limit.become(record === undefined ? PLAIN : words(record), empty, limit === undefined || limit.counts === "packets");
    this.limit.show(table === undefined ? queue : limit && table[limit.field], anew);
    const ecn = this.fields["ecn"];
    const above = this.marksAbove;
    this.marksRoot.hidden = ecn === undefined;
    this.marks.checked = (table?.["ecn"] ?? ecn) === true;
    this.above.root.hidden = above === undefined;
    this.above.become({ label: "Marks above", hint: this.above.spec.hint }, this.otherwise(above) || "no delay", false);
    this.above.show(above === undefined ? "" : table?.[above], anew);
  }

  /** Shows an error at the queue; returns true if it belongs there. */
  showError(error: InputError | undefined, words: string | undefined): boolean {
    const [, queue, part] = error?.field?.split(".") ?? [];
    const its = error?.field?.startsWith("path.queue") === true && queue === "queue";
    const of = (field: string | undefined): boolean => its && field !== undefined && part === field;
    const limit = of(this.ownLimit) || (its && typeof this.queue === "string");
    const above = of(this.marksAbove);
    const kind = its && !limit && !above;
    this.limit.showError(limit ? words : undefined);
    this.above.showError(above ? words : undefined);
    this.wrong.hidden = !kind;
    this.wrong.textContent = kind ? (words ?? "") : "";
    if (kind) this.kind.setAttribute("aria-invalid", "true");
    else this.kind.removeAttribute("aria-invalid");
    return its;
  }

  /** The fields of its kind, with their defaults. */
  private get fields(): Readonly<Record<string, unknown>> {
    return this.record?.fields ?? {};
  }

  private get record(): QueueRecord | undefined {
    return this.language.queues.get(this.ownKind);
  }

  private get ownKind(): string {
    return typeof this.queue === "object" && this.queue !== null ? text(this.queue.kind) : "";
  }

  private get marksAbove(): string | undefined {
    return this.record?.marks_above ?? undefined;
  }

  private get ownLimit(): string | undefined {
    return this.record?.limit.field;
  }

  /** The default of a field of its kind; "" if it has none. */
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

function words({ limit: { field, words, counts }, needs }: QueueRecord): { label: string; hint: string } {
  const hints = { packets: "e.g. 500 packets or 2 bdp; empty: the kind's default", bytes: "e.g. 400 kB or 50 ms" };
  const label = words === "" ? "Queue" : `Queue, ${words}`;
  return { label, hint: counts === null ? `with a unit, e.g. ${needs[field] ?? "8 MiB"}` : hints[counts] };
}
