// What congestion controls would get on the path of a captured transfer, each by itself: one simulation of each.

import { milliseconds } from "../amount";
import { read } from "../experiment";
import { byMarks } from "../control";
import type { Language } from "../language";
import { Runner } from "../runner";
import { mbps } from "../summary";
import type { Estimate } from "./estimate";

/** As long as the transfer, but no longer; and at most so much of the path's capacity is simulated: bits. */
const [LEAST_S, MOST_S, MOST_BITS] = [2, 60, 3e9];

/** `report`: called with the text to show. */
export class Others {
  /** There from the first path on. */
  private runner: Runner | undefined;
  /** As `sawtooth whatif`: what depends on marks is Reno without them, and no capture of a sender shows them. */
  private readonly controls: readonly string[];
  private words: (means: readonly number[]) => string = () => "";

  constructor(
    private readonly language: Language,
    private readonly report: (words: string) => void,
  ) {
    this.controls = language.controls.filter((cc) => !byMarks(cc, language));
  }

  /** Simulates the other controls for a transfer that took `durationS` and got `gotBps`. */
  ask({ path, receiveBuffer, open }: Estimate, durationS: number, gotBps: number | null): void {
    const { amount } = this.language.read("rate", path.rate);
    const seconds = Math.max(LEAST_S, Math.min(MOST_S, durationS, MOST_BITS / amount));
    const duration = milliseconds(Math.round(seconds * 10) * 100);
    const flows = this.controls.map((cc) => ({ cc }));
    const host = receiveBuffer === undefined ? {} : { host: { receive_buffer: receiveBuffer } };
    const got = gotBps === null ? "" : ` This transfer got ${mbps(gotBps / 1e6)}.`;
    const least = open ? " Of the path's rate only a lower bound is known, so on a faster path they may get more." : "";
    this.words = (means) => {
      const each = this.controls.map((cc, at) => `${cc} ${mbps(means[at]!)}`).join(", ");
      return `On this path, by itself for ${duration}, each would get: ${each}.${got}${least} One simulation of each; sawtooth whatif tells the intervals.`;
    };
    this.runner ??= new Runner(
      {
        grown: (_, runs, finished) => {
          if (finished) this.report(this.words(runs.map((run) => (run.flows[0]!.bytes * 8) / run.nowS / 1e6)));
        },
        failed: (why) => this.report(`What other congestion controls would get could not be simulated: ${why}.`),
      },
      60_000,
    );
    this.report("Simulating what other congestion controls would get …");
    this.runner.ask(read({ scenario: { duration, path, ...host, flows }, alone: true }, this.language));
  }

  stop(): void {
    this.runner?.stop();
    this.report("");
  }
}
