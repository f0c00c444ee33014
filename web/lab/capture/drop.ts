// A capture dropped on the page, or chosen. A worker reads it; the page lists its connections and draws one of them.

import { draw, type Chart } from "../../draw/index";
import type { Figure } from "../../draw/form";
import { group } from "../../draw/group";
import { quantity, rangeSummary, timeSequence, whole, type Segments } from "../../capture/sequence";
import { made } from "../fields";
import { captures } from "../module";
import type { Language } from "../language";
import { estimate, type Estimate, type Shown } from "./estimate";
import { data, ends, type Connection } from "./facts";
import { GROUP, overTime } from "./figures";
import { Others } from "./others";
import type { Answer, Curves, Listed, Question } from "./protocol";
import { capture, limit, percent, rate } from "./words";

/** The most problems reported; the first says what is wrong. */
const PROBLEMS = 3;

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

/** `tried`: puts the estimate into the fields. */
export class Drop {
  private worker: Worker | undefined;
  private name = "";
  private listed: Listed | undefined;
  private chosen: Connection | undefined;
  /** Connections chosen so far. */
  private readonly read = new Map<number, { segments: Segments; shown: Shown }>();
  private readonly charts = new Map<string, Chart>();
  private over: Figure | undefined;
  private readonly others: Others;

  constructor(
    private readonly language: Language,
    private readonly tried: (path: Estimate) => void,
  ) {
    this.others = new Others(language, (words) => void (at("capture-others").textContent = words));
    const input = at<HTMLInputElement>("capture-file");
    input.addEventListener("change", () => {
      const [file] = input.files ?? [];
      if (file !== undefined) this.open(file);
      input.value = "";
    });
    at("capture-cancel").addEventListener("click", () => this.cancel());
    at("capture-close").addEventListener("click", () => this.close(""));
    const over = (inside: boolean) => (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      document.body.classList.toggle("dropping", inside);
    };
    addEventListener("dragover", over(true));
    addEventListener("dragleave", over(false));
    addEventListener("drop", (event) => {
      over(false)(event);
      const file = event.dataTransfer?.files[0];
      if (file !== undefined) this.open(file);
    });
    group(GROUP).join({ show: () => this.say(), point: () => undefined });
  }

  private open(file: File): void {
    this.close("");
    this.name = file.name;
    this.busy("opening it");
    const worker = new Worker("capture.js", { type: "module" });
    this.worker = worker;
    worker.onerror = (event) => this.failed(event.message || "the reader of captures could not be loaded");
    worker.onmessage = ({ data: answer }: MessageEvent<Answer>) => {
      if (this.worker === worker) this.receive(answer);
    };
    captures().then(
      (compiled) => this.worker === worker && this.ask({ kind: "open", file, module: compiled }),
      (error: unknown) => this.worker === worker && this.failed(error instanceof Error ? error.message : String(error)),
    );
  }

  private receive(answer: Answer): void {
    switch (answer.kind) {
      case "progress":
        this.busy(`${quantity(answer.bytes, "B")} of ${quantity(answer.of, "B")}`, answer.bytes / answer.of);
        break;
      case "listed":
        this.list(answer.listed, quantity(answer.tookMs / 1e3, "s"));
        break;
      case "curves":
        this.curves(answer.connection, answer.curves);
        break;
      case "segments":
        this.read.set(answer.connection, answer);
        this.busy(undefined);
        if (answer.connection === this.chosen?.index) this.segments();
        break;
      case "many":
        this.busy(undefined);
        at("capture-path").textContent = "It has too many packets to estimate its path here. On the command line, use sawtooth whatif FILE.";
        at("capture-drawn").textContent =
          `It has ${whole(answer.packets)} packets. The page draws each segment of up to ${whole(answer.most)}; the command line draws them all: sawtooth capture FILE --connection ${answer.connection} --html PAGE.`;
        break;
      case "failed":
        this.failed(answer.why);
    }
  }

  private list(listed: Listed, took: string): void {
    this.listed = listed;
    this.busy(undefined);
    at("capture-said").textContent = capture(listed, this.name, took);
    const { problems } = listed.facts;
    const more = problems.length > PROBLEMS ? [`and ${problems.length - PROBLEMS} more`] : [];
    at("capture-problems").hidden = problems.length === 0;
    at("capture-problems").textContent = `The file is incomplete; this shows what could be read. ${[...problems.slice(0, PROBLEMS), ...more].join("; ")}.`;
    at("capture-close").hidden = false;
    at("capture-list").hidden = listed.count === 0;
    const heads = ["sender → receiver", "data", "goodput", "lost", "limit"];
    const head = made("tr", "");
    head.append(...heads.map((words) => Object.assign(made("th", ""), { textContent: words, scope: "col" })));
    at("capture-rows").replaceChildren(head, ...listed.connections.map((one) => this.row(one)));
    const first = listed.connections.find((one) => data(one) !== undefined);
    if (first !== undefined) this.choose(first.index);
  }

