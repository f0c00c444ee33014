// The page's side of the worker: answers only the latest question, and drops rows of earlier ones.

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

export class Runner {
  private readonly worker = new Worker("worker.js", { type: "module" });
  private number = 0;
  private experiment: Experiment | undefined;
  private runs: RunLines[] = [];
  /** The time that the latest question has taken so far. */
  workedMs = 0;
  /** Determines what limits the flows of a compiled scenario; undefined: unknown. */
  limits: ((json: string) => Limits) | undefined;
  /** Whether it runs natively. */
  native = false;
  /** Called once the core is loaded. */
  readonly ready: Promise<void>;

  constructor(
    private readonly listener: Listener,
    private readonly everyMs: number,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.worker.onerror = (event) => {
        const why = event.message || "the worker could not be loaded";
        reject(new Error(why));
        // After a start, nothing waits for the names, and a question that gets no answer is not left open.
        if (this.experiment !== undefined) this.listener.failed(why);
      };
      this.worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.kind === "ready") resolve();
        else this.receive(data);
      };
      module.then((compiled) => this.worker.postMessage({ kind: "begin", module: compiled } satisfies Question), reject);
    });
  }

  /** `native`: how to run it there instead of in the page. */
  ask(experiment: Experiment, native?: Native): void {
    this.number += 1;
    this.experiment = experiment;
    for (const run of this.runs) run.close();
    this.runs = experiment.compiled.map(({ json, flows }) => new RunLines(flows.length, experiment.intervalS, this.limits?.(json)));
    const runs = experiment.compiled.map(({ json, durationNs }) => ({ json, durationNs }));
    this.native = native !== undefined;
    this.post({ kind: "run", number: this.number, runs, everyMs: this.everyMs, ...(native === undefined ? {} : { native }) });
  }

  stop(): void {
    this.number += 1;
    this.experiment = undefined;
    this.post({ kind: "stop" });
  }

  private post(question: Question): void {
    // Runs after the core is loaded; without it, the page says so.
    module.then(() => this.worker.postMessage(question), () => {});
  }

  private receive(answer: Answer): void {
    if (answer.kind === "ready" || answer.number !== this.number || this.experiment === undefined) return;
    if (answer.kind === "rows") {
      this.workedMs = answer.workedMs;
      answer.runs.forEach(({ tables, nowNs, finished }, run) => this.runs[run]!.add(tables, nowNs / 1e9, finished));
      const finished = this.runs.every((run) => run.finished);
      this.listener.grown(this.experiment, this.runs, finished);
      if (finished) this.listener.ran?.(this.native, answer.events, answer.workedMs);
    } else if (answer.kind === "failed") {
      const { problem } = answer;
      this.listener.failed(answer.why, problem && new InputError(problem.code, problem.message, problem.fix, problem.field));
    }
  }
}
