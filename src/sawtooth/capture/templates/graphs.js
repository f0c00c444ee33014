"use strict";

// The graphs of one page. Bars and staircases are set into the pixels directly: they have no slopes, a million of them
// take milliseconds, and what lies in the same pixels hides nothing that a finer picture would show.

const content = JSON.parse(document.getElementById("content").textContent);
const look = content.look;
const MARGIN = { left: 66, right: 10, top: 8, bottom: 24 };
const DOTS = 40000;         // samples of a round-trip time that are drawn at most; the extremes always are
const BINS = 240;           // points of a curve at most
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
    this.box.className = "panel";
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

  // Behind everything: what limits the transfer. Before everything: the axes.
  axes(label, unit, shaded) {
    const { context: c, dpr, view } = this;
    if (shaded) shade(this, 0.13);
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

  curve(ts, values, colour) {
    this.clipped((c) => {
      c.beginPath();
      for (let i = 0, down = false; i < ts.length; i++) {
        if (!(values[i] >= 0)) { down = false; continue; }
        c[down ? "lineTo" : "moveTo"](this.X(ts[i]), this.Y(values[i]));
        down = true;
      }
      c.strokeStyle = colour;
      c.lineWidth = 1.5 * this.dpr;
      c.stroke();
    });
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

function shade(panel, alpha) {
  const { t_s: t, limit, length } = panel.view.series, step = panel.view.step;
  panel.clipped((c) => {
    c.globalAlpha = alpha;
    for (let i = position(t, panel.view.left); i < length && t[i] - step <= panel.view.right; i++) {
      const first = i, kind = look.limits[limit[i]];
      while (i + 1 < length && limit[i + 1] === limit[first]) i++;
      const x = panel.X(t[first] - step);
      if (kind) { c.fillStyle = kind.colour; c.fillRect(x, 0, Math.max(1, panel.X(t[i]) - x), panel.h); }
    }
  });
}

// ---- The graphs ----

function sequence(panel) {
  const { view, raster } = panel, { plain, others, acks } = view;
  const within = ({ t_s: t }) => [position(t, view.left), position(t, view.right)];
  const [d0, d1] = within(plain), [o0, o1] = within(others), [a0, a1] = within(acks);
  const extents = [plain.blocks.extent(d0, d1), others.blocks.extent(o0, o1), acks.blocks.extent(a0, a1)];
  const low = Math.min(...extents.map(([one]) => one)), high = Math.max(...extents.map(([, one]) => one));
  const margin = (high - low) * 0.05;
  panel.range(...(view.box ?? (low <= high ? [Math.max(0, low - margin), high + margin] : [0, 1])));
  panel.axes("sequence number", "B", false);

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

// Rows of the series in view and one more at each end, put together to bins of at least so many seconds: [from, to].
function grouped(view, atLeast) {
  const { t_s: t, length } = view.series;
  const size = Math.max(1, Math.round(Math.max(atLeast, (view.right - view.left) / BINS) / view.step)), bins = [];
  for (let i = Math.max(0, Math.floor(position(t, view.left) / size) - 1) * size; i < length; i += size) {
    bins.push([i, Math.min(length, i + size)]);
    if (t[bins.at(-1)[1] - 1] > view.right) break;
  }
  return bins;
}

const over = (bins, values, reduce) => bins.map(([i, j]) => reduce(values.subarray(i, j).filter((one) => one >= 0)));
const mean = (values) => (values.length ? values.reduce((sum, one) => sum + one, 0) / values.length : NaN);
const most = (values) => (values.length ? values.reduce((a, b) => Math.max(a, b)) : NaN);
const least = (values) => (values.length ? values.reduce((a, b) => Math.min(a, b)) : NaN);
const highest = (values) => values.reduce((a, b) => (b > a ? b : a), 0);

function goodput(panel) {
  const { view } = panel, { series } = view, span = view.right - view.left;
  const bins = grouped(view, Math.max(look.roundTrips * view.rtt, span / 100));
  const rate = over(bins, series.goodput_bps, mean);
  panel.range(0, highest(rate) * 1.08 || 1);
  panel.axes("goodput", "bit/s", true);
  panel.curve(bins.map(([, j]) => series.t_s[j - 1]), rate, dataColour());
}

function flight(panel) {
  const { view } = panel, { series } = view, bins = grouped(view, 0), t = bins.map(([, j]) => series.t_s[j - 1]);
  const sent = over(bins, series.in_flight_bytes, most);
  // A window that is far above the flight does not limit it, and is not worth the flight's height.
  panel.range(0, highest(sent) * 1.6 || 1);
  panel.axes("in flight", "B", true);
  panel.curve(t, over(bins, series.window_bytes, least), look.window);
  panel.curve(t, sent, dataColour());
}

function roundTrips(panel) {
  const { view, raster } = panel, { rtts, series } = view, bins = grouped(view, 0);
  const [i, j] = [position(rtts.t_s, view.left), position(rtts.t_s, view.right)], stride = Math.ceil((j - i) / DOTS);
  const some = new Float64Array(Math.ceil((j - i) / (8 * stride))).map((_, at) => rtts.rtt_s[i + at * 8 * stride]);
  some.sort();
  const lowest = over(bins, series.rtt_min_s, least);
  panel.range(0, Math.max(1.3 * (some[Math.floor(some.length * 0.995)] ?? 0), 1.1 * highest(lowest)) || 1);
  panel.axes("round-trip time", "s", true);
  const size = Math.max(1, Math.round(1.4 * panel.dpr)), ink = Raster.ink(look.rtt);
  const dot = (t, rtt) => { const y = panel.Y(rtt); raster.bar(panel.X(t), y, y + size - 1, ink, size); };
  for (let k = i; k < j; k += stride) dot(rtts.t_s[k], rtts.rtt_s[k]);
  // What stands out is seen also where not every sample is drawn.
  for (let b = Math.ceil(i / Blocks.ROWS); stride > 1 && (b + 1) * Blocks.ROWS <= j; b++) {
    dot(rtts.t_s[b * Blocks.ROWS], rtts.blocks.least[b]);
    dot(rtts.t_s[b * Blocks.ROWS], rtts.blocks.most[b]);
  }
  raster.onto(panel.context, panel.x, panel.y);
  panel.curve(bins.map(([, end]) => series.t_s[end - 1]), lowest, dataColour());
}
