// Calls the page's code, and answers in JSON: node lab_in_node.mjs BUILT VERB < QUESTIONS > ANSWERS

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { kept, read, run } from "./lab_tables.mjs";

const [built, verb] = process.argv.slice(2);
const part = (name) => import(pathToFileURL(`${built}/${name}.mjs`).href);
const questions = JSON.parse(readFileSync(0, "utf8"));

/** The result, or the error. */
function told(act) {
  try {
    return act();
  } catch (error) {
    if (error.code === undefined) throw error;
    return { code: error.code, message: error.message, fix: error.fix, field: error.field ?? null };
  }
}

/** The core. */
async function started() {
  return new (await part("core")).Core(await WebAssembly.compile(readFileSync(`${built}/simulator.wasm`)));
}

/** The scenario language. */
async function spoken() {
  return new (await part("language")).Language(await started());
}

const verbs = {
  /** Scenarios compiled by the core; if `asked`, of the page's question. */
  async compile({ scenarios, asked = false }) {
    const [language, { read }] = [await spoken(), await part("experiment")];
    const compiled = (scenario) => (asked ? read({ scenario, alone: false }, language).compiled[0] : language.compile(scenario));
    return scenarios.map((scenario) => told(() => ({ json: compiled(scenario).json })));
  },

  /** Quantities: [kind, text] in the smallest unit. */
  async units(given) {
    const language = await spoken();
    return given.map(([kind, text]) => told(() => language.read(kind, text)));
  },

  /** TOML texts: their tables. */
  async toml(texts) {
    const language = await spoken();
    return texts.map((text) => told(() => language.tables(text)));
  },

  /** For each slider, the text at each of its positions, and the position found for it. */
  async sliders() {
    const { sliders } = await part("sliders");
    const places = (slider) => Array.from({ length: slider.last + 1 }, (_, place) => [slider.text(place), slider.place(slider.text(place))]);
    return Object.fromEntries(Object.entries(sliders(await spoken())).map(([name, slider]) => [name, places(slider)]));
  },

  /** The positions of texts on a slider: [slider, text]. */
  async places(given) {
    const found = (await part("sliders")).sliders(await spoken());
    return given.map(([name, text]) => found[name].place(text));
  },

  /** Numbers as the page formats them: [value, digits]. */
  async amounts(given) {
    const { significant, stretch } = await part("amount");
    return given.map(([value, digits]) => [significant(value, digits), stretch(value, digits)]);
  },

  /** For each kind of event and each control: the section that specifies it. */
  async sources(controls) {
    const { KINDS } = await part("understand/events");
    return Object.fromEntries(Object.entries(KINDS).map(([kind, { source }]) => [kind, controls.map((cc) => source(cc))]));
  },

  /** Compiled scenarios, run. */
  async run(scenarios) {
    return run((await part("core")).Core, readFileSync(`${built}/simulator.wasm`), scenarios);
  },

  /** The same, watched. */
  async watch(scenarios) {
    return run((await part("core")).Core, readFileSync(`${built}/simulator.wasm`), scenarios, true);
  },

  /** Questions to the page: the rows of its summary. */
  async summary(questions) {
    const [{ read: asked }, { RunLines }, { summary }] = await Promise.all(["experiment", "series", "summary"].map(part));
    const [core, language] = [await started(), await spoken()];
    const lines = ({ json, durationNs, flows }, intervalS) => {
      const simulation = core.simulation(json);
      const run = new RunLines(flows.length, intervalS, core.limits(json));
      while (!simulation.advance(durationNs, 1_000_000)) continue;
      run.add(simulation.take(), durationNs / 1e9, true);
      simulation.close();
      return run;
    };
    return questions.map((question) => {
      const read = asked(question, language);
      return summary(read, read.compiled.map((one) => lines(one, read.intervalS)));
    });
  },

  /** Questions to the page: its warnings. */
  async warnings(questions) {
    const language = await spoken();
    const [{ read: asked }, { warnings }] = await Promise.all(["experiment", "warnings"].map(part));
    return questions.map((question) => warnings(asked(question, language), language));
  },

  /** Questions to the page: the most packets, and a lighter question. */
  async heavy(questions) {
    const language = await spoken();
    const [{ read: asked }, { packets, lighter }] = await Promise.all(["experiment", "heavy"].map(part));
    return questions.map((question) => {
      const read = asked(question, language);
      return { packets: packets(read), ...lighter(read) };
    });
  },

  /** Questions to start from. */
  async presets() {
    return (await part("presets")).PRESETS;
  },

  /** The records of kinds of queues. */
  async queues() {
    return [...(await spoken()).queues.values()];
  },

  /** A capture, read. */
  async read({ capture, detailed }) {
    return read((await part("core")).Core, readFileSync(`${built}/captures.wasm`), readFileSync(capture), detailed);
  },

  /** For captures: the core's estimate of their first connection's path, and what the page makes of it. */
  async paths(captures) {
    const [{ Core }, { estimate }] = await Promise.all(["core", "capture/estimate"].map(part));
    const language = await spoken();
    const told = [];
    for (const capture of captures) {
      const { shown } = await read(Core, readFileSync(`${built}/captures.wasm`), readFileSync(capture), 0);
      told.push({ shown, told: estimate(shown, language) });
    }
    return told;
  },

  /** A capture, read, and the kept segments taken from it. */
  async kept({ capture, rows }) {
    return kept((await part("core")).Core, readFileSync(`${built}/captures.wasm`), readFileSync(capture), rows);
  },

  /** The core's errors for nonsense. */
  async refusals({ scenario, capture }) {
    const core = await started();
    const reader = new (await part("core")).Core(await WebAssembly.compile(readFileSync(`${built}/captures.wasm`)));
    const said = (act) => {
      try {
        return act();
      } catch (error) {
        return `${error.constructor.name}: ${error.message}`;
      }
    };
    const bytes = new TextEncoder().encode(capture);
    return [
      said(() => core.simulation(scenario)),
      said(() => reader.capture((most) => bytes.subarray(0, most))),
      said(() => reader.capture(() => { throw new Error("gone"); })),
      core.controls(),
    ];
  },
};

process.stdout.write(JSON.stringify(await verbs[verb](questions)));
