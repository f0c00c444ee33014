// A simulation that is too heavy for the page: how heavy it is, and what would be lighter.

import { milliseconds, significant, stretch } from "./amount";
import type { Asked, Question } from "./asked";
import { made } from "./fields";
import { command } from "./file";

/** More packets than this are not simulated without a word. */
const MOST_PACKETS = 5e6;
/** A second of the page's simulator, before it has been measured. */
const PACKETS_A_SECOND = 1e6;

/** At most so many data packets: as many as the rate lets pass. */
export function packets({ compiled, alone, mostMbps, durationS }: Asked): number {
  return ((mostMbps * 1e6) / 8 / 1448) * durationS * (alone ? compiled.length : 1);
}

/** The longest duration of one digit that fits, and the most flows that fit where each has a run of its own. */
export function lighter(asked: Asked): { duration: string | undefined; flows: number | undefined } {
  const share = MOST_PACKETS / packets(asked);
  const seconds = asked.durationS * share;
  const power = 10 ** Math.floor(Math.log10(seconds));
  const ms = Math.round(Math.floor(seconds / power) * power * 1e3);
  const begun = asked.flows.every(({ startS }) => ms > startS * 1e3);
  const flows = asked.alone ? Math.floor(asked.flows.length * share) : 0;
  return { duration: ms > 0 && begun ? milliseconds(ms) : undefined, flows: flows > 0 ? flows : undefined };
}

export class Heavy {
  /** The question that was asked for all the same. */
  private wanted: string | undefined;
  private perSecond = PACKETS_A_SECOND;

  constructor(
    private readonly root: HTMLElement,
    private readonly ask: (question: Question) => void,
  ) {}

  /** So many packets took so long. */
  measured(count: number, ms: number): void {
    if (count > 10_000 && ms > 0) this.perSecond = (count / ms) * 1e3;
  }

  /** In words how heavy it is, where that is too much; then less is offered. `elsewhere`: it is not for the page. */
  words(asked: Asked, elsewhere = false): string | undefined {
    const { question } = asked;
    const count = packets(asked);
    const heavy = !elsewhere && count > MOST_PACKETS && this.wanted !== JSON.stringify(question);
    this.root.hidden = !heavy;
    if (!heavy) return undefined;
    const { duration, flows } = lighter(asked);
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
    const all = Object.assign(made("button", ""), { type: "button", textContent: "Run it all the same" });
    all.addEventListener("click", () => {
      this.wanted = JSON.stringify(question);
      this.ask(question);
    });
    buttons.append(all);
    const line = made("p", "");
    line.append("The whole, faster, on the command line: ", Object.assign(made("code", ""), { textContent: command(question) }));
    this.root.replaceChildren(buttons, line);
    return told(count, count / this.perSecond);
  }
}

function told(count: number, seconds: number): string {
  return `This is heavy for a page: up to ${significant(count / 1e6, 2)} million packets, which take about ${stretch(Math.max(1, seconds), 1)} here.`;
}
