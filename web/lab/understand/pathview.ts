// Draws the path at a given time: packets in the queue, on the link, lost, and acknowledgements coming back.

import { onThemeChange, role, tint } from "../../draw/colours";
import { AFTER_LOSS, AFTER_QUEUE, RECEIVER, ROUTER, SENDER, type Packet, type Ways } from "./ways";

/** The values of the compiled scenario from which the picture is drawn. */
export interface Path {
  rateBps: number;
  /** One-way delay, after the loss, and back. */
  thereS: number;
  backS: number;
  /** For a queue with a limit. */
  limitPackets: number | undefined;
  reverse: boolean;
}

/** More packets than this in one direction are thinned. */
const MOST_DRAWN = 600;
const LOST = "#d55e00";
const LIT = "#e69f00";

interface Seen {
  waiting: Packet[];
  there: number[];
  thereOf: Packet[];
  back: number[];
  backOf: Packet[];
  backWaiting: number;
  losses: { of: Packet; age: number }[];
}

export class PathView {
  readonly root = document.createElement("figure");
  readonly canvas = document.createElement("canvas");
  private readonly caption = document.createElement("figcaption");
  private seen: Seen | undefined;
  private highlighted: string | null = null;
  private readonly size = new ResizeObserver(() => this.draw());
  private readonly stopThemeChanges = onThemeChange(() => this.draw());

  constructor(
    private readonly name: string,
    private readonly path: Path,
    private readonly ways: Ways,
    private readonly colour: (connection: number) => string,
  ) {
    this.root.className = "way";
    const title = document.createElement("strong");
    title.textContent = name;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", name);
    this.root.append(title, this.canvas, this.caption);
    this.size.observe(this.canvas);
  }

  /** Stops observing the canvas's size. */
  destroy(): void {
    this.size.disconnect();
    this.stopThemeChanges();
    this.root.remove();
  }

  /** Highlights "queue", "loss", "link" or "acknowledgements"; null: none. */
  highlight(part: string | null): void {
    if (this.highlighted === part) return;
    this.highlighted = part;
    this.draw();
  }

  /** Draws the path at `t`. Lost and dropped packets stay visible for `lingerS`. */
  show(t: number, lingerS: number): void {
    this.seen = t >= this.ways.sinceS && t <= this.ways.reachedS + 1e-9 ? this.look(t, lingerS) : undefined;
    this.draw();
    const words = this.words();
    if (this.caption.textContent !== words) {
      this.caption.textContent = words;
      this.canvas.setAttribute("aria-label", words === "" ? this.name : `${this.name}: ${words}`);
    }
  }

  private look(t: number, lingerS: number): Seen {
    const seen: Seen = { waiting: [], there: [], thereOf: [], back: [], backOf: [], backWaiting: 0, losses: [] };
    for (const one of this.ways.packets) {
      if (one.sentS > t) break;
      const { at, loss, forward } = one;
      if (loss !== undefined && t >= loss.s) {
        if (t - loss.s <= lingerS) seen.losses.push({ of: one, age: (t - loss.s) / lingerS });
        continue;
      }
      if (forward) {
        const out = at[AFTER_LOSS];
        if (out !== undefined && t >= out) {
          const there = this.path.thereS > 0 ? (t - out) / this.path.thereS : 1;
          if (there < 1 && (at[RECEIVER] ?? Infinity) > t) {
            seen.there.push(there);
            seen.thereOf.push(one);
          }
        } else if ((at[ROUTER] ?? Infinity) <= t && (at[AFTER_QUEUE] ?? Infinity) > t) seen.waiting.push(one);
      } else {
        const off = at[RECEIVER];
        if ((at[SENDER] ?? Infinity) <= t || off === undefined) continue;
        const back = this.path.backS > 0 ? (t - off) / this.path.backS : 1;
        if (back < 1) {
          seen.back.push(back);
          seen.backOf.push(one);
        } else seen.backWaiting += 1;
      }
    }
    return seen;
  }

  private words(): string {
    const { seen } = this;
    if (seen === undefined) return "";
    const { waiting, there, back, backWaiting, losses } = seen;
    const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;
    const parts = [
      `${count(waiting.length, "packet")} in the queue${this.path.limitPackets === undefined ? "" : ` of ${this.path.limitPackets}`}`,
      `${there.length} on the way`,
      `${count(back.length, "acknowledgement")} coming back`,
    ];
    if (backWaiting > 0) parts.push(`${backWaiting} more in the return path's queue`);
    const lost = losses.filter(({ of }) => of.loss!.fate !== "dropped").length;
    if (lost > 0) parts.push(`${lost} just lost`);
    if (losses.length > lost) parts.push(`${losses.length - lost} just dropped`);
    const drawn = Math.max(thinned(there.length), thinned(back.length));
    return `${parts.join(", ")}${drawn > 1 ? `; one in ${drawn} is drawn` : ""}`;
  }

