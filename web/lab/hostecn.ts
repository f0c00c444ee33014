// Whether both ends negotiate explicit congestion notification, as with Linux's tcp_ecn.

import { made } from "./fields";

const CHOICES: [value: string, words: string][] = [
  ["0", "none (0)"],
  ["2", "agree (2)"],
  ["1", "ask (1)"],
];

export class HostEcn {
  readonly root = made("div", "field");
  private readonly select = made("select", "");
  private readonly wrong = made("p", "wrong");

  constructor(changed: (ecn: number) => void) {
    const label = made("label", "");
    label.htmlFor = this.select.id = "f-host-ecn";
    label.textContent = "ECN of the hosts";
    this.select.append(...CHOICES.map(([value, textContent]) => Object.assign(made("option", ""), { value, textContent })));
    this.select.title = "tcp_ecn, of which 2 is Linux's default; dctcp and prague ask by themselves";
    this.wrong.hidden = true;
    this.wrong.id = "f-host-ecn-wrong";
    this.select.setAttribute("aria-describedby", this.wrong.id);
    this.select.addEventListener("change", () => changed(Number(this.select.value)));
    this.root.append(label, this.select, this.wrong);
  }

  set(ecn: unknown): void {
    this.select.value = String(Number(ecn ?? 0));
  }

  showError(words: string | undefined): void {
    this.wrong.hidden = words === undefined;
    this.wrong.textContent = words ?? "";
    if (words === undefined) this.select.removeAttribute("aria-invalid");
    else this.select.setAttribute("aria-invalid", "true");
  }
}
