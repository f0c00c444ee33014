"use strict";

// What can be done on the page: zooming, moving, choosing layers, asking what a segment is.

const SMALLEST = 1e-6;      // seconds that may fill a graph
const TABLES = ["data", "acks", "sacks"];
const views = [];
const time = sawtooth.charts.get("over-time").panels[0].group;   // all graphs show the same stretch of time
let box = null;             // lowest and highest sequence number, where they were chosen

class View {
  constructor(packed, element) {
    // A little more than the last segment's time, which is to be seen.
    Object.assign(this, { packed, name: packed.name, end: packed.end + SMALLEST, limits: packed.limits });
    this.graphs = element.querySelector(".graphs");
    this.layers = { data: true, ack: true, window: true, sack: true, dsack: true };
    for (const kind of Object.keys(packed.counts.kinds)) this.layers[kind] = true;
    this.fill(Object.fromEntries(TABLES.map((name) => [name, listed(packed.first[name])])));
    this.counts = new Map(Object.entries(packed.counts.kinds).map(([kind, count]) => [Number(kind), count]));
    this.build();
  }

  // All of it, which takes a while to unpack.
  async read() {
    const tables = await Promise.all(TABLES.map((name) => table(this.packed[name])));
    this.fill(Object.fromEntries(TABLES.map((name, at) => [name, tables[at]])));
    delete this.packed;
    this.whole = true;
  }

  fill(tables) {
    Object.assign(this, tables);
    this.plain = chosen(this.data, (i) => this.data.kind[i] === 0);
    this.others = chosen(this.data, (i) => this.data.kind[i] !== 0);
    for (const sent of [this.plain, this.others]) {
      sent.blocks = new Blocks(sent.t_s, sent.seq, sent.seq.map((seq, i) => seq + sent.size[i]));
    }
    const edge = this.acks.ack.map((ack, i) => ack + this.acks.window[i]);
    this.acks.blocks = new Blocks(this.acks.t_s, this.acks.ack, this.acks.ack);
    this.acks.edges = new Blocks(this.acks.t_s, edge, edge);
    for (const [name, flag] of [["sack", 0], ["dsack", 1]]) {
      this[name] = chosen(this.sacks, (i) => this.sacks.dsack[i] === flag);
      this[name].blocks = new Blocks(this[name].t_s, this[name].start, this[name].end);
    }
  }

  build() {
    this.status = document.createElement("p");
    this.status.className = "status";
    this.status.setAttribute("role", "status");
    this.graphs.append(this.status, this.legend());
    this.panel = new Panel(this, "Time and sequence numbers", 470, sequence);
    const limits = [...new Set(this.limits.map(([, , limit]) => limit))].sort();
    if (limits.length) {
      const line = document.createElement("p");
      line.className = "facts";
      line.append("The strip above the graph: limited by");
      for (const one of limits) {
        const key = document.createElement("span");
        key.className = "key";
        key.style.background = look.limits[one].colour;
        line.append(key, look.limits[one].name);
      }
      this.graphs.append(line);
    }
  }

  legend() {
    const { counts } = this.packed, kinds = [...this.counts.keys()].sort((a, b) => a - b);
    const set = document.createElement("fieldset");
    set.className = "layers";
    set.innerHTML = "<legend>Show</legend>";
    const counted = (name, count) => `${name} (${count.toLocaleString("en")})`;
    for (const [layer, name, colour, shape] of [
      ["data", counted("data", counts.plain), "var(--data)", "s"],
      ...kinds.map((kind) => {
        const { name, colour, shape } = look.kinds[kind];
        return [kind, counted(name, this.counts.get(kind)), colour, shape];
      }),
      ["ack", "acknowledged", look.ack, "-"],
      ["window", "receive window ends", look.window, "-"],
      ...(counts.sack ? [["sack", "SACK", look.sack, "s"]] : []),
      ...(counts.dsack ? [["dsack", counted("duplicate SACK", counts.dsack), look.dsack, "s"]] : []),
    ]) {
      const label = document.createElement("label");
      const width = "XP-".includes(shape) ? 2.5 : 0;
      label.innerHTML = `<input type="checkbox" checked>
        <svg width="13" height="13" viewBox="-6 -6 12 12" aria-hidden="true">
        <path d="${OUTLINES[shape]}" style="fill:${colour};stroke:${colour}" stroke-width="${width}"/></svg> `;
      label.append(name);
      label.firstChild.onchange = (event) => { this.layers[layer] = event.target.checked; this.redraw(); };
      set.append(label);
    }
    return set;
  }

