// The page's first screen: two flows on the same line, each flow's goodput and packets, and one slider for loss.

import { draw, type Chart } from "../../draw/index";
import { group, type Member } from "../../draw/group";
import * as permalink from "../permalink";
import { playhead } from "../playhead";
import type { Experiment } from "../experiment";
import { made } from "../fields";
import { module } from "../module";
import { PRESETS } from "../presets";
import type { RunLines } from "../series";
import type { Slider } from "../sliders";
import { digits, percent, type Row } from "../summary";
import { Paths } from "../understand/paths";
import type { Answer, Question } from "../understand/protocol";
import { restored, type First } from "./first";
import { called, GROUP, headline, sentences, short, STEPS, windows, type StoryLine } from "./steps";
import "./opening.css";

/** A round trip takes this long to watch. */
const ROUND_TRIP_S = 1.8;
/** With reduced motion, there are still pictures: this many per round trip, one for each press of the button. */
const STILLS = 4;
/** The most of the line's capacity that is simulated before packets appear, in bits. */
const BEFORE_BITS = 5e8;
/** After an answer, packets wait this long for another one. */
const QUIET_MS = 120;
const GUESSES = [0.9, 0.5, 0.2, 0.05] as const;

/** Written by tools/lab.py: the answers that the page can show before its core is loaded. */
declare const FIRST: readonly First[];

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

/** `link`: the address of a step. */
export class Opening {
  private readonly paths = new Paths((question) => this.post(question));
  private readonly range = at<HTMLInputElement>("story-loss");
  private readonly play = at<HTMLButtonElement>("story-play");
  private readonly reduced = matchMedia("(prefers-reduced-motion: reduce)");
  /** The pointer is over a figure, which then has its own line. */
  private pointed = false;
  private readonly member: Member = { show: () => undefined, point: (x) => (this.pointed = x !== null) };
  private slider: Slider | undefined;
  private chart: Chart | undefined;
  private worker: Worker | undefined;
  private begun = false;
  private given: { experiment: Experiment; runs: readonly RunLines[]; rows: readonly Row[] } | undefined;
  private looking = false;
  private number = 0;
  private t = 0;
  private fromS = 0;
  private frame = 0;
  private playing: boolean;
  private inSight = true;
  private settling: ReturnType<typeof setTimeout> | undefined;
  /** No guess has been made yet, so the numbers are hidden. */
  private guessing = false;
  private asks = 0;

  constructor(private readonly link: (step: number) => string) {
    this.playing = !this.reduced.matches;
    at("story-paths").append(this.paths.root);
    this.paths.root.setAttribute("role", "group");
    this.paths.root.setAttribute("aria-label", "The packets of both flows");
    this.range.disabled = true;
    this.play.addEventListener("click", () => this.toggled());
    this.guesses();
    new IntersectionObserver(([seen]) => {
      this.inSight = seen!.isIntersecting;
      this.go();
    }).observe(at("story-paths"));
    this.reduced.addEventListener("change", () => {
      this.playing = !this.reduced.matches;
      this.go();
    });
    for (const name of [GROUP, "time"]) group(name).join(this.member);
    this.named();
  }

  /** Shows the answer to the question in an address, if the build simulated it. */
  first(hash: string): void {
    const found = FIRST.find(({ experiment }) => permalink.asks(hash || `#${permalink.written(PRESETS[0]!.question)}`, experiment.question));
    if (found === undefined) return;
    const { experiment, rows, place, last } = found;
    this.range.max = String(last);
    this.question(experiment, experiment.question.scenario.path!.loss, place, permalink.view(hash).step);
    this.shown(experiment, restored(found), rows, true);
  }

  /** Lets the slider ask, once the core is loaded. */
  begin(slider: Slider, changed: (text: string) => void): void {
    this.slider = slider;
    this.range.disabled = false;
    this.range.max = String(slider.last);
    this.range.addEventListener("input", () => {
      this.reveal();
      changed(slider.text(Number(this.range.value)));
    });
  }

  /** Asks for a guess before showing the answer. */
  guess(): void {
    this.guessing = true;
  }

  get drawn(): { name: string; canvas: HTMLCanvasElement }[] {
    return this.paths.canvases.map((canvas, which) => ({ name: this.given?.experiment.names[which] ?? "", canvas }));
  }

  get window(): Chart | undefined {
    return this.chart;
  }

  get title(): string {
    return at("story-said").textContent ?? "";
  }

  /** Shows another question; `step`: the one named in its link. */
  changed(experiment: Experiment, loss: unknown, step: number | undefined): void {
    // A guess applies to the first question only.
    if (this.asks++ > 0) this.guessing = false;
    this.question(experiment, loss, this.slider?.place(typeof loss === "string" ? loss : "") ?? 0, step);
  }

  private question(experiment: Experiment, loss: unknown, place: number, step: number | undefined): void {
    const shown = experiment.alone && experiment.flows.length === 2 && experiment.flows.every(({ count }) => count === 1);
    at("story").classList.toggle("other", !shown);
    this.range.value = String(place);
    this.range.setAttribute("aria-valuetext", short(loss));
    at("story-loss-said").textContent = short(loss);
    this.given = undefined;
    clearTimeout(this.settling);
    this.steps(step ?? (short(loss) === "0%" ? 1 : 2));
  }

  /** Shows another step of the same question. */
  step(step: number | undefined): void {
    if (step === undefined || this.given === undefined) return;
    this.reveal();
    this.steps(step);
    this.sentences();
  }

