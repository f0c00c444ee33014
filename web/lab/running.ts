// A simulation that takes more than a second: how far it is, with a button that ends it, or Escape.

import { significant } from "./amount";

/** So long nothing is said. */
const AT_ONCE_MS = 1_000;

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

export class Running {
  private state: "idle" | "running" | "cancelled" = "idle";
  private sinceMs = 0;

  /** `cancel`: it is to end where it is. `again`: from its begin. */
  constructor(
    private readonly cancel: () => void,
    private readonly again: () => void,
  ) {
    at("run-cancel").addEventListener("click", () => (this.state === "cancelled" ? this.again() : this.end()));
    addEventListener("keydown", (event) => {
      // A figure that is zoomed into takes it first.
      if (event.key !== "Escape" || event.defaultPrevented || at("running").hidden || this.state !== "running") return;
      event.preventDefault();
      this.end();
    });
  }

  begun(): void {
    this.state = "running";
    this.sinceMs = performance.now();
    this.show("Cancel");
    at("running").hidden = true;
  }

  /** So many simulated seconds of all. */
  reached(s: number, ofS: number): void {
    if (this.state !== "running" || performance.now() - this.sinceMs < AT_ONCE_MS) return;
    at("running").hidden = false;
    at<HTMLProgressElement>("run-progress").value = s / ofS;
    at("run-far").textContent = `Simulated: ${significant(s, 3)} s of ${ofS} s`;
  }

  /** It has come to its end, or there is none. */
  ended(): void {
    this.state = "idle";
    at("running").hidden = true;
  }

  /** Escape or the button; the button stays where it is. */
  private end(): void {
    this.state = "cancelled";
    this.show("Run it again");
    this.cancel();
  }

  private show(button: string): void {
    at("run-cancel").textContent = button;
  }
}