  // As a member of the group.
  show(range) {
    const [left, right] = range ?? [0, ends()];
    this.left = Math.max(0, left);
    this.right = this.left + Math.max(SMALLEST, right - left);
    this.redraw();
  }

  point() {}

  redraw() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    const before = performance.now();
    this.panel.draw();
    this.drawn = performance.now() - before;
    if (this.whole) this.tell();
  }

  // The picture in words.
  tell() {
    const rows = ({ t_s: t }) => [position(t, this.left), position(t, this.right)];
    const [first, end] = rows(this.others), [a, b] = [rows(this.acks)[0], rows(this.acks)[1] - 1];
    const counts = {};
    for (const kind of this.others.kind.subarray(first, end)) counts[kind] = (counts[kind] ?? 0) + 1;
    const told = ([kind, count]) => `${look.kinds[kind].name} ${count.toLocaleString("en")}`;
    const others = Object.entries(counts).map(told);
    const acked = b > a ? this.acks.ack[b] - this.acks.ack[a] : 0;
    const rate = `${quantity(acked, "B")} acknowledged, ${quantity(acked * 8 / (this.right - this.left), "bit/s")}`;
    const part = `${Number(this.left.toFixed(6))} to ${Number(this.right.toFixed(6))} s`;
    const segments = (rows(this.data)[1] - rows(this.data)[0]).toLocaleString("en");
    this.status.textContent = [`${part}: ${segments} segments`, rate, ...others].join(", ");
  }
}

// ---- What the reader asks for, of all graphs ----

function ends() { return Math.max(...views.map((view) => view.end)); }

function to(left, right, numbers = null) {
  box = numbers;
  const width = Math.max(SMALLEST, right - left), from = Math.max(0, left);
  time.show(from === 0 && from + width >= ends() && !numbers ? null : [from, from + width]);
}

function everything() { box = null; time.show(null); }

function zoom(factor, about = (views[0].left + views[0].right) / 2) {
  const { left, right } = views[0];
  to(about - (about - left) * factor, Math.min(about + (right - about) * factor, Math.max(ends(), right)), box);
}

function move(share) {
  const { left, right } = views[0], by = Math.max(-left, (right - left) * share);
  to(left + by, right + by, box);
}

function buttons(bar) {
  for (const [text, label, act] of [
    ["Everything", "Show everything", everything],
    ["First 750 ms", "Show the first 750 ms", () => to(0, 0.75)],
    ["+", "Zoom in", () => zoom(0.5)],
    ["−", "Zoom out", () => zoom(2)],
    ["←", "Earlier", () => move(-0.4)],
    ["→", "Later", () => move(0.4)],
  ]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, onclick: act });
    button.setAttribute("aria-label", label);
    bar.append(button);
  }
}

const OUTLINES = {
  "^": "M0 -5 5 5 -5 5z", "v": "M0 5 5 -5 -5 -5z", "s": "M-4 -4H4V4H-4z", "D": "M0 -5 5 0 0 5 -5 0z",
  "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "X": "M-4 -4 4 4M-4 4 4 -4", "P": "M-5 0H5M0 -5V5", "-": "M-6 0H6",
};

