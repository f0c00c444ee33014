// Time: a position in the simulation that can be stepped, dragged and played in slow motion.

import { made } from "../fields";

/** Simulated seconds per second. */
const SPEEDS = [
  [1, "real time"],
  [1e-1, "10 times slower"],
  [1e-2, "100 times slower"],
  [1e-3, "1000 times slower"],
  [1e-4, "10 000 times slower"],
] as const;
/** At the default speed, a round trip takes at least this long to watch. */
const ROUND_TRIP_S = 1.5;
/** With reduced motion, playing shows single pictures: this many per round trip, each for this long. */
const STILLS = 4;
const STILL_MS = 900;

export interface Listener {
  /** The time changed to this value. */
  moved(t: number): void;
  /** Steps to the next or the previous event. */
  step(direction: 1 | -1): void;
  /** The time up to which playing can continue. */
  limit(t: number): number;
}

export class Player {
  readonly root = made("div", "player");
  t = 0;
  private durationS = 1;
  private rttS = 0.02;
  private playing = false;
  private frame = 0;
  private readonly play: HTMLButtonElement;
  private readonly range = made("input", "");
  private readonly speed = made("select", "");
  private readonly clock = made("output", "");

  constructor(private readonly listener: Listener) {
    const button = (words: string, act: () => void): HTMLButtonElement => {
      const one = Object.assign(made("button", ""), { type: "button", textContent: words });
      one.addEventListener("click", act);
      return one;
    };
    this.play = button("Play", () => this.toggle());
    Object.assign(this.range, { type: "range", min: "0", max: "1", step: "0.0005" });
    this.range.setAttribute("aria-label", "Time of the simulation");
    this.range.addEventListener("input", () => this.go(Number(this.range.value) * this.durationS));
    for (const [value, words] of SPEEDS) this.speed.append(Object.assign(made("option", ""), { value: String(value), textContent: words }));
    this.speed.setAttribute("aria-label", "Speed");
    const buttons = made("span", "buttons");
    buttons.append(button("◀ Before", () => this.stepped(-1)), this.play, button("Next ▶", () => this.stepped(1)));
    this.root.append(buttons, this.speed, this.range, this.clock);
  }

  /** Another simulation. */
  set(durationS: number, rttS: number): void {
    if (durationS === this.durationS && rttS === this.rttS) return;
    [this.durationS, this.rttS] = [durationS, rttS];
    const fits = SPEEDS.find(([speed]) => rttS / speed >= ROUND_TRIP_S) ?? SPEEDS.at(-1)!;
    this.speed.value = String(fits[0]);
    this.t = Math.min(this.t, durationS);
  }

  go(t: number): void {
    this.t = Math.max(0, Math.min(t, this.durationS));
    this.range.value = String(this.t / this.durationS);
    this.clock.value = `${this.t.toFixed(this.rttS < 0.005 ? 6 : 4)} s`;
    this.range.setAttribute("aria-valuetext", this.clock.value);
    this.listener.moved(this.t);
  }

  stepped(direction: 1 | -1): void {
    this.pause();
    this.listener.step(direction);
  }

  toggle(): void {
    if (this.playing) return this.pause();
    if (this.t >= this.durationS) this.t = 0;
    this.playing = true;
    this.play.textContent = "Pause";
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.stills();
    else this.runs(performance.now());
  }

  pause(): void {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.frame);
    this.play.textContent = "Play";
    this.go(this.t);
  }

  get isPlaying(): boolean {
    return this.playing;
  }

  /** Sets the simulated time per second. */
  get pace(): number {
    return Number(this.speed.value);
  }

  private runs(last: number): void {
    this.frame = requestAnimationFrame((now) => {
      if (!this.playing) return;
      // A page that was in the background continues where it was.
      const passed = Math.min(0.1, (now - last) / 1000) * this.pace;
      this.go(Math.min(this.t + passed, this.listener.limit(this.t)));
      if (this.t >= this.durationS) this.pause();
      else this.runs(now);
    });
  }

  private stills(): void {
    this.frame = window.setTimeout(() => {
      if (!this.playing) return;
      this.go(Math.min(this.t + this.rttS / STILLS, this.listener.limit(this.t)));
      if (this.t >= this.durationS) this.pause();
      else this.stills();
    }, STILL_MS);
  }
}
