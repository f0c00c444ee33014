"use strict";

// The time-sequence graphs of one page. Bars and staircases are set into the pixels directly: they have no slopes, a million of them
// take milliseconds, and what lies in the same pixels hides nothing that a finer picture would show.

const content = JSON.parse(document.getElementById("content").textContent);
const look = content.look;
const MARGIN = { left: 58, right: 10, top: 12, bottom: 24 };
const STRIP = 7;            // CSS pixels of height, of what says what limits the transfer
const MARK_CELL = 6;        // CSS pixels within which one mark of a kind is enough
const FEW = 300;            // up to so many bars get arrow heads
const NEAR = 14;            // CSS pixels from the pointer within which a segment is told

// ---- Words and numbers ----

function scale(largest, unit) {
  const prefixes = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], ...(unit === "s" ? [[1e-3, "m"], [1e-6, "µ"]] : [])];
  const [factor, prefix] = prefixes.find(([one]) => largest >= one) ?? prefixes.at(-1);
  return [factor, prefix + unit];
}

function quantity(value, unit) {
  const [factor, scaled] = scale(value, unit);
  return `${Number((value / factor).toPrecision(4))} ${scaled}`;
}

function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough);
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12); i++) {
    found.push([i * step, (i * step).toFixed(digits)]);
  }
  return found;
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const dataColour = () => css("--data");

// ---- Pixels ----

class Raster {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.canvas = new OffscreenCanvas(width, height);
  }

  static ink(colour) {
    const rgb = parseInt(colour.slice(1), 16);
    return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
  }

  bar(x, from, to, ink, thick) {
    const top = Math.max(0, Math.min(from, to)), end = Math.min(this.height - 1, Math.max(from, to));
    if (end < 0 || top >= this.height) return;
    const right = Math.min(this.width, x + thick);
    for (let at = Math.max(0, x); at < right; at++) {
      const last = end * this.width + at;
      for (let i = top * this.width + at; i <= last; i += this.width) this.pixels[i] = ink;
    }
  }

  level(y, from, to, ink, thick) {
    const end = Math.min(this.height, y + thick);
    for (let row = Math.max(0, y); row < end; row++) {
      this.pixels.fill(ink, row * this.width + Math.max(0, from), row * this.width + Math.min(this.width, to + 1));
    }
  }

  onto(context, x, y) {
    this.canvas.getContext("2d").putImageData(this.image, 0, 0);
    context.drawImage(this.canvas, x, y);
    this.pixels.fill(0);
  }
}

const SHAPES = {
  "^": (c, x, y, r) => { c.moveTo(x, y - r); c.lineTo(x + r, y + r); c.lineTo(x - r, y + r); c.closePath(); },
  "v": (c, x, y, r) => { c.moveTo(x, y + r); c.lineTo(x + r, y - r); c.lineTo(x - r, y - r); c.closePath(); },
  "s": (c, x, y, r) => c.rect(x - r, y - r, 2 * r, 2 * r),
  "D": (c, x, y, r) => {
    c.moveTo(x, y - r); c.lineTo(x + r, y); c.lineTo(x, y + r); c.lineTo(x - r, y); c.closePath();
  },
  "o": (c, x, y, r) => { c.moveTo(x + r, y); c.arc(x, y, r, 0, 7); },
  "X": (c, x, y, r) => { for (const s of [r, -r]) { c.moveTo(x - r, y - s); c.lineTo(x + r, y + s); } },
  "P": (c, x, y, r) => { c.moveTo(x - r, y); c.lineTo(x + r, y); c.moveTo(x, y - r); c.lineTo(x, y + r); },
};

// All marks of one shape at once: a path each would take a hundred times as long.
function marked(context, shape, colour, places, radius) {
  context.beginPath();
  for (const [x, y] of places) SHAPES[shape](context, x, y, radius);
  context.lineWidth = radius / 2;
  context.fillStyle = context.strokeStyle = colour;
  if ("XP".includes(shape)) context.stroke(); else context.fill();
}

// ---- One graph ----