// What lies under the pointer: a segment of the time-sequence graph with its number in the file.
function told(panel, x, y) {
  const { view } = panel, { data } = view, t = panel.time(x), reach = panel.time(x + NEAR) - t;
  const [i, j] = [position(data.t_s, t - reach), position(data.t_s, t + reach)];
  let best = -1, nearest = NEAR;
  for (let k = i; k < j; k++) {
    const [top, foot] = [data.seq[k] + data.size[k], data.seq[k]].map((one) => (panel.Y(one) + panel.y) / panel.dpr);
    const far = Math.hypot((panel.X(data.t_s[k]) + panel.x) / panel.dpr - x, Math.max(0, top - y, y - foot));
    // Of two that are as near, what was sent again is wanted.
    if (far - (data.kind[k] ? 2 : 0) < nearest) [best, nearest] = [k, far - (data.kind[k] ? 2 : 0)];
  }
  if (best < 0) return "";
  const kind = look.kinds[data.kind[best]]?.name ?? "data in order";
  return `${kind}, packet ${data.frame[best].toLocaleString("en")}\n${data.t_s[best].toFixed(6)} s\n` +
    `bytes ${data.seq[best].toLocaleString("en")} to ${(data.seq[best] + data.size[best]).toLocaleString("en")}`;
}

function listen(panel) {
  const { canvas, box, view } = panel;
  const tip = document.createElement("div"), drag = document.createElement("div");
  Object.assign(tip, { className: "tip", hidden: true });
  Object.assign(drag, { className: "drag", hidden: true });
  box.append(tip, drag);
  let start = null;
  const place = (event) => {
    const area = canvas.getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top];
  };
  canvas.onpointerdown = (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    start = { at: place(event), left: view.left, right: view.right, moves: event.shiftKey };
  };
  canvas.onpointermove = (event) => {
    const [x, y] = place(event);
    if (!start) {
      tip.textContent = told(panel, x, y);
      tip.hidden = !tip.textContent;
      const side = x > canvas.clientWidth / 2 ? `right:${canvas.clientWidth - x + 8}px` : `left:${x + 14}px`;
      tip.style.cssText = `top:${y + canvas.offsetTop + 14}px;${side}`;
      return;
    }
    tip.hidden = true;
    if (start.moves) {
      const by = Math.max(-start.left, panel.time(start.at[0]) - panel.time(x));
      to(start.left + by, start.right + by, box);
      return;
    }
    const [fromX, fromY] = start.at, whole = !boxed(fromY, y);
    drag.hidden = false;
    drag.style.cssText = `left:${Math.min(x, fromX)}px;width:${Math.abs(x - fromX)}px;` +
      `top:${canvas.offsetTop + (whole ? MARGIN.top : Math.min(y, fromY))}px;` +
      `height:${whole ? panel.height - MARGIN.top - MARGIN.bottom : Math.abs(y - fromY)}px`;
  };
  canvas.onpointerup = (event) => {
    const [x, y] = place(event), from = start;
    start = null;
    drag.hidden = true;
    if (!from || from.moves || Math.abs(x - from.at[0]) < 4) return;
    const times = [panel.time(from.at[0]), panel.time(x)].sort((a, b) => a - b);
    const numbers = [panel.value(from.at[1]), panel.value(y)].sort((a, b) => a - b);
    to(...times, boxed(from.at[1], y) ? numbers : null);
  };
  canvas.onpointercancel = canvas.onlostpointercapture = () => { start = null; drag.hidden = true; };
  canvas.onpointerleave = () => { tip.hidden = true; };
  canvas.ondblclick = everything;
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(1.0015 ** event.deltaY, panel.time(place(event)[0]));
  }, { passive: false });
  canvas.onkeydown = (event) => {
    const act = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "0": everything, Escape: everything,
      Home: everything, ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  };
}

// A drag over some height of the time-sequence graph chooses sequence numbers too.
function boxed(from, to) { return Math.abs(to - from) > 24; }

// What lies in the page itself is drawn at once, every segment as soon as it is unpacked.
async function start() {
  const all = () => views.forEach((view) => view.redraw());
  document.querySelectorAll(".graphed").forEach((element, at) => views.push(new View(content.views[at], element)));
  for (const view of views) {
    [view.left, view.right] = [0, ends()];
    time.join(view);
  }
  buttons(document.getElementById("bar"));
  if (content.zoom[0] > 0 || content.zoom[1] !== null) to(content.zoom[0], content.zoom[1] ?? ends());
  views.forEach((view) => view.draw());
  addEventListener("resize", all);
  dark.addEventListener("change", all);
  await Promise.all(views.map((view) => view.read()));
  all();
}

start().catch((error) => {
  for (const place of document.querySelectorAll(".graphs")) place.append(`The graphs could not be drawn: ${error}`);
});
