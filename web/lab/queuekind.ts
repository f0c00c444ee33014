// Which queue the bottleneck has: a tail drop with a limit, or a kind that tc knows, with its defaults.

import { made } from "./fields";
import { QUEUE_KINDS, type QueueGiven } from "./queues";
import { DEFAULTS } from "./scenario";

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

export class QueueKind {
  readonly root = made("div", "field");
  private readonly select = made("select", "");
  private readonly wrong = made("p", "wrong");

  constructor(changed: (queue: QueueGiven) => void) {
    const label = made("label", "");
    label.htmlFor = this.select.id = "f-kind";
    label.textContent = "Kind of queue";
    const plain = Object.assign(made("option", ""), { value: "", textContent: "tail drop" });
    const known = QUEUE_KINDS.map((kind) => Object.assign(made("option", ""), { value: kind, textContent: WORDS[kind] ?? kind }));
    this.select.append(plain, ...known);
    this.wrong.hidden = true;
    this.select.addEventListener("change", () => {
      const kind = this.select.value;
      changed(kind === "" ? DEFAULTS.path.queue : { kind, ...NEEDED[kind] });
    });
    this.root.append(label, this.select, this.wrong);
  }

  /** The parameters of a table are a file's or a link's. */
  set(queue: QueueGiven): void {
    this.select.value = typeof queue === "string" ? "" : queue.kind;
  }

  tell(words: string | undefined): void {
    this.wrong.hidden = words === undefined;
    this.wrong.textContent = words ?? "";
  }
}