class Panel {
  constructor(view, title, height, drawer) {
    Object.assign(this, { view, drawer, height, dpr: 1 });
    this.box = document.createElement("div");
    this.box.className = "graph";
    this.box.innerHTML = "<h3></h3><canvas role=\"img\" tabindex=\"0\" aria-describedby=\"help\"></canvas>";
    this.box.firstChild.textContent = title;
    this.canvas = this.box.querySelector("canvas");
    this.canvas.setAttribute("aria-label", `${title}, ${view.name}`);
    this.canvas.style.height = `${height}px`;
    view.graphs.append(this.box);
    listen(this);
  }

  // Sizes in device pixels; x is time, y whatever the drawer fits.
  fit() {
    this.dpr = devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * this.dpr), height = Math.round(this.height * this.dpr);
    const px = (value) => Math.round(value * this.dpr);
    const plot = [width - px(MARGIN.left + MARGIN.right), height - px(MARGIN.top + MARGIN.bottom)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.raster = new Raster(Math.max(1, plot[0]), Math.max(1, plot[1]));
    }
    [this.x, this.y, this.w, this.h] = [px(MARGIN.left), px(MARGIN.top), this.raster.width, this.raster.height];
  }

  range(low, high) { [this.low, this.high] = [low, high > low ? high : low + 1]; }
  X(t) { return Math.floor((t - this.view.left) / (this.view.right - this.view.left) * (this.w - 1)); }
  Y(value) { return Math.round((this.high - value) / (this.high - this.low) * (this.h - 1)); }
  time(x) { return this.view.left + (x * this.dpr - this.x) / (this.w - 1) * (this.view.right - this.view.left); }
  value(y) { return this.high - (y * this.dpr - this.y) / (this.h - 1) * (this.high - this.low); }

  draw() {
    this.fit();
    const context = this.context = this.canvas.getContext("2d");
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.drawer(this);
  }

  axes(label, unit) {
    const { context: c, dpr, view } = this;
    strip(this);
    const [factor, scaled] = scale(this.high, unit);
    c.font = `${12 * dpr}px system-ui, sans-serif`;
    c.lineWidth = dpr;
    c.strokeStyle = css("--line");
    c.fillStyle = css("--muted");
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const [value, text] of ticks(this.low / factor, this.high / factor, Math.max(3, this.h / dpr / 45))) {
      const y = this.y + this.Y(value * factor) + 0.5;
      c.beginPath(); c.moveTo(this.x, y); c.lineTo(this.x + this.w, y); c.stroke();
      c.fillText(text, this.x - 6 * dpr, y);
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const [t, text] of ticks(view.left, view.right, this.w / dpr / 90)) {
      const x = this.x + this.X(t) + 0.5;
      c.beginPath(); c.moveTo(x, this.y); c.lineTo(x, this.y + this.h + 4 * dpr); c.stroke();
      c.fillText(`${text} s`, x, this.y + this.h + 6 * dpr);
    }
    c.textBaseline = "alphabetic";
    c.save();
    c.translate(12 * dpr, this.y + this.h / 2);
    c.rotate(-Math.PI / 2);
    c.fillText(`${label}, ${scaled}`, 0, 0);
    c.restore();
  }

  clipped(paint) {
    const c = this.context;
    c.save();
    c.beginPath(); c.rect(this.x, this.y, this.w, this.h); c.clip();
    c.translate(this.x, this.y);
    paint(c);
    c.restore();
  }

  // Rows i … j of a staircase: level until the next, then up or down.
  stairs({ t, low: values, least, most }, i, j, ink) {
    if (i >= j) return;
    const { raster } = this, thick = Math.max(1, Math.round(this.dpr)), { ROWS } = Blocks;
    let x = this.X(t[i]), y = this.Y(values[i]);
    for (i++; i < j; i++) {
      const toX = this.X(t[i]), end = i + ROWS;
      if (toX > x) { raster.level(y, x, toX, ink, thick); x = toX; }
      if (i % ROWS === 0 && end <= j && this.X(t[end - 1]) === x) {
        raster.bar(x, this.Y(most[i / ROWS]), this.Y(least[i / ROWS]), ink, thick);
        i = end - 1;
      }
      const toY = this.Y(values[i]);
      if (toY !== y) { raster.bar(x, y, toY, ink, thick); y = toY; }
    }
  }
}

