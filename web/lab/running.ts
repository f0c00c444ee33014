// Progress of a simulation that takes more than a second, with a button (or Escape) that cancels it.

import { significant } from "./amount";

/** Nothing is shown before this time. */
const AT_ONCE_MS = 1_000;

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

export class Running {
  private state: "idle" | "running" | "cancelled" = "idle";
  private sinceMs = 0;

  /** `cancel`: stop where it is. `again`: restart from the beginning. */
  constructor(
    private readonly cancel: () => void,
    private readonly again: () => void,
  ) {
    at("run-cancel").addEventListener("click", () => (this.state === "cancelled" ? this.again() : this.end()));
    addEventListener("keydown", (event) => {
      // A zoomed figure handles Escape first.
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

  /** Reports the simulated seconds so far, of all. */
  reached(s: number, ofS: number): void {
    if (this.state !== "running" || performance.now() - this.sinceMs < AT_ONCE_MS) return;
    at("running").hidden = false;
    at<HTMLProgressElement>("run-progress").value = s / ofS;
    at("run-far").textContent = `Simulated: ${significant(s, 3)} s of ${ofS} s`;
  }

  /** The run has ended, or there is none. */
  ended(): void {
    this.state = "idle";
    at("running").hidden = true;
  }

  /** Escape or the button; the button stays in place. */
  private end(): void {
    this.state = "cancelled";
    this.show("Run it again");
    this.cancel();
  }

  private show(button: string): void {
    at("run-cancel").textContent = button;
  }
}
