// The page: sends the question from fields, files and links to the worker, then draws and describes the answer.
// One file, because every part of the page reads and changes the same question.

import { draw, type Chart } from "../draw/index";
import "./style.css";
import { Core } from "./core";
import { Drop } from "./capture/drop";
import type { Estimate } from "./capture/estimate";
import { read, type Experiment, type Question } from "./experiment";
import { Field, FIELDS, made } from "./fields";
import { figures } from "./figures";
import * as file from "./file";
import { Flows } from "./flows";
import { Heavy, packets } from "./heavy";
import { HostEcn } from "./hostecn";
import { Language } from "./language";
import { module } from "./module";
import { Opening } from "./opening/opening";
import { sharing } from "./opening/share";
import { QUESTIONS, STEPS } from "./opening/steps";
import * as permalink from "./permalink";
import { InputError, words as inWords } from "./problem";
import { NativeSwitch } from "./nativeswitch";
import { PRESETS, type Preset } from "./presets";
import { published } from "./published";
import { QueueFields } from "./queuefields";
import { Runner } from "./runner";
import { Running } from "./running";
import { DEFAULTS, type Scenario } from "./scenario";
import type { RunLines } from "./series";
import { digits, mbps, percent, sentence, summary, type Row } from "./summary";
import { sliders } from "./sliders";
import { Sweep } from "./sweep";
import { Understand } from "./understand/view";
import { warnings } from "./warnings";

/** Fields that are always visible; the others are under "More". */
const FIRST = 3;
/** The background sweep starts, and the address is updated, this long after the last change. */
const QUIET_MS = 700;
/** How often rows of a running simulation are drawn. */
const EVERY_MS = 100;
/**
 * While a slider moves, a run gets this long to show its first rows. Otherwise nothing would be drawn until the slider
 * rests.
 */
const MOVING_MS = 150;

const DRAG = "Drag “now” to another loss.";

const at = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E;

