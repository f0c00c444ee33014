// How long a simulation takes, from its own beginning: what it has taken so far, and as much more as its latest part says.

/** How far it is, of 1; how many events that were, and how many ms. */
interface Mark {
  done: number;
  events: number;
  ms: number;
}

/** Of the whole. */
export interface Whole {
  events: number;
  ms: number;
}

/** Before, a window that still grows and code that is still being compiled say little of what comes. */
const LEAST_EVENTS = 2e6;
/** The latest half and the latest quarter say the same, up to this factor … */
const ALIKE = 1.15;
/** … or it is told all the same, after so many events. */
const MOST_EVENTS = 6e6;

export class Pace {
  private readonly marks: Mark[] = [{ done: 0, events: 0, ms: 0 }];

  note(done: number, events: number, ms: number): void {
    this.marks.push({ done, events, ms });
  }

  /** Undefined while it can't be told. */
  get whole(): Whole | undefined {
    const { events } = this.marks.at(-1)!;
    if (events < LEAST_EVENTS) return undefined;
    const [half, quarter] = [this.since(events / 2), this.since((events * 3) / 4)];
    const differ = Math.max(half.events / quarter.events, quarter.events / half.events);
    return differ <= ALIKE || (events >= MOST_EVENTS && Number.isFinite(half.ms)) ? half : undefined;
  }

  /** If the rest is like what came after so many events. */
  private since(events: number): Whole {
    const now = this.marks.at(-1)!;
    const then = this.marks[this.marks.findIndex((one) => one.events > events) - 1]!;
    const more = (1 - now.done) / (now.done - then.done);
    return { events: now.events + more * (now.events - then.events), ms: now.ms + more * (now.ms - then.ms) };
  }
}
