// A simulation that is too heavy for the page: how long it takes, and what would be lighter.

import { milliseconds, stretch } from "./amount";
import type { Asked, Question } from "./asked";
import { made } from "./fields";
import { command } from "./file";

/** What takes longer than this is not simulated to its end without a word. */
export const MOST_MS = 5_000;
/** What is offered instead takes so long, about. */
const LIGHT_MS = 4_000;

/** At most so many data packets: as many as the rate lets pass. */
export function packets({ compiled, alone, mostMbps, durationS }: Asked): number {
  return ((mostMbps * 1e6) / 8 / 1448) * durationS * (alone ? compiled.length : 1);
}

/** Of a question that takes so many ms the longest duration of one digit that is light, and the most flows that are where each has a run of its own. */
export function lighter(asked: Asked, ms: number): { duration: string | undefined; flows: number | undefined } {
  const share = Math.min(1, LIGHT_MS / ms);
  const seconds = asked.durationS * share;
  const power = 10 ** Math.floor(Math.log10(seconds));
  const wholeMs = Math.round(Math.floor(seconds / power) * power * 1e3);
  const begun = asked.flows.every(({ startS }) => wholeMs > startS * 1e3);
  const flows = asked.alone ? Math.floor(asked.flows.length * share) : 0;
  return { duration: wholeMs > 0 && begun ? milliseconds(wholeMs) : undefined, flows: flows > 0 ? flows : undefined };
}

export class Heavy {
  /** The question that was asked for all the same. */
  private wanted: string | undefined;

  /** `goOn`: what is held is to go on to its end. */
  constructor(
    private readonly root: HTMLElement,
    private readonly ask: (question: Question) => void,
    private readonly goOn: () => void,
  ) {}

  /** The ms above which a question is held when it has shown how long it takes; undefined: it runs to its end. */
  most({ question }: Asked): number | undefined {
    return this.wanted === JSON.stringify(question) ? undefined : MOST_MS;
  }

  hide(): void {
    this.root.hidden = true;
  }

  /** In words how long it takes, of which some is over; below, less is offered. */
  held(asked: Asked, ms: number): string {
    this.root.hidden = false;
    const { duration, flows } = lighter(asked, ms);
    const { question } = asked;
    const { scenario } = question;
    const buttons = made("p", "buttons");
    const offer = (words: string, act: () => void): void => {
      const button = Object.assign(made("button", ""), { type: "button", textContent: words });
      button.addEventListener("click", act);
      buttons.append(button);
    };
    if (duration !== undefined) offer(`${duration} of it`, () => this.ask({ ...question, scenario: { ...scenario, duration } }));
    if (flows !== undefined) {
      const fewer = { ...scenario, flows: (scenario.flows ?? [{}]).slice(0, flows) };
      offer(flows === 1 ? "The first flow only" : `The first ${flows} flows`, () => this.ask({ ...question, scenario: fewer }));
    }
    offer("Run it all the same", () => {
      this.wanted = JSON.stringify(question);
      this.hide();
      this.goOn();
    });
    const line = made("p", "");
    line.append("The whole, faster, on the command line: ", Object.assign(made("code", ""), { textContent: command(question) }));
    this.root.replaceChildren(buttons, line);
    return `This is heavy for a page: it takes about ${stretch(ms / 1e3, 2)} here, as its beginning shows.`;
  }
}
