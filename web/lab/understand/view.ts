// Understand: describes the events, lets the reader step through them, and draws the path with its packets. Nothing is
// computed before it is opened.

import { draw, type Chart } from "../../draw/index";
import { tint } from "../../draw/colours";
import { group, type Member } from "../../draw/group";
import { stretch } from "../amount";
import { numbers, type Tables } from "../core";
import type { Experiment } from "../experiment";
import { made } from "../fields";
import { module } from "../module";
import { colours } from "../figures";
import type { RunLines } from "../series";
import { table } from "./counts";
import { KINDS, sentence, type FlowEvent } from "./events";
import { Paths } from "./paths";
import { playhead } from "../playhead";
import { Player } from "./player";
import type { Answer, Question } from "./protocol";
import { add, limitSentence, lossSentence, MOST_STEPS, story, type LimitFacts, type Story } from "./story";
import { strip } from "./strip";
import "./understand.css";

/** Events stay visible for this share of a round trip, and while playing for this many seconds of real time. */
const LINGER_ROUND_TRIPS = 0.1;
const LINGER_S = 0.8;
/** For flows with more than one connection. */
const FIRST = 0;

/** All events of one flow at one instant. */
interface Moment {
  t: number;
  flow: number;
  events: FlowEvent[];
}

export class Understand {
  private readonly place = made("div", "");
  private readonly state = Object.assign(made("p", ""), { role: "status" });
  private readonly stories = made("div", "stories");
  private readonly counts = made("div", "scroll");
  private readonly now = made("div", "now");
  private readonly paths = new Paths((question) => this.post(question));
  private readonly figure = made("div", "");
  private readonly live = made("div", "unseen");
  private readonly player = new Player({
    moved: (t) => this.moved(t),
    step: (direction) => this.step(direction),
    limit: (t) => this.paths.limit(t),
  });
  private readonly member: Member = {
    show: () => {},
    point: (x) => {
      this.pointed = x !== null;
      if (!this.root.open || !this.watched) return;
      if (x !== null && !this.player.isPlaying) this.player.go(x);
      // When the pointer leaves the figures, the line returns to the player's time, after all panels got the event.
      if (x === null) queueMicrotask(() => this.line());
    },
  };
  private chart: Chart | undefined;
  /** The pointer is in a figure, which draws its own line there. */
  private pointed = false;
  private worker: Worker | undefined;
  /** It has everything needed to ask. */
  private begun = false;
  private events: string[] = [];
  private given: { experiment: Experiment; runs: readonly RunLines[] } | undefined;
  private number = 0;
  private watched = false;
  private flowStories: Story[] = [];
  private moments: Moment[] = [];

  constructor(private readonly root: HTMLDetailsElement) {
    this.build();
    root.addEventListener("toggle", () => (root.open ? this.opened() : this.closed()));
  }

  /** The question has changed: shows the previous answer until the new one arrives. */
  changed(): void {
    this.given = undefined;
    this.watched = false;
    if (!this.root.open) return;
    this.player.pause();
    playhead(null, this.member);
    this.number += 1;
    this.post({ kind: "stop" });
    this.unsaid();
  }

  /** The answer has arrived. */
  answered(experiment: Experiment, runs: readonly RunLines[]): void {
    this.given = { experiment, runs };
    if (this.begun && this.root.open) this.watch();
  }

  /** Loads what it needs, so that it can be opened after the server has stopped. */
  prepare(): void {
    if (this.worker !== undefined) return;
    const worker = new Worker("watcher.js", { type: "module" });
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.heard(data);
    worker.onerror = (event) => {
      // Tries again the next time it is opened.
      this.worker = undefined;
      this.begun = false;
      this.say(event.message || "What this needs could not be loaded: is the server still there? Close this and open it again.");
    };
    void module.then((compiled) => {
      if (this.worker !== worker) return;
      this.begun = true;
      this.post({ kind: "begin", module: compiled });
      if (this.root.open && this.given !== undefined) this.watch();
    });
  }

  private opened(): void {
    // The previous content belongs to another question.
    for (const part of [this.stories, this.now, this.figure, this.counts, this.live]) part.replaceChildren();
    this.root.append(this.place);
    group("time").join(this.member);
    this.prepare();
    if (this.begun && this.given !== undefined) this.watch();
  }

  private closed(): void {
    this.player.pause();
    this.number += 1;
    this.watched = false;
    this.post({ kind: "rest" });
    playhead(null, this.member);
    group("time").leave(this.member);
    this.chart?.remove();
    this.chart = undefined;
    this.paths.clear();
    this.moments = [];
    this.flowStories = [];
    this.place.remove();
    this.unsaid();
  }

  /** The state named in the page's address, for callers that wait for it. */
  private unsaid(): void {
    for (const name of ["watched", "told", "drawn"]) delete this.root.dataset[name];
  }

