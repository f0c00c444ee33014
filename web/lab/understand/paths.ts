// The paths with their packets at a given time. A worker simulates again the stretch that the reader looks at.

import type { Experiment } from "../experiment";
import { made } from "../fields";
import { colours } from "../figures";
import type { RunLines } from "../series";
import { PathView, type Path } from "./pathview";
import type { Answer, Question } from "./protocol";
import { Ways } from "./ways";

/** About this many packets are simulated at once. */
const STRETCH_PACKETS = 3_000;

export class Paths {
  readonly root = made("div", "ways");
  /** The round trip of the path without a queue. */
  rttS = 0.02;
  /** The number of segments that fill the path without a queue. */
  fills = 0;
  tailDrop = true;
  private ways: Ways[] = [];
  private views: PathView[] = [];
  private waiting = false;
  private durationS = 1;
  private beforeS = 0.01;
  private stretchS = 0.01;

  constructor(private readonly post: (question: Extract<Question, { kind: "ways" }>) => void) {}

  /** Takes what it needs from another question, before its paths are drawn. */
  measure({ compiled, durationS }: Experiment, runs: readonly RunLines[]): void {
    const first = path(compiled[0]!.json);
    this.waiting = false;
    this.durationS = durationS;
    this.tailDrop = first.tailDrop;
    this.rttS = Math.max(first.thereS + first.backS, (1514 * 8) / first.rateBps, 1e-5);
    const seen = runs.flatMap((one) => one.flows.map(({ rtt }) => longest(rtt.y.values) / 1e3));
    this.beforeS = 1.5 * Math.max(this.rttS, ...seen) + 1e-3;
    this.stretchS = Math.min(this.beforeS, (STRETCH_PACKETS * 1514 * 8) / first.rateBps);
    this.fills = Math.round((first.rateBps * this.rttS) / 8 / 1514);
  }

  /** Replaces the paths: one for all flows or one for each. */
  set({ alone, names, flows, compiled }: Experiment): void {
    const colour = colours(flows);
    const owner = flows.flatMap(({ count }, flow) => Array.from({ length: count }, () => flow));
    this.clear();
    this.ways = compiled.map(() => new Ways());
    this.views = compiled.map(({ json }, run) => {
      const of = (connection: number): string => colour[alone ? run : (owner[connection] ?? 0)]!;
      return new PathView(alone ? names[run]! : names.join(", "), path(json), this.ways[run]!, of);
    });
    this.root.replaceChildren(...this.views.map(({ root }) => root));
  }

  clear(): void {
    for (const view of this.views) view.destroy();
    [this.ways, this.views] = [[], []];
  }

  heard({ runs, anew, sinceNs }: Extract<Answer, { kind: "ways" }>): void {
    this.waiting = false;
    runs.forEach(({ tables, reachedNs }, run) => {
      const ways = this.ways[run]!;
      if (anew) ways.clear(sinceNs / 1e9);
      ways.add(tables, reachedNs / 1e9);
    });
  }

  /** Draws the paths at `t`. Lost and dropped packets stay visible for `lingerS`. Returns whether all data is there. */
  show(t: number, lingerS: number): boolean {
    for (const view of this.views) view.show(t, lingerS);
    return this.ways.length > 0 && this.covers(t);
  }

  /** Highlights a part of each path, or of one; null: none. */
  highlight(part: string | null, run?: number): void {
    if (part === null) delete this.root.dataset["lit"];
    else this.root.dataset["lit"] = part;
    this.views.forEach((view, which) => view.highlight(run === undefined || run === which ? part : null));
  }

  get canvases(): HTMLCanvasElement[] {
    return this.views.map(({ canvas }) => canvas);
  }

  /** The time up to which playing can continue. */
  limit(t: number): number {
    return this.covers(t) ? this.reachedS : t;
  }

  /** Has the worker simulate the displayed stretch, and a little more. */
  want(t: number, number: number): void {
    if (this.waiting || this.ways.length === 0) return;
    const reached = this.reachedS;
    const near = this.ways.every(({ sinceS }) => sinceS <= 0 || t - sinceS >= this.beforeS * 0.999) && reached > 0 && t - reached < this.beforeS;
    const ahead = Math.min(this.durationS, t + this.stretchS / 2);
    if (near && reached >= ahead - 1e-9) return;
    const from = near ? reached : t;
    const to = Math.max(...this.ways.map(({ reachedS }) => (near ? reachedS : 0)), Math.max(from, t) + this.stretchS);
    this.waiting = true;
    for (const ways of this.ways) ways.prune(t - 2 * this.beforeS);
    const ns = (s: number): number => Math.round(s * 1e9);
    this.post({ kind: "ways", number, fromNs: ns(from), toNs: ns(to), beforeNs: ns(this.beforeS) });
  }

  private get reachedS(): number {
    return Math.min(...this.ways.map(({ reachedS }) => reachedS));
  }

  private covers(t: number): boolean {
    const enough = ({ sinceS }: Ways): boolean => sinceS <= 0 || t - sinceS >= this.beforeS * 0.999;
    return this.ways.every(enough) && t <= this.reachedS + 1e-9 && this.reachedS > 0;
  }
}

function longest(values: Float64Array): number {
  return values.reduce((most, value) => Math.max(most, value || 0), 0);
}

/** What the picture needs from a compiled scenario. */
function path(json: string): Path & { tailDrop: boolean } {
  const { transmitters = [], links = [] } = JSON.parse(json) as {
    transmitters?: { rate_bps: number; queue_packets: number | null; discipline?: unknown }[];
    links?: { delay_ns: number }[];
  };
  const [bottleneck] = transmitters;
  const tailDrop = bottleneck?.discipline === undefined || bottleneck.discipline === null;
  return {
    rateBps: bottleneck?.rate_bps ?? 1,
    thereS: (links[3]?.delay_ns ?? 0) / 1e9,
    backS: (links[4]?.delay_ns ?? 0) / 1e9,
    limitPackets: tailDrop ? (bottleneck?.queue_packets ?? undefined) : undefined,
    reverse: transmitters.length > 1,
    tailDrop,
  };
}