  private row(connection: Connection): HTMLElement {
    const of = data(connection);
    const line = made("tr", "");
    const first = made("td", "");
    if (of === undefined) first.textContent = ends(connection);
    else {
      const button = made("button", "");
      button.type = "button";
      button.dataset["connection"] = String(connection.index);
      button.textContent = ends(connection);
      button.addEventListener("click", () => this.choose(connection.index));
      first.append(button);
    }
    const cells = of === undefined ? ["none", "–", "–", "–"] : [
      quantity(of.acknowledged_bytes, "B"),
      rate(of.goodput_bps),
      of.loss.rate === null ? "–" : percent(of.loss.rate),
      limit(of),
    ];
    line.append(first, ...cells.map((words) => Object.assign(made("td", ""), { textContent: words })));
    return line;
  }

  private choose(index: number): void {
    this.chosen = this.listed!.connections.find((one) => one.index === index);
    this.charts.get("capture-time-sequence")?.remove();
    this.charts.delete("capture-time-sequence");
    group(GROUP).show(null);
    for (const button of at("capture-rows").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset["connection"] === String(index)));
    }
    at("capture-drawn").textContent = "Every segment of this connection is being read.";
    this.ask({ kind: "choose", connection: index, known: this.read.has(index) });
  }

  private curves(connection: Connection, curves: Curves): void {
    if (connection.index !== this.chosen?.index) return;
    const of = data(connection)!;
    at("capture-first").hidden = at("capture-shown").hidden = false;
    at("capture-ends").textContent = ends(connection);
    at("capture-verdict").replaceChildren(
      ...of.verdict.flatMap(([question, answer]) => [
        Object.assign(made("dt", ""), { textContent: question }),
        Object.assign(made("dd", ""), { textContent: answer }),
      ]),
    );
    at<HTMLButtonElement>("capture-try").disabled = true;
    this.others.stop();
    at("capture-path").textContent = "Its path is estimated once its segments are read.";
    this.over = overTime(curves, of.rtt.whole?.median_s ?? 0, connection.end_s - connection.start_s);
    this.draw(this.over);
    this.segments();
  }

  private path(shown: Shown): void {
    const { how, path } = estimate(shown, this.language);
    const button = at<HTMLButtonElement>("capture-try");
    button.disabled = path === undefined;
    button.onclick = () => path !== undefined && this.tried(path);
    at("capture-path").textContent = how;
    const { start_s, end_s } = this.chosen!;
    if (path !== undefined) this.others.ask(path, end_s - start_s, data(this.chosen!)?.goodput_bps ?? null);
  }

  /** The chosen connection's segments, once they are read. */
  private segments(): void {
    const found = this.read.get(this.chosen!.index);
    if (found === undefined || this.over === undefined) return;
    this.path(found.shown);
    const { x, spans } = this.over.panels[0]!;
    this.draw(timeSequence("capture-time-sequence", [{ name: "", segments: found.segments, spans: spans ?? [] }], x.high!, GROUP));
    this.say();
  }

  /** Describes the visible segments in words. */
  private say(): void {
    const found = this.read.get(this.chosen?.index ?? -1);
    if (found === undefined || this.over === undefined) return;
    const [from, to] = group(GROUP).range ?? [0, this.over.panels[0]!.x.high!];
    at("capture-drawn").textContent = `${rangeSummary(found.segments, from, to)}.`;
  }

  private draw(figure: Figure): void {
    const chart = this.charts.get(figure.name);
    if (chart !== undefined) chart.set(figure);
    else this.charts.set(figure.name, draw(at(figure.name), figure));
  }

  private failed(why: string): void {
    const { name } = this;
    const listed = this.listed !== undefined;
    this.close("");
    const fix = "A pcap or pcapng file is needed, plain or packed with gzip";
    at("capture-wrong").hidden = false;
    at("capture-wrong").textContent = listed ? `${name}: ${why}.` : `${name}: ${why}. ${fix}.`;
  }

  /** The progress from 0 to 1; undefined: nothing is being read. */
  private busy(words: string | undefined, share = 0): void {
    at("capture-busy").hidden = words === undefined;
    at<HTMLProgressElement>("capture-progress").value = share;
    at("capture-far").textContent = `Reading ${this.name}: ${words ?? ""}`;
  }

  /** What has been read stays. */
  private cancel(): void {
    if (this.listed === undefined) return this.close("Cancelled.");
    this.ask({ kind: "stop" });
    this.busy(undefined);
    at("capture-drawn").textContent = "Its segments are not read: cancelled.";
  }

  private close(words: string): void {
    this.worker?.terminate();
    this.worker = undefined;
    this.listed = this.chosen = this.over = undefined;
    this.read.clear();
    for (const chart of this.charts.values()) chart.remove();
    this.charts.clear();
    this.busy(undefined);
    this.others.stop();
    for (const id of ["capture-close", "capture-list", "capture-first", "capture-shown", "capture-problems", "capture-wrong"]) at(id).hidden = true;
    at("capture-said").textContent = words;
    at("capture-wrong").textContent = "";
  }

  private ask(question: Question): void {
    this.worker?.postMessage(question);
  }
}
