// The page of captures. Its summary is drawn at once, and every segment as soon as it is unpacked. Figures over time
// draw themselves.

import type * as Draw from "../draw/index";
import { answered, LIMITS, rangeSummary, timeSequence, type Segments } from "./sequence";
import { unpacked, type Packed } from "./unpack";

declare const sawtooth: typeof Draw;

type Table<A> = Record<string, A>;
const TABLES = ["data", "acks", "sacks"] as const;
type Tables<A> = Record<(typeof TABLES)[number], Table<A>>;
type View = Tables<Packed> & { name: string; ends: string; end: number; limits: [number, number, number][]; first: Tables<number[]> };

/** The shortest stretch that fills a graph, in seconds. */
const SMALLEST = 1e-6;
/** The group of all graphs on the page, under the name that Python gives it. */
const GROUP = "time";

const at = (id: string): HTMLElement => document.getElementById(id)!;

function start(): void {
  const content = JSON.parse(at("content").textContent!) as { zoom: [number, number | null]; views: View[] };
  const { views } = content;
  // A little more than the last segment's time, so that this segment is visible.
  const end = Math.max(...views.map((view) => view.end)) + SMALLEST;
  let segments = views.map(({ first }) => segmentsOf(first.data, first.acks, first.sacks, (given) => Float64Array.from(given)));
  const spans = views.map(({ limits }) =>
    limits.map(([from, to, limit]) => ({ from, to, name: `limited by: ${LIMITS[limit]!.name}`, colour: LIMITS[limit]!.colour })),
  );
  const figure = (): Draw.Figure =>
    timeSequence("time-sequence", views.map(({ name, ends }, which) => ({ name: views.length > 1 ? name : ends, segments: segments[which]!, spans: spans[which]! })), end, GROUP);
  const time = sawtooth.group(GROUP);
  const chart = sawtooth.draw(at("time-sequence"), figure());
  buttons(at("bar"), time, end);
  if (content.zoom[0] > 0 || content.zoom[1] !== null) time.show([content.zoom[0], content.zoom[1] ?? end]);
  Promise.all(views.map(all))
    .then((read) => {
      segments = read;
      chart.set(figure());
      const say = (): void => {
        const [from, to] = time.range ?? [0, end];
        segments.forEach((one, which) => (at(`status-${which}`).textContent = rangeSummary(one, from, to)));
      };
      time.join({ show: say, point: () => undefined });
      say();
    })
    .catch(failed);
}

function segmentsOf<A>(data: Table<A>, acks: Table<A>, sacks: Table<A>, numbers: (given: A) => Float64Array): Segments {
  const of = (table: Table<A>, name: string): Float64Array => numbers(table[name]!);
  const [low, size] = [of(data, "seq"), of(data, "size")];
  return {
    data: { t: of(data, "t_s"), low, high: low.map((seq, row) => seq + size[row]!), kind: of(data, "kind"), frame: of(data, "frame") },
    acks: answered(of(acks, "t_s"), of(acks, "ack"), of(acks, "window")),
    sacks: { t: of(sacks, "t_s"), low: of(sacks, "start"), high: of(sacks, "end"), dsack: of(sacks, "dsack") },
  };
}

async function all(view: View): Promise<Segments> {
  const [data, acks, sacks] = await Promise.all(TABLES.map(async (name) => {
    const columns = Object.entries(view[name]).map(async ([column, packed]) => [column, await unpacked(packed, column.endsWith("_s"))] as const);
    return Object.fromEntries(await Promise.all(columns));
  }));
  return segmentsOf(data!, acks!, sacks!, (given) => given);
}

function buttons(bar: HTMLElement, time: ReturnType<typeof Draw.group>, end: number): void {
  const to = (left: number, right: number): void => {
    const [from, width] = [Math.max(0, left), Math.max(SMALLEST, right - left)];
    time.show(from === 0 && width >= end ? null : [from, from + width]);
  };
  const around = (factor: number, by: number) => (): void => {
    const [left, right] = time.range ?? [0, end];
    const [middle, width] = [(left + right) / 2 + by * (right - left), factor * (right - left)];
    to(Math.max(0, middle - width / 2), Math.max(0, middle - width / 2) + width);
  };
  const made: [string, string, () => void][] = [
    ["Everything", "Show everything", () => time.show(null)],
    ["First 750 ms", "Show the first 750 ms", () => to(0, 0.75)],
    ["+", "Zoom in", around(0.5, 0)],
    ["−", "Zoom out", around(2, 0)],
    ["←", "Earlier", around(1, -0.4)],
    ["→", "Later", around(1, 0.4)],
  ];
  for (const [text, label, act] of made) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, onclick: act });
    button.setAttribute("aria-label", label);
    bar.append(button);
  }
}

function failed(error: unknown): void {
  at("time-sequence").append(`The graphs could not be drawn: ${error}`);
}

try {
  start();
} catch (error) {
  failed(error);
}
