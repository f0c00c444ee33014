// The page's side of the workers: answers only the latest question, and drops rows of earlier ones. The simulations of
// one question are divided among several workers; their rows do not depend on the number of workers.

import type { Experiment } from "./experiment";
import type { Limits } from "./core";
import { module } from "./module";
import { InputError } from "./problem";
import type { Answer, Native, Question } from "./protocol";
import { RunLines } from "./series";

export interface Listener {
  /** More rows of the latest question. */
  grown(experiment: Experiment, runs: readonly RunLines[], finished: boolean): void;
  /** With `problem` if the input was refused. */
  failed(why: string, problem?: InputError): void;
  /** After the last rows: the number of events, and the time they took. */
  ran?(native: boolean, events: number, workedMs: number): void;
}

/** At most this many simulations run at the same time. */
export const WORKERS = Math.max(1, Math.min(4, navigator.hardwareConcurrency));

/** What one worker does for a question. */
interface Part {
  runs: RunLines[];
  /** Whether it has sent rows since the listener was last called, or all of them. */
  reported: boolean;
  events: number;
  workedMs: number;
}

export class Runner {
  private readonly workers: Worker[] = [];
  /** For each worker: settled once it has loaded the core, or failed to. */
  private readonly loaded: Promise<void>[] = [];
  private number = 0;
  private experiment: Experiment | undefined;
  private runs: RunLines[] = [];
  private parts = new Map<Worker, Part>();
  /** Determines what limits the flows of a compiled scenario; undefined: unknown. */
  limits: ((json: string) => Limits) | undefined;
  /** Whether it runs natively. */
  native = false;
  /** Resolved once the core is loaded. */
  readonly ready: Promise<void>;

  /** `most`: as many workers. All but the first start with the first question for them. */
  constructor(
    private readonly listener: Listener,
    private readonly everyMs: number,
    private readonly most = WORKERS,
  ) {
    this.ready = this.start();
  }

  /** The time that the latest question has taken so far, summed over the workers. */
  get workedMs(): number {
    return [...this.parts.values()].reduce((sum, { workedMs }) => sum + workedMs, 0);
  }

  /** `native`: how to run it there instead of in the page. */
  ask(experiment: Experiment, native?: Native): void {
    this.stop();
    this.experiment = experiment;
    for (const run of this.runs) run.close();
    this.runs = experiment.compiled.map(({ json, flows }) => new RunLines(flows.length, experiment.intervalS, this.limits?.(json)));
    this.native = native !== undefined;
    void this.distribute(experiment, this.number, native);
  }

  stop(): void {
    this.number += 1;
    this.experiment = undefined;
    this.parts.clear();
    for (const worker of this.workers) worker.postMessage({ kind: "stop" } satisfies Question);
  }

  private start(): Promise<void> {
    const worker = new Worker("worker.js", { type: "module" });
    const loaded = new Promise<void>((resolve, reject) => {
      worker.onerror = (event) => {
        const why = event.message || "the worker could not be loaded";
        reject(new Error(why));
        // After a start, nothing waits for the names, and a question that gets no answer is not left open.
        if (this.parts.has(worker)) this.fail(why);
      };
      worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.kind === "ready") resolve();
        else this.receive(data, this.parts.get(worker));
      };
      module.then((compiled) => worker.postMessage({ kind: "begin", module: compiled } satisfies Question), reject);
    });
    this.workers.push(worker);
    this.loaded.push(loaded);
    return loaded;
  }

  private async distribute({ compiled }: Experiment, number: number, native: Native | undefined): Promise<void> {
    const runs = compiled.map(({ json, durationNs }) => ({ json, durationNs }));
    const wanted = native === undefined ? Math.min(this.most, runs.length) : 1;
    while (this.workers.length < wanted) void this.start();
    const loaded = await Promise.allSettled(this.loaded.slice(0, wanted));
    if (number !== this.number) return;
    // The others do the work of one that could not be loaded.
    const workers = this.workers.filter((_, at) => loaded[at]?.status === "fulfilled");
    if (workers.length === 0) this.fail("the worker could not be loaded");
    workers.forEach((worker, at) => {
      const [first, next] = [at, at + 1].map((part) => Math.ceil((part * runs.length) / workers.length)) as [number, number];
      this.parts.set(worker, { runs: this.runs.slice(first, next), reported: false, events: 0, workedMs: 0 });
      const question: Question = { kind: "run", number, runs: runs.slice(first, next), everyMs: this.everyMs, ...(native === undefined ? {} : { native }) };
      worker.postMessage(question);
    });
  }

  private fail(why: string, problem?: InputError): void {
    this.stop();
    this.listener.failed(why, problem);
  }

  private receive(answer: Answer, part: Part | undefined): void {
    if (answer.kind === "ready" || answer.number !== this.number || this.experiment === undefined || part === undefined) return;
    if (answer.kind === "failed") {
      const { problem } = answer;
      this.fail(answer.why, problem && new InputError(problem.code, problem.message, problem.fix, problem.field));
      return;
    }
    Object.assign(part, { reported: true, events: answer.events, workedMs: answer.workedMs });
    answer.runs.forEach(({ tables, nowNs, finished }, run) => part.runs[run]!.add(tables, nowNs / 1e9, finished));
    const parts = [...this.parts.values()];
    // Figures never show one run without the others.
    if (!parts.every(({ reported }) => reported)) return;
    for (const one of parts) one.reported = one.runs.every((run) => run.finished);
    const [finished, workedMs] = [parts.every(({ reported }) => reported), this.workedMs];
    this.listener.grown(this.experiment, this.runs, finished);
    if (finished) this.listener.ran?.(this.native, parts.reduce((sum, { events }) => sum + events, 0), workedMs);
  }
}