  /** The parts that never change. */
  private build(): void {
    this.live.setAttribute("aria-live", "polite");
    this.counts.tabIndex = 0;
    this.counts.setAttribute("role", "region");
    this.counts.setAttribute("aria-label", "How often what happened");
    this.paths.root.tabIndex = 0;
    this.paths.root.setAttribute("role", "group");
    this.paths.root.setAttribute("aria-label", "The path and its packets. Arrow keys go to what happened next or before, the space bar plays.");
    this.paths.root.addEventListener("keydown", (event) => this.key(event));
    this.player.root.addEventListener("keydown", (event) => {
      if (event.target instanceof HTMLButtonElement && event.key !== " ") this.key(event);
    });
    this.place.replaceChildren(this.state, this.stories, this.player.root, this.now, this.paths.root, this.figure, this.counts, this.live);
  }

  private key(event: KeyboardEvent): void {
    const act = { ArrowLeft: () => this.player.stepped(-1), ArrowRight: () => this.player.stepped(1), " ": () => this.player.toggle() }[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  private watch(): void {
    const { experiment } = this.given!;
    this.number += 1;
    this.say("Looking at what happened …");
    this.post({ kind: "watch", number: this.number, runs: experiment.compiled.map(({ json, durationNs }) => ({ json, durationNs })) });
  }

  private post(question: Question): void {
    this.worker?.postMessage(question);
  }

  private say(words: string): void {
    this.state.textContent = words;
  }

  private heard(answer: Answer): void {
    if (answer.kind === "ready") this.events = answer.events;
    else if (answer.kind === "failed") this.say(`This could not be watched: ${answer.why}`);
    else if (answer.number !== this.number || this.given === undefined) return;
    else if (answer.kind === "watched") this.happened(answer.run, answer.tables);
    else {
      this.paths.heard(answer);
      this.paths.want(this.player.t, this.number);
      this.picture();
    }
  }

  /**
   * Describes the events of one run in sentences. What takes longer to draw follows once they are visible and all runs
   * are there.
   */
  private happened(run: number, tables: Tables): void {
    const { experiment, runs: lines } = this.given!;
    const { alone, names, flows, durationS, compiled } = experiment;
    if (run === 0) {
      this.flowStories = names.map((name, flow) => story(name, flows[flow]!.cc));
      this.stories.replaceChildren();
      this.paths.measure(this.given!.experiment, lines);
    }
    read(tables, this.events, (one) => add(this.flowStories[alone ? run : one.flow]!, alone ? { ...one, flow: run } : one));
    const colour = colours(flows);
    const of = alone ? [run] : names.map((_, flow) => flow);
    this.stories.append(...of.map((flow) => storyCard(this.flowStories[flow]!, durationS - flows[flow]!.startS, this.paths.fills, colour[flow]!, limitSentence(this.limitFacts(flow)))));
    this.root.dataset["told"] = String(this.stories.childElementCount);
    if (run < compiled.length - 1) return;
    const first = flows.some(({ count }) => count > 1) ? " For flows with several connections, this shows the first one." : "";
    const many = this.flowStories.some(({ steps }) => steps.length === MOST_STEPS) ? ` The first ${MOST_STEPS} of each flow can be stepped through.` : "";
    this.say(`Step through what happened, or play it.${first}${many}`);
    const mine = this.number;
    requestAnimationFrame(() => setTimeout(() => mine === this.number && this.root.open && this.drawn(), 0));
  }

  private limitFacts(flow: number): LimitFacts {
    const { experiment, runs } = this.given!;
    const [run, at] = experiment.alone ? [flow, 0] : [0, flow];
    const rtts = runs[run]!.flows[at]!.rtt.y.values.filter((rtt) => rtt > 0);
    const { rttNs, receiveBuffer } = experiment.compiled[run]!;
    const seenS = rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length / 1e3;
    return { limited: runs[run]!.limited()[at]!, seenS, rttS: rttNs / 1e9, receiveBuffer, fills: this.paths.fills };
  }

  /** Draws and counts the events. */
  private drawn(): void {
    const { durationS } = this.given!.experiment;
    this.moments = moments(this.flowStories);
    this.paths.set(this.given!.experiment);
    this.counts.replaceChildren(table(this.flowStories, (kind) => this.step(1, kind)));
    const figure = strip(this.flowStories, durationS);
    if (this.chart === undefined) this.chart = draw(this.figure, figure);
    else this.chart.set(figure);
    this.watched = true;
    this.player.set(durationS, this.paths.rttS);
    // Where to begin: a cut of the first flow's window, once all flows are running.
    const cuts = this.moments.filter(({ flow, events }) => flow === 0 && events.some(({ kind }) => KINDS[kind]?.class === "less"));
    const start = cuts.find(({ t }) => t >= durationS / 2) ?? cuts[0] ?? this.moments[0];
    this.player.go(start?.t ?? 0);
    this.root.dataset["watched"] = String(this.moments.length);
  }

  /** Steps to the next event, or the next one of a kind. */
  private step(direction: 1 | -1, kind?: string): void {
    if (!this.watched) return;
    const here = this.player.t;
    const fits = ({ events }: Moment): boolean => kind === undefined || events.some((one) => one.kind === kind);
    let found = direction > 0 ? this.moments.find((one) => one.t > here && fits(one)) : this.moments.filter((one) => one.t < here && fits(one)).at(-1);
    // From the last event of a kind, goes to the first.
    if (kind !== undefined) found ??= this.moments.find(fits);
    if (found === undefined) return;
    this.player.pause();
    this.player.go(found.t);
    const at = this.moments.filter(({ t }) => t === found.t);
    this.live.textContent = at.map((one) => `${found.t.toFixed(4)} s, ${this.words(one)}`).join(" ");
  }

  private words({ flow, events }: Moment): string {
    const { name, cc } = this.flowStories[flow]!;
    return `${name}: ${events.map((one) => sentence(one, { cc, tailDrop: this.paths.tailDrop })).join(" ")}`;
  }

  private moved(t: number): void {
    if (!this.watched) return;
    this.paths.want(t, this.number);
    this.sentences(t);
    this.picture();
    this.line();
  }

  /** Draws a line at the player's time in each figure; readouts would be in the way. */
  private line(): void {
    if (this.watched && !this.pointed) playhead(this.player.t, this.member);
  }

  /** The latest event of each flow. */
  private sentences(t: number): void {
    const cards = this.flowStories.map((_, flow) => {
      const last = this.last(flow, t);
      const card = made("p", "card");
      if (last === undefined) {
        card.textContent = `${this.flowStories[flow]!.name}: nothing has happened yet.`;
        return card;
      }
      const ago = t - last.t;
      card.append(this.words(last));
      card.append(Object.assign(made("span", "ago"), { textContent: ago < 1e-9 ? " now" : ` ${stretch(ago)} ago` }));
      if (ago < 1e-9) card.classList.add("now-here");
      return card;
    });
    this.now.replaceChildren(...cards);
  }

  private last(flow: number, t: number): Moment | undefined {
    let [low, high] = [0, this.moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moments[middle]!.t <= t) low = middle + 1;
      else high = middle;
    }
    for (let at = low - 1; at >= 0; at -= 1) if (this.moments[at]!.flow === flow) return this.moments[at];
    return undefined;
  }

  private picture(): void {
    const { t } = this.player;
    const linger = Math.max(LINGER_ROUND_TRIPS * this.paths.rttS, this.player.isPlaying ? LINGER_S * this.player.pace : 0);
    if (this.paths.show(t, linger)) this.root.dataset["drawn"] = t.toFixed(9);
    else delete this.root.dataset["drawn"];
  }
}

function storyCard(one: Story, activeS: number, fills: number, colour: string, beside: string): HTMLElement {
  const words = made("p", "");
  const [name] = lossSentence(one, activeS, fills).split(":", 1);
  const dot = made("i", "");
  dot.style.background = tint(colour);
  words.append(dot, Object.assign(made("strong", ""), { textContent: name! }), `${lossSentence(one, activeS, fills).slice(name!.length)}${beside}`);
  return words;
}

/** Rows as events, for each flow's first connection. */
function read(tables: Tables, names: readonly string[], call: (one: FlowEvent) => void): void {
  const of = (name: string): ArrayLike<number> => numbers(tables["events"]![name]!);
  const [t, flow, connection, event] = [of("t_s"), of("flow"), of("connection"), of("event")];
  const [count, before, cwnd, threshold, pacing] = [of("segments"), of("cwnd_before_segments"), of("cwnd_segments"), of("ssthresh_segments"), of("pacing_bps")];
  for (let row = 0; row < t.length; row += 1) {
    if (connection[row] !== FIRST) continue;
    const ssthresh = threshold[row]! < 0 ? NaN : threshold[row]!;
    const pacingMbps = pacing[row]! / 1e6;
    call({ t: t[row]!, flow: flow[row]!, kind: names[event[row]!]!, segments: count[row]!, before: before[row]!, cwnd: cwnd[row]!, ssthresh, pacingMbps });
  }
}

function moments(stories: readonly Story[]): Moment[] {
  const all: Moment[] = [];
  stories.forEach(({ steps }, flow) => {
    let last: Moment | undefined;
    for (const one of steps) {
      if (last?.t === one.t) last.events.push(one);
      else all.push((last = { t: one.t, flow, events: [one] }));
    }
  });
  return all.sort((a, b) => a.t - b.t);
}