  /** Shows the answer as far as it is known. */
  shown(experiment: Experiment, runs: readonly RunLines[], rows: readonly Row[], finished: boolean): void {
    if (at("story").classList.contains("other")) return;
    this.given = { experiment, runs, rows };
    this.tell();
    const figure = windows(experiment, runs, innerWidth < 800 ? 104 : 150);
    if (this.chart === undefined) this.chart = draw(at("story-window"), figure);
    else this.chart.set(figure);
    if (!finished) return;
    this.sentences();
    this.settling = setTimeout(() => this.look(), QUIET_MS);
  }

  private tell(): void {
    const { experiment, rows } = this.given!;
    at("story-said").textContent = headline(experiment, rows, this.guessing);
  }

  private guesses(): void {
    const place = at("story-guesses");
    for (const share of GUESSES) {
      const button = Object.assign(made("button", ""), { type: "button", textContent: `${100 * share}%` });
      button.addEventListener("click", () => this.guessed(share));
      place.append(button);
    }
    const tellButton = Object.assign(made("button", ""), { type: "button", textContent: "Just tell me" });
    tellButton.addEventListener("click", () => this.reveal());
    place.append(tellButton);
  }

  private guessed(share: number): void {
    const row = this.given?.rows[0];
    this.reveal();
    if (row === undefined) return;
    const near = Math.abs(Math.log(share / row.share)) < 0.7;
    at("story-guessed").textContent = `You guessed ${100 * share}%${near ? ", and you are right" : ""}: ${called(this.given!.experiment, this.given!.rows, 0)} keeps ${percent(row.share)}, ${digits(row.meanMbps)} Mbit/s.`;
  }

  private reveal(): void {
    this.guessing = false;
    this.named();
    if (this.given !== undefined) {
      this.tell();
      this.sentences();
    }
  }

  private named(): void {
    at("story").classList.toggle("guessing", this.guessing);
    at("story-guess").hidden = !this.guessing;
  }

  /** Shows the three steps; the sentences of the current step follow when there is an answer. */
  private steps(current: number): void {
    this.named();
    const place = at("story-steps");
    place.replaceChildren(
      ...STEPS.map(({ title }, which) => {
        const item = made("li", which + 1 === current ? "current" : "");
        const link = Object.assign(made("a", ""), { href: this.link(which + 1), textContent: `${which + 1}. ${title}` });
        if (which + 1 === current) link.setAttribute("aria-current", "step");
        item.append(link);
        return item;
      }),
    );
    place.dataset["step"] = String(current);
  }

  private sentences(): void {
    const { experiment, runs, rows } = this.given!;
    const place = at("story-sentences");
    const current = Number(at("story-steps").dataset["step"]);
    if (this.guessing) return place.replaceChildren();
    this.paths.measure(experiment, runs);
    place.replaceChildren(...sentences(current, experiment, runs, rows, this.paths.fills).map((one) => this.sentence(one)));
  }

  /** Highlights the part that a sentence describes while it is pointed at or focused. */
  private sentence({ words, part, run }: StoryLine): HTMLElement {
    const one = Object.assign(made("button", "says"), { type: "button", textContent: words });
    const light = (on: boolean) => (): void => {
      at("story-window").classList.toggle("lit", on && part === "window");
      this.paths.highlight(on ? part : null, run);
    };
    for (const event of ["pointerenter", "focus"]) one.addEventListener(event, light(true));
    for (const event of ["pointerleave", "blur"]) one.addEventListener(event, light(false));
    return one;
  }

  private look(): void {
    if (this.given === undefined) return;
    const { experiment, runs } = this.given;
    this.prepare();
    if (!this.begun) return;
    this.number += 1;
    this.post({ kind: "look", number: this.number, runs: experiment.compiled.map(({ json, durationNs }) => ({ json, durationNs })) });
    this.paths.measure(experiment, runs);
    this.paths.set(experiment);
    this.t = this.fromS = Math.min(experiment.durationS / 2, BEFORE_BITS / experiment.rateBps);
    this.looking = true;
    this.draw();
    this.go();
  }

  private prepare(): void {
    if (this.worker !== undefined) return;
    const worker = new Worker("watcher.js", { type: "module" });
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.kind !== "ways" || data.number !== this.number || !this.looking) return;
      this.paths.heard(data);
      this.draw();
    };
    worker.onerror = () => {
      this.worker = undefined;
      this.begun = false;
    };
    void module.then((compiled) => {
      if (this.worker !== worker) return;
      this.begun = true;
      this.post({ kind: "begin", module: compiled });
      this.look();
    });
  }

  private post(question: Question): void {
    this.worker?.postMessage(question);
  }

  private draw(): void {
    if (!this.looking || this.given === undefined) return;
    const whole = this.paths.show(this.t, this.paths.rttS / 3);
    this.paths.want(this.t, this.number);
    // Why? has a separate player.
    if (!this.pointed && !at<HTMLDetailsElement>("understand").open) playhead(this.t, this.member);
    if (whole) at("story").dataset["drawn"] = this.t.toFixed(9);
  }

  private toggled(): void {
    if (this.reduced.matches) {
      this.move(this.paths.rttS / STILLS);
      return;
    }
    this.playing = !this.playing;
    this.go();
  }

  /** Plays if the page is set to play and visible. */
  private go(): void {
    this.play.textContent = this.reduced.matches ? "Next picture" : this.playing ? "Pause the packets" : "Move the packets";
    cancelAnimationFrame(this.frame);
    if (this.playing && this.inSight && this.looking && !this.reduced.matches) this.runs(performance.now());
  }

  private runs(last: number): void {
    this.frame = requestAnimationFrame((now) => {
      this.move((Math.min(0.1, (now - last) / 1000) * this.paths.rttS) / ROUND_TRIP_S);
      this.runs(now);
    });
  }

  private move(byS: number): void {
    if (this.given === undefined) return;
    const to = Math.min(this.t + byS, this.paths.limit(this.t));
    this.t = to >= this.given.experiment.durationS ? this.fromS : to;
    this.draw();
  }
}
