"use strict";

// Runs the scripts of a page on a document that takes everything and shows nothing, and tells what they read of the
// first capture and what they failed at, as JSON: node page_in_node.js PAGE

const fs = require("node:fs");
const vm = require("node:vm");

const page = fs.readFileSync(process.argv[2], "utf8");
// The first one draws what all pages have: here it is a group of graphs that show the same time.
const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map((found) => found[1]).slice(1);
const members = [];
const group = { join: (one) => members.push(one), show: (range) => members.forEach((one) => one.show(range)) };
// Frames that were asked for and are still to come.
let frames = 0;
const frame = (act) => { frames += 1; setTimeout(() => { act(); frames -= 1; }, 0); };
const text = page.match(/<script type="application\/json" id="content">([^]*?)<\/script>/)[1];
const drawn = { images: 0 };
const failures = [];
process.on("uncaughtException", (error) => failures.push(String(error.stack)));

// Anything that a page may ask of an element: each property is another such thing, each call answers one.
function anything(known = {}) {
  return new Proxy(function () {}, {
    get(_, name) {
      if (name in known) return known[name];
      if (name === Symbol.toPrimitive) return () => 0;
      if (name === Symbol.iterator) return function* () {};
      if (name === "then") return undefined;
      return (known[name] = anything());
    },
    set(_, name, value) { known[name] = value; return true; },
    apply: () => anything(),
    construct: () => anything(),
  });
}

const rectangle = { width: 800, height: 300, left: 0, top: 0, right: 800, bottom: 300 };
const element = () => anything({
  querySelector: element,
  getBoundingClientRect: () => rectangle, clientWidth: 800, clientHeight: 300, offsetWidth: 800, offsetHeight: 300,
  getContext: () => anything({
    measureText: () => ({ width: 10 }), drawImage: () => { drawn.images += 1; }, putImageData: () => {},
  }),
});
const graphs = anything({ append: (...words) => failures.push(...words.filter((word) => typeof word === "string")),
  clientWidth: 800, getBoundingClientRect: () => rectangle });
const section = anything({ querySelector: () => graphs });

const world = vm.createContext({
  sawtooth: { charts: new Map([["over-time", { panels: [{ group }] }]]) },
  console, fetch, DecompressionStream, Response, performance, Promise, setTimeout,
  devicePixelRatio: 1, addEventListener: () => {}, requestAnimationFrame: frame,
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  getComputedStyle: () => ({ getPropertyValue: () => "#123456" }),
  ImageData: class { constructor(width, height) { this.data = new Uint8ClampedArray(4 * width * height); } },
  OffscreenCanvas: class { getContext() { return anything({ putImageData: () => {} }); } },
  ResizeObserver: class { observe() {} },
  document: anything({
    getElementById: (id) => (id === "content" ? { textContent: text } : element()),
    querySelectorAll: (which) => (which === ".graphed" ? [section] : which === ".graphs" ? [graphs] : []),
    createElement: element, documentElement: element(), activeElement: null,
  }),
});
for (const script of scripts) vm.runInContext(script, world);

// Waits for what the page reads, then for what it draws.
const later = (ms) => new Promise((done) => setTimeout(done, ms));
const ask = (what) => vm.runInContext(what, world);

(async () => {
  for (let round = 0; round < 5000 && !failures.length && ask("!views[0]?.whole"); round++) {
    await later(10);
  }
  const told = failures.length ? {} : JSON.parse(ask(`(() => {
    const view = views[0], sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
    return JSON.stringify({
      segments: view.data.length, seq: sum(view.data.seq), acks: sum(view.acks.ack), t_s: sum(view.data.t_s),
      kinds: Object.fromEntries(view.counts), shown: [view.left, view.right],
    });
  })()`));
  if (!failures.length) ask("to(0.05, 0.1); zoom(0.5); move(0.2); everything()");
  while (frames && !failures.length) await later(10);
  console.log(JSON.stringify({ ...told, images: drawn.images, failures }));
})();
