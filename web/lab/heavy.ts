// Estimates how heavy a simulation is, and offers a lighter one if it is too heavy for the page.

import { milliseconds, significant, stretch } from "./amount";
import type { Experiment, Question } from "./experiment";
import { made } from "./fields";
import { command } from "./file";
import type { Compiled } from "./language";

/** Simulations of more packets than this are not started without asking. */
const MOST_PACKETS = 5e6;
/** A full frame, and its payload, in bytes. */
const [FRAME, PAYLOAD] = [1514, 1448];
const LEAST_RTT_S = 1e-4;
/** Above this loss, probes at 1.25 times the rate no longer compensate, and BBR3 takes loss for congestion. */
const [BBR_LOSS, BBR3_LOSS] = [0.2, 0.015];
/** Multiple of the packets between two losses that are sent before slow start's window has come down. */
const START = 8;
/** Packets per second in the page's simulator, before it has been measured. */
const PACKETS_A_SECOND = 1e6;
const LEAST_MS = 100;

/**
 * An estimate of the data packets: as many as the rate allows, or the windows if loss or the receiver keeps them
 * smaller.
 */
export function packets({ compiled }: Experiment): number {
  return compiled.reduce((sum, one) => sum + ofRun(one), 0);
}

function ofRun({ durationNs, rateBps, rttNs, lossPpb, receiveBuffer, flows }: Compiled): number {
  const [endS, loss, rtt] = [durationNs / 1e9, lossPpb / 1e9, Math.max(rttNs / 1e9, LEAST_RTT_S)];
  const most = rateBps / 8 / FRAME;
  // Data after a hole waits a round trip for it in the receiver's buffer.
  const received = receiveBuffer / 2 / PAYLOAD / (loss > 0 ? 2 : 1);
  let [sum, begunS, endedS] = [0, endS, 0];
  for (const { cc, count, startNs, durationNs: lastsNs, bytes } of flows) {
    const startS = Math.min(endS, startNs / 1e9);
    const lastS = Math.min(endS, startS + (lastsNs ?? Infinity) / 1e9);
    [begunS, endedS] = [Math.min(begunS, startS), Math.max(endedS, lastS)];
    const kept = lossWindow(cc, loss, rtt);
    const rate = Math.min(most, (count * Math.min(kept, received)) / rtt);
    const first = Number.isFinite(kept) ? (count * START) / loss : 0;
    sum += Math.min(rate * (lastS - startS) + first, ((bytes ?? Infinity) / PAYLOAD) * count);
  }
  return Math.min(sum, most * Math.max(0, endedS - begunS));
}

/** The mean window of a control at this loss, in segments. */
function lossWindow(cc: string, loss: number, rtt: number): number {
  if (loss === 0 || (cc === "bbr" && loss < BBR_LOSS)) return Infinity;
  // Fitted to the simulator, like START.
  if (cc === "bbr3") return loss < BBR3_LOSS ? Infinity : 0.37 / loss;
  // RFC 9438, sections 5.1 and 4.3.
  return Math.max(1.2 / Math.sqrt(loss), cc === "cubic" ? 1.0547 * (rtt / loss) ** 0.75 : 0);
}

/** The longest duration of one digit that fits, and the largest number of flows that fit if each has its own run. */
export function lighter(experiment: Experiment): { duration: string | undefined; flows: number | undefined } {
  const share = MOST_PACKETS / packets(experiment);
  const seconds = experiment.durationS * share;
  const power = 10 ** Math.floor(Math.log10(seconds));
  const ms = Math.round(Math.floor(seconds / power) * power * 1e3);
  const begun = experiment.flows.every(({ startS }) => ms > startS * 1e3);
  const flows = experiment.alone ? Math.floor(experiment.flows.length * share) : 0;
  return { duration: ms > 0 && begun ? milliseconds(ms) : undefined, flows: flows > 0 ? flows : undefined };
}

export class Heavy {
  /** The question that the reader chose to run anyway. */
  private wanted: string | undefined;
  private perSecond = PACKETS_A_SECOND;

  constructor(
    private readonly root: HTMLElement,
    private readonly ask: (question: Question) => void,
  ) {}

  /** Records how long a number of packets took. Shorter runs measure the browser's startup. */
  measured(count: number, ms: number): void {
    if (ms > LEAST_MS) this.perSecond = (count / ms) * 1e3;
  }

  /** Says how heavy the question is if it is too heavy, and offers less. `elsewhere`: the page does not run it. */
  words(experiment: Experiment, elsewhere = false): string | undefined {
    const { question } = experiment;
    const count = packets(experiment);
    const heavy = !elsewhere && count > MOST_PACKETS && this.wanted !== JSON.stringify(question);
    this.root.hidden = !heavy;
    if (!heavy) return undefined;
    const { duration, flows } = lighter(experiment);
    const { scenario } = question;
    const buttons = made("p", "buttons");
    const offer = (words: string, less: Question): void => {
      const button = Object.assign(made("button", ""), { type: "button", textContent: words });
      button.addEventListener("click", () => this.ask(less));
      buttons.append(button);
    };
    if (duration !== undefined) offer(`${duration} of it`, { ...question, scenario: { ...scenario, duration } });
    if (flows !== undefined) {
      const fewer = { ...scenario, flows: (scenario.flows ?? [{}]).slice(0, flows) };
      offer(flows === 1 ? "The first flow only" : `The first ${flows} flows`, { ...question, scenario: fewer });
    }
    const all = Object.assign(made("button", ""), { type: "button", textContent: "Run it anyway" });
    all.addEventListener("click", () => {
      this.wanted = JSON.stringify(question);
      this.ask(question);
    });
    buttons.append(all);
    const line = made("p", "");
    line.append("The whole, faster, on the command line: ", Object.assign(made("code", ""), { textContent: command(question) }));
    this.root.replaceChildren(buttons, line);
    return heavyText(count, count / this.perSecond);
  }
}

function heavyText(count: number, seconds: number): string {
  return `This is heavy for a page: about ${significant(count / 1e6, 2)} million packets, which take about ${stretch(Math.max(1, seconds), 1)} here.`;
}
