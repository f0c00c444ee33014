"use strict";

// Runs the script of a capture's page on a document that accepts everything and shows nothing. Prints as JSON what the
// script drew and where it failed: node page_in_node.js PAGE

const fs = require("node:fs");
const vm = require("node:vm");

const page = fs.readFileSync(process.argv[2], "utf8");
// The first script draws figures; here they are only recorded.
const [script] = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map((found) => found[1]).slice(1);
const text = page.match(/<script type="application\/json" id="content">([^]*?)<\/script>/)[1];
const figures = [];
const failures = [];
const elements = new Map();
process.on("uncaughtException", (error) => failures.push(String(error.stack)));

function element() {
  return { textContent: "", buttons: [], append(...all) { (typeof all[0] === "string" ? failures : this.buttons).push(...all); }, setAttribute: () => {} };
}

const group = {
  range: null, members: [], join(one) { this.members.push(one); },
  show(range) { this.range = range; this.members.forEach((one) => one.show(range)); },
};
const world = vm.createContext({
  sawtooth: { group: () => group, draw: (_, figure) => { figures.push(figure); return { set: (other) => figures.push(other) }; } },
  fetch, DecompressionStream, Response,
  document: {
    createElement: element,
    getElementById: (id) => {
      if (!elements.has(id)) elements.set(id, id === "content" ? { textContent: text } : element());
      return elements.get(id);
    },
  },
});
vm.runInContext(script, world);

const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const later = (ms) => new Promise((done) => setTimeout(done, ms));

(async () => {
  // First the data in the page, then everything.
  for (let round = 0; round < 5000 && !failures.length && figures.length < 2; round++) await later(10);
  if (failures.length) return console.log(JSON.stringify({ failures }));
  const named = (name) => figures.at(-1).panels[0].series.find((one) => one.name === name);
  const sent = figures.at(-1).panels[0].series.filter((one) => one.kind === "points" && !one.name.includes("SACK"));
  const told = () => elements.get("status-0").textContent;
  await later(0);
  const whole = told();
  elements.get("bar").buttons.find((one) => one.textContent === "+").onclick();
  console.log(JSON.stringify({
    failures,
    segments: sum(sent.map((one) => one.x.length)),
    seq: sum(sent.map((one) => sum(one.low))),
    t_s: sum(sent.map((one) => sum(one.x))),
    acks: sum(named("acknowledged").y),
    kinds: Object.fromEntries(sent.filter((one) => one.name !== "data").map((one) => [one.name, one.x.length])),
    said: named("data").said(0),
    shown: [figures.at(-1).panels[0].x.low, figures.at(-1).panels[0].x.high],
    first: sum(figures[0].panels[0].series.map((one) => one.x.length)),
    whole, zoomed: group.range, told: told(),
  }));
})();