// A strip above the graph: what limits the transfer.
function strip(panel) {
  const { context: c, view, dpr } = panel, height = Math.round(STRIP * dpr);
  c.save();
  c.beginPath(); c.rect(panel.x, 0, panel.w, height); c.clip();
  for (const [from, to, limit] of view.limits) {
    const x = panel.x + panel.X(from);
    c.fillStyle = look.limits[limit].colour;
    c.fillRect(x, 0, Math.max(1, panel.x + panel.X(to) - x), height);
  }
  c.restore();
}

// ---- The graph ----

function sequence(panel) {
  const { view, raster } = panel, { plain, others, acks } = view;
  const within = ({ t_s: t }) => [position(t, view.left), position(t, view.right)];
  const [d0, d1] = within(plain), [o0, o1] = within(others), [a0, a1] = within(acks);
  // All captures have the same axes.
  const extents = views.flatMap(({ plain, others, acks }) => [plain, others, acks].map((one) => one.blocks.extent(...within(one))));
  const low = Math.min(...extents.map(([one]) => one)), high = Math.max(...extents.map(([, one]) => one));
  const margin = (high - low) * 0.05;
  panel.range(...(box ?? (low <= high ? [Math.max(0, low - margin), high + margin] : [0, 1])));
  panel.axes("sequence number", "B");

  const few = d1 - d0 <= FEW, line = Math.max(1, Math.round(panel.dpr)), thick = few ? 2 * line : line;
  for (const name of ["sack", "dsack"]) {
    const ink = Raster.ink(look[name]), blocks = view[name].blocks;
    const bar = (x, top, foot) => raster.bar(x, top, foot, ink, thick);
    if (view.layers[name]) blocks.each(panel, ...within(view[name]), bar);
  }
  const [s0, s1] = [Math.max(0, a0 - 1), Math.min(acks.length, a1 + 1)];
  if (view.layers.window) panel.stairs(acks.edges, s0, s1, Raster.ink(look.window));
  if (view.layers.ack) panel.stairs(acks.blocks, s0, s1, Raster.ink(look.ack));
  const ink = Raster.ink(dataColour());
  if (view.layers.data) plain.blocks.each(panel, d0, d1, (x, top, foot) => raster.bar(x, top, foot, ink, thick));
  const marks = marksOf(panel, o0, o1);
  for (const [kind, x, , top, foot] of marks) raster.bar(x, top, foot, Raster.ink(look.kinds[kind].colour), 2 * line);
  raster.onto(panel.context, panel.x, panel.y);
  panel.clipped((c) => {
    const size = (marks.length > 150 ? 2.6 : 4) * panel.dpr;
    const tall = panel.Y(0) - panel.Y(plain.size[d0]) >= 6 * panel.dpr;
    if (few && tall && view.layers.data) {
      const end = (values, i) => [panel.X(plain.t_s[i]) + line, panel.Y(values[i])];
      const ends = (values) => Array.from({ length: d1 - d0 }, (_, at) => end(values, d0 + at));
      marked(c, "^", dataColour(), ends(plain.blocks.high), 2.5 * panel.dpr);
      marked(c, "v", dataColour(), ends(plain.blocks.low), 2.5 * panel.dpr);
    }
    // Retransmissions over what came in another order.
    for (const kind of Object.keys(look.kinds).reverse()) {
      const places = marks.filter(([one]) => one === Number(kind)).map(([, x, y]) => [x, y]);
      marked(c, look.kinds[kind].shape, look.kinds[kind].colour, places, size);
    }
  });
}

// What is no data in order, one of a kind in a cell of a few pixels: [kind, x, y, top, foot].
function marksOf(panel, i, j) {
  const { others, layers } = panel.view, cell = MARK_CELL * panel.dpr, seen = new Set(), found = [];
  for (; i < j; i++) {
    const kind = others.kind[i], x = panel.X(others.t_s[i]);
    const top = panel.Y(others.seq[i] + others.size[i]), foot = panel.Y(others.seq[i]), y = (top + foot) / 2;
    const key = (kind * 4096 + Math.floor(x / cell)) * 4096 + Math.floor(y / cell);
    if (!layers[kind] || foot < 0 || top > panel.h || seen.has(key)) continue;
    seen.add(key);
    found.push([kind, x, y, top, foot]);
  }
  return found;
}
