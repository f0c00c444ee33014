// The worker, as the page asks it: the latest question only; what it told of earlier ones is dropped.

import type { Asked } from "./asked";
import type { Answer, Question } from "./protocol";
import { RunLines } from "./series";

export interface Listener {
  /** More rows of the latest question. */
  grown(asked: Asked, runs: readonly RunLines[], finished: boolean): void;
  failed(why: string): void;
}

export class Runner {
  private readonly worker = new Worker("worker.js", { type: "module" });
  private number = 0;
  private asked: Asked | undefined;
  private runs: RunLines[] = [];
  /** What the latest question has taken so far. */
  workedMs = 0;
  /** Names of the congestion controls, once the core is there. */
  readonly controls: Promise<string[]>;

  constructor(
    private readonly listener: Listener,
    private readonly everyMs: number,
  ) {
    this.controls = new Promise((resolve, reject) => {
      this.worker.onerror = (event) => reject(new Error(event.message || "the worker could not be loaded"));
      this.worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.kind === "ready") resolve(data.controls);
        else if (data.kind === "failed" && data.number === 0) reject(new Error(data.why));
        else this.told(data);
      };
    });
  }

  ask(asked: Asked): void {
    this.number += 1;
    this.asked = asked;
    this.runs = asked.compiled.map(({ flows }) => new RunLines(flows.length, asked.intervalS));
    const runs = asked.compiled.map(({ json, durationNs }) => ({ json, durationNs }));
    this.post({ kind: "run", number: this.number, runs, everyMs: this.everyMs });
  }

  stop(): void {
    this.number += 1;
    this.asked = undefined;
    this.post({ kind: "stop" });
  }

  private post(question: Question): void {
    this.worker.postMessage(question);
  }

  private told(answer: Answer): void {
    if (answer.kind === "ready" || answer.number !== this.number || this.asked === undefined) return;
    if (answer.kind === "rows") {
      this.workedMs = answer.workedMs;
      answer.runs.forEach(({ tables, nowNs, finished }, run) => this.runs[run]!.add(tables, nowNs / 1e9, finished));
      this.listener.grown(this.asked, this.runs, this.runs.every((run) => run.finished));
    } else if (answer.kind === "failed") {
      this.listener.failed(answer.why);
    }
  }
}