async function main(): Promise<void> {
  at("served").remove();
  const charts = new Map<string, Chart>();
  let question: Question = PRESETS[0]!.question;
  /** The address is a damaged link; it stays until something is changed. */
  let damaged = false;
  let experiment: Experiment | undefined;
  let quiet: ReturnType<typeof setTimeout> | undefined;
  /** Nothing runs and nothing is being changed: background work may begin. */
  let [answered, still] = [false, false];
  /** Fields that were edited but not yet run. */
  const edits = new Map<string, unknown>();
  let next: ReturnType<typeof setTimeout> | undefined;
  let begunMs = -Infinity;
  /** What the figures are of, and how goodput is drawn. */
  let latest: { of: Experiment; runs: readonly RunLines[] } | undefined;
  const goodput = {
    raw: false,
    toggle: () => {
      goodput.raw = !goodput.raw;
      drawn();
    },
  };

  const story = PRESETS[0]!.question;
  const opening = new Opening(
    (step) => `#${permalink.short({ ...story, scenario: { ...story.scenario, path: { ...story.scenario.path, loss: STEPS[step - 1]!.loss } } }, { step })}`,
  );
  if (location.hash === "") opening.guess();
  document.body.classList.toggle("embed", permalink.view(location.hash).embed === true);
  const first = (): void => opening.first(location.hash);
  first();
  addEventListener("hashchange", first);

  const native = new NativeSwitch(() => ask(question));
  const failed = (why: string, problem?: InputError): void => {
    running.ended();
    if (problem === undefined) wrong(why);
    else refused(problem);
  };
  const runner = new Runner({ grown: (...answer) => shown(...answer), failed, ran: (...answer) => native.ran(...answer) }, EVERY_MS);
  const running = new Running(cancelled, () => ask(question, false, damaged));
  const sweep = new Sweep((figure, done, of) => {
    at("swept").textContent = done < of ? `Each control by itself, ${done} of ${of} losses` : [DRAG, sweep.words, source(question)].filter(Boolean).join(" ");
    show(figure.name, at("response"), () => sweep.figure(published(preset(question)?.published)) ?? figure);
  }, (percent) => edit("path.loss", nearest(percent), true));
  const understand = new Understand(at<HTMLDetailsElement>("understand"));
  let language: Language;
  try {
    const [core] = await Promise.all([module.then((compiled) => Core.of(compiled)), runner.ready, native.find()]);
    language = new Language(core);
    runner.limits = (json) => core.limits(json);
  } catch (error) {
    wrong(`the simulator could not be loaded: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }

  const slider = sliders(language);
  const fields = FIELDS.map((spec) => new Field(spec, slider[spec.slider ?? ""], (text, moving) => edit(spec.field, text, moving)));
  const queue = new QueueFields(language, slider["queue"]!, (changed, moving) => edit("path.queue", changed, moving));
  const ecn = new HostEcn((changed) => edit("host.ecn", changed));
  const flows = new Flows(language, (changed) => ask({ ...question, scenario: { ...question.scenario, flows: changed } }));
  const roots = fields.map(({ root }) => root);
  at("fields").append(...roots.slice(0, FIRST));
  at("more-fields").append(...queue.roots, ecn.root, ...roots.slice(FIRST));
  at("flows").append(flows.root);
  presets();
  taking();
  at<HTMLInputElement>("alone").addEventListener("change", () => ask({ ...question, alone: at<HTMLInputElement>("alone").checked }));
  removeEventListener("hashchange", first);
  addEventListener("hashchange", () => {
    const linked = followed();
    opening.step(permalink.view(location.hash).step);
    if (linked === undefined) return;
    if (permalink.written(linked) !== permalink.written(question)) ask(linked, true);
    else if (document.body.dataset["finished"] !== undefined) document.body.dataset["finished"] = addressed();
  });
  opening.begin(slider["loss"]!, (text) => edit("path.loss", text, true));
  sharing(() => {
    const { step } = permalink.view(location.hash);
    const link = (embed: boolean): string => `${location.href.split("#")[0]}#${permalink.short(question, { ...(step ? { step } : {}), ...(embed ? { embed } : {}) })}`;
    return { link: link(false), embed: link(true), title: opening.title, settings: settings(question), paths: opening.drawn, window: opening.window };
  });
  at("story-lab").addEventListener("click", () => at("ask").scrollIntoView());
  questions();
  const heavy = new Heavy(at("heavy"), (less) => ask(less, true));
  new Drop(language, (path) => tryPath(path));
  const linked = followed();
  ask(linked ?? question, true, damaged);
  // With its server on this machine it needs no network.
  if (!native.isThere) whenIdle(() => void navigator.serviceWorker?.register("offline.js").catch(() => {}));
  document.body.dataset["ready"] = String(Math.round(performance.now()));

  /** The question in the address. If it is damaged, says so and keeps what is shown. */
  function followed(): Question | undefined {
    at("link-wrong").hidden = true;
    damaged = false;
    try {
      return permalink.question(location.hash);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      damaged = true;
      at("link-wrong").hidden = false;
      const where = error.field === undefined ? "" : `${error.field}: `;
      at("link-wrong").textContent = `The link is damaged, and what is shown is not what it asked: ${where}${inWords(error)}`;
      return undefined;
    }
  }

  /**
   * Asks another question; `whole`: not from a field, so fields are updated at once. `keep`: the address stays as it
   * is.
   */
  function ask(other: Question, whole = false, keep = false): void {
    question = other;
    if (!keep) {
      damaged = false;
      at("link-wrong").hidden = true;
    }
    edits.clear();
    fill(whole);
    clearTimeout(quiet);
    [answered, still] = [false, false];
    delete document.body.dataset["finished"];
    running.ended();
    understand.changed();
    try {
      experiment = read(question, language);
      sweep.stop(experiment);
    } catch (error) {
      sweep.stop();
      if (!(error instanceof InputError)) throw error;
      runner.stop();
      at("heavy").hidden = true;
      refused(error);
      return;
    }
    refused(undefined);
    opening.changed(experiment, question.scenario.path?.loss ?? DEFAULTS.path.loss, permalink.asks(location.hash, question) ? permalink.view(location.hash).step : undefined);
    at("warnings").textContent = warnings(experiment, language).join(" ");
    const elsewhere = native.wanted(experiment, packets(experiment));
    const tooHeavy = heavy.words(experiment, elsewhere !== undefined);
    at("answer").classList.toggle("stale", tooHeavy !== undefined);
    if (tooHeavy === undefined) {
      runner.ask(experiment, elsewhere);
      running.begun();
      begunMs = performance.now();
    } else {
      runner.stop();
      answered = true;
      tell(`${tooHeavy}${native.offer}${charts.has("goodput") ? " The results below are from the last question that ran." : ""}`);
    }
    const here = location.hash;
    quiet = setTimeout(() => {
      still = true;
      background();
      // Somebody went to another address, whose event is on its way.
      if (location.hash !== here) return;
      const hash = `#${addressed()}`;
      // If the address was typed by hand and asks the same, adds no step to the history.
      if (!damaged && (location.hash === "" || permalink.asks(location.hash, question))) history.replaceState(null, "", hash);
      else if (!damaged && location.hash !== hash) history.pushState(null, "", hash);
    }, QUIET_MS);
  }

  /** A short link stays as it was written. */
  function addressed(): string {
    return permalink.isShort(location.hash) && permalink.asks(location.hash, question) ? location.hash.slice(1) : permalink.written(question);
  }

  /** Stops background work, so that it takes no processor time from the question. */
  function background(): void {
    if (answered && still && experiment !== undefined) sweep.ask(experiment, language);
  }

  function cancelled(): void {
    runner.stop();
    at("answer").classList.add("stale");
    tell("Cancelled. The results below go as far as the run did.");
  }

  /** `moving`: the change comes from a slider that may keep moving. */
  function edit(field: string, value: unknown, moving = false): void {
    edits.set(field, value);
    const left = answered || !moving ? 0 : begunMs + MOVING_MS - performance.now();
    if (left <= 0) edited();
    else next ??= setTimeout(edited, left);
  }

  function edited(): void {
    clearTimeout(next);
    next = undefined;
    if (edits.size === 0) return;
    const scenario = structuredClone(question.scenario) as Scenario & Record<string, unknown>;
    for (const [field, value] of edits) {
      const [table, name] = field.includes(".") ? (field.split(".") as [string, string]) : [undefined, field];
      const target = table === undefined ? scenario : ((scenario[table] ??= {}) as Record<string, unknown>);
      const optional = FIELDS.find((one) => one.field === field)?.optional;
      if (optional !== undefined && value === "") delete target[name!];
      else target[name!] = value;
    }
    // Once changed, the question no longer belongs to a preset.
    delete scenario.name;
    ask({ ...question, scenario });
  }

  /** Puts the path estimated from a capture into the fields. */
  function tryPath({ path, receiveBuffer }: Estimate): void {
    const { name: _, host, ...scenario } = question.scenario;
    const { receive_buffer: __, ...others } = host ?? {};
    const hosts = receiveBuffer === undefined ? others : { ...others, receive_buffer: receiveBuffer };
    ask({ ...question, scenario: { ...scenario, path, ...(Object.keys(hosts).length > 0 ? { host: hosts } : {}) } }, true);
    fields[0]!.text.focus();
    at("ask").scrollIntoView();
  }

  /** Updates the fields to show the question, except one that the reader is typing into. */
  function fill(whole: boolean): void {
    const { scenario, alone } = question;
    const { path = {}, flows: given = [{}] } = scenario;
    const all: Record<string, unknown> = { ...DEFAULTS.path, ...path, duration: scenario.duration ?? DEFAULTS.duration };
    for (const field of fields) {
      field.show(all[field.spec.field.replace("path.", "")], whole);
    }
    queue.set(all["queue"] as never, whole);
    ecn.set(scenario.host?.ecn);
    if (whole && (scenario.host?.ecn !== undefined || ["queue", "ack_loss", "reverse_rate"].some((name) => name in path))) at<HTMLDetailsElement>("more").open = true;
    flows.set(given);
    at<HTMLInputElement>("alone").checked = alone;
    const chosen = preset(question);
    at<HTMLSelectElement>("preset").value = chosen?.name ?? "";
    at("about").textContent = chosen?.about ?? "";
    at("file").textContent = file.toml(question);
    at("command").textContent = file.command(question);
  }

  /** Shows an error at its field. */
  function refused(error: InputError | undefined): void {
    const words = error === undefined ? undefined : inWords(error);
    const of = (field: string): boolean => error?.field === field || (error?.field?.startsWith(`${field}.`) ?? false);
    let found = queue.showError(error, words);
    for (const field of fields) {
      const its = of(field.spec.field);
      found ||= its;
      field.showError(its ? words : undefined);
    }
    found ||= of("host.ecn");
    ecn.showError(of("host.ecn") ? words : undefined);
    const flow = /^flows\.(\d+)(?:\.(\w+))?/.exec(error?.field ?? "");
    if (document.querySelector("#more [aria-invalid]") !== null) at<HTMLDetailsElement>("more").open = true;
    flows.showError(flow === null ? -1 : Number(flow[1]), words ?? "", flow?.[2]);
    if (error !== undefined && !found && flow === null) wrong(`${error.field ?? "scenario"}: ${words}`);
    else at("wrong").hidden = true;
    at("answer").classList.toggle("stale", error !== undefined);
    if (error !== undefined) tell(`${error.field ?? "scenario"}: ${words}${experiment === undefined ? "" : " The results below are from the last valid input."}`);
  }

  function shown(of: Experiment, runs: readonly RunLines[], finished: boolean): void {
    if (of !== experiment) return;
    latest = { of, runs };
    drawn();
    const rows = summary(of, runs);
    opening.shown(of, runs, rows, finished);
    table(of, rows);
    running.reached(Math.min(...runs.map(({ nowS }) => nowS)), of.durationS);
    if (finished) {
      running.ended();
      answered = true;
      background();
      if (!runner.native) heavy.measured(rows.reduce((sum, row) => sum + row.segments, 0), runner.workedMs);
      understand.answered(of, runs);
      whenIdle(() => understand.prepare());
      tell(sentence(of, rows));
      document.body.dataset["finished"] = addressed();
      edited();
    }
  }

  function drawn(): void {
    if (latest === undefined) return;
    for (const figure of figures(latest.of, latest.runs, goodput)) show(figure.name, at("figures"), () => figure);
  }

  /** The slider's text of a loss in percent. */
  function nearest(percent: number): string {
    return slider["loss"]!.text(slider["loss"]!.place(language.print("loss", percent * 1e7)) ?? 0);
  }

  function show(name: string, host: HTMLElement, figure: () => Parameters<typeof draw>[1]): void {
    const { question: of } = experiment!;
    const shownFigure = { ...figure(), ran: { words: settings(of), scenario: file.toml(of) } };
    const chart = charts.get(name);
    if (chart !== undefined) {
      chart.set(shownFigure);
      return;
    }
    const place = made("div", name === "goodput" || name === "window" ? "wide" : "");
    host.append(place);
    charts.set(name, draw(place, shownFigure));
  }

  /** Omits columns that are empty for all flows of this question. */
  function table(of: Experiment, rows: readonly Row[]): void {
    const marks = (of.question.scenario.host?.ecn ?? 0) !== 0 || rows.some(({ marked }) => marked > 0) || warnings(of, language).length > 0;
    const columns: [string, (row: Row) => string][] = [
      ["flow", (row) => row.name],
      ["mean goodput", (row) => mbps(row.meanMbps)],
      ["of the rate", (row) => percent(row.share)],
      ["sent again", (row) => percent(row.retransmitted)],
      ...(marks ? [["marked", (row: Row) => percent(row.marked)] as [string, (row: Row) => string]] : []),
      ["timeouts", (row) => String(row.timeouts)],
      ["mean RTT", (row) => `${digits(row.rttMs)} ms`],
      ...(of.flows.some(({ bytes }) => bytes !== undefined)
        ? [["done after", (row: Row) => (Number.isNaN(row.completedS) ? "–" : `${digits(row.completedS)} s`)] as [string, (row: Row) => string]]
        : []),
      ["limit", (row) => row.limit],
    ];
    const heads = columns.map(([head]) => head);
    const cells = rows.map((row) => columns.map(([, cell]) => cell(row)));
    const line = (tag: "th" | "td", words: string[]): HTMLElement => {
      const made_ = made("tr", "");
      made_.append(...words.map((word) => Object.assign(made(tag, ""), { textContent: word })));
      return made_;
    };
    at("means").hidden = !rows.some(({ partly }) => partly);
    at("numbers").replaceChildren(line("th", heads), ...cells.map((words) => line("td", words)));
  }

  function presets(): void {
    const select = at<HTMLSelectElement>("preset");
    const own = Object.assign(made("option", ""), { value: "", textContent: "a path of your own", disabled: true });
    select.append(own, ...PRESETS.map(({ name, title }) => Object.assign(made("option", ""), { value: name, textContent: title })));
    select.addEventListener("change", () => {
      const found = PRESETS.find(({ name }) => name === select.value);
      if (found !== undefined) ask(found.question, true);
    });
  }

  /** Questions below the story. */
  function questions(): void {
    const links = QUESTIONS.map((name) => PRESETS.find((one) => one.name === name)!).map(({ title, question: of }) => {
      const link = Object.assign(made("a", "button"), { href: `#${permalink.short(of)}`, textContent: title });
      link.addEventListener("click", () => at("ask").scrollIntoView());
      return link;
    });
    const own = Object.assign(made("button", ""), { type: "button", textContent: "Does it hold for your line?" });
    own.addEventListener("click", () => {
      at("ask").scrollIntoView();
      fields[0]!.text.focus({ preventScroll: true });
    });
    at("story-questions").append(...links, own);
  }

  function taking(): void {
    const took = (words: string): void => void (at("took").textContent = words);
    const copy = async (text: string, what: string): Promise<void> => {
      try {
        // Pages that are neither encrypted nor from this machine have no clipboard.
        await navigator.clipboard.writeText(text);
        took(`${what} is copied.`);
      } catch {
        took("The browser did not let the page copy; select the text below, or the address above.");
      }
    };
    at("copy").addEventListener("click", () => void copy(file.toml(question), "The file"));
    at("link").addEventListener("click", () => void copy(`${location.href.split("#")[0]}#${permalink.written(question)}`, "The link"));
    at("download").addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob([file.toml(question)], { type: "text/plain" }));
      Object.assign(made("a", ""), { href: url, download: file.fileName(question.scenario) }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1_000);
    });
    at<HTMLInputElement>("open").addEventListener("change", (event) => {
      const input = event.target as HTMLInputElement;
      const [chosen] = input.files ?? [];
      input.value = "";
      if (chosen === undefined) return;
      if (chosen.size > file.LARGEST) return took("That file is larger than 4 MiB: is it a scenario?");
      void chosen.text().then((text) => {
        try {
          ask(file.read(text, language), true);
          took(`${chosen.name} is open.`);
        } catch (error) {
          if (!(error instanceof InputError)) throw error;
          took(`${chosen.name}: ${error.field === undefined ? "" : `${error.field}: `}${inWords(error)}`);
        }
      });
    });
  }
}

function preset(question: Question): Preset | undefined {
  return PRESETS.find(({ name }) => name === question.scenario.name);
}

/** What was run, in a line. */
function settings({ scenario: { path = {}, duration = DEFAULTS.duration } }: Question): string {
  const { rate, rtt, loss } = { ...DEFAULTS.path, ...path };
  return `${rate}, ${rtt} round trip, ${typeof loss === "string" ? loss : "bursts of"} loss, ${duration}; simulated by sawtooth`;
}

function source(question: Question): string {
  const known = published(preset(question)?.published);
  return known === undefined ? "" : `Diamonds: published by ${known.source}.`;
}

/** Runs when the browser is idle. */
function whenIdle(act: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(act);
  else setTimeout(act, 200);
}

function tell(words: string): void {
  at("sentence").textContent = words;
}

function wrong(words: string): void {
  at("wrong").hidden = false;
  at("wrong").textContent = words;
}

void main();