  private draw(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0) return;
    const ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const at = this.canvas.getContext("2d")!;
    at.setTransform(ratio, 0, 0, ratio, 0, 0);
    at.clearRect(0, 0, width, height);
    const narrow = width < 480;
    const box = narrow ? 40 : 64;
    const [up, down] = height < 130 ? [38, 80] : [52, 108];
    const queue = { left: box + (narrow ? 14 : 26), width: narrow ? 84 : 150, height: 30 };
    const loss = queue.left + queue.width + (narrow ? 16 : 28);
    const from = loss + (narrow ? 10 : 16);
    const to = width - box - 3;
    at.font = `${narrow ? 11 : 12}px system-ui, sans-serif`;
    at.textAlign = "center";
    at.textBaseline = "middle";
    const lit: Record<string, [number, number, number, number]> = {
      queue: [queue.left - 5, up - 33, queue.width + 10, 66],
      loss: [loss - 14, up - 33, 28, 66],
      link: [from - 2, up - 33, to - from + 4, 52],
      acknowledgements: [box, down - 12, to - box, 38],
    };
    const [left, top, wide, high] = lit[this.highlighted ?? ""] ?? [0, 0, 0, 0];
    at.fillStyle = tint(LIT);
    at.globalAlpha = 0.3;
    at.fillRect(left, top, wide, high);
    at.globalAlpha = 1;
    // Lines first: forward and return path.
    at.strokeStyle = role("muted");
    at.lineWidth = 1;
    line(at, box, up, queue.left, up);
    line(at, queue.left + queue.width, up, to, up);
    line(at, box, down, to, down);
    this.ends(at, width, box, up, down, narrow);
    at.fillStyle = role("muted");
    at.fillText(narrow ? "queue" : "queue before the link", queue.left + queue.width / 2, up - queue.height / 2 - 9);
    at.fillText("loss", loss, up - queue.height / 2 - 9);
    at.fillText(narrow ? "link" : "link, half of the round trip", (from + to) / 2, up - queue.height / 2 - 9);
    at.fillText("acknowledgements", (box + to) / 2, down + 16);
    at.strokeStyle = role("ink");
    at.strokeRect(queue.left + 0.5, up - queue.height / 2 + 0.5, queue.width - 1, queue.height - 1);
    const { seen } = this;
    if (seen === undefined) {
      at.fillStyle = role("muted");
      at.fillText("simulating …", (from + to) / 2, up + 14);
      return;
    }
    this.fill(at, seen, queue, up);
    this.dots(at, seen.there, seen.thereOf, (share) => from + share * (to - from), up, narrow ? 2.5 : 3.5);
    this.dots(at, seen.back, seen.backOf, (share) => to - share * (to - box), down, narrow ? 2 : 2.5);
    for (const { of, age } of seen.losses) {
      const dropped = of.loss!.host === ROUTER && of.loss!.fate === "dropped";
      const x = !of.forward ? box + (to - box) * 0.25 : dropped ? queue.left + 4 : loss;
      cross(at, x, (of.forward ? up : down) + (dropped ? -queue.height / 2 - 4 : 4 + 22 * age), 1 - 0.8 * age);
    }
  }

  private ends(at: CanvasRenderingContext2D, width: number, box: number, up: number, down: number, narrow: boolean): void {
    for (const [left, name] of [[1, "sender"], [width - box - 1, "receiver"]] as const) {
      at.fillStyle = role("soft");
      at.strokeStyle = role("muted");
      at.beginPath();
      at.roundRect(left + 0.5, up - 26, box - 1, down - up + 38, 6);
      at.fill();
      at.stroke();
      at.fillStyle = role("ink");
      at.save();
      at.translate(left + box / 2, (up + down) / 2 - 6);
      if (narrow) at.rotate(-Math.PI / 2);
      at.fillText(name, 0, 0);
      at.restore();
    }
  }

  /** The queue with its head at the right; it is full when it reaches its limit. */
  private fill(at: CanvasRenderingContext2D, { waiting }: Seen, queue: { left: number; width: number; height: number }, up: number): void {
    const room = Math.max(this.path.limitPackets ?? 0, waiting.length, 10);
    const each = (queue.width - 4) / room;
    const right = queue.left + queue.width - 2;
    waiting.forEach((one, place) => {
      at.fillStyle = tint(this.colour(one.connection));
      const thin = Math.max(each * 0.8, 0.6);
      at.globalAlpha = one.again ? 1 : 0.75;
      at.fillRect(right - (place + 1) * each, up - queue.height / 2 + 3, thin, queue.height - 6);
    });
    at.globalAlpha = 1;
    at.fillStyle = role("ink");
    at.fillText(String(waiting.length), queue.left + queue.width / 2, up + queue.height / 2 + 10);
  }

  private dots(at: CanvasRenderingContext2D, shares: number[], of: Packet[], x: (share: number) => number, y: number, radius: number): void {
    const step = thinned(shares.length);
    for (let place = 0; place < shares.length; place += step) {
      const one = of[place]!;
      at.fillStyle = tint(this.colour(one.connection));
      at.beginPath();
      at.arc(x(shares[place]!), y, radius, 0, 2 * Math.PI);
      at.fill();
      if (one.again || one.marked) {
        at.strokeStyle = role("ink");
        at.lineWidth = 1.5;
        at.stroke();
      }
    }
  }
}

function thinned(count: number): number {
  return Math.max(1, Math.ceil(count / MOST_DRAWN));
}

function line(at: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number): void {
  at.beginPath();
  at.moveTo(x, y + 0.5);
  at.lineTo(toX, toY + 0.5);
  at.stroke();
}

function cross(at: CanvasRenderingContext2D, x: number, y: number, alpha: number): void {
  at.save();
  at.globalAlpha = Math.max(0, alpha);
  at.strokeStyle = tint(LOST);
  at.lineWidth = 2.5;
  at.beginPath();
  at.moveTo(x - 4.5, y - 4.5);
  at.lineTo(x + 4.5, y + 4.5);
  at.moveTo(x + 4.5, y - 4.5);
  at.lineTo(x - 4.5, y + 4.5);
  at.stroke();
  at.restore();
}
