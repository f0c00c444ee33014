"use strict";

// What can be done on the page: zooming, moving, choosing layers, asking what a segment is.

const SMALLEST = 1e-6;      // seconds that may fill a graph
const views = [];

class View {
  constructor(packed, element) {
    // A little more than the last segment's time, which is to be seen.
    Object.assign(this, { packed, name: packed.name, end: packed.end + SMALLEST, rtt: packed.rtt });
    this.graphs = element.querySelector(".graphs");
    this.layers = { data: true, ack: true, window: true, sack: true, dsack: true };
    this.box = null;        // lowest and highest sequence number, where they were chosen
  }

  async read() {
    const names = ["data", "acks", "sacks", "rtts", "series"];
    const tables = await Promise.all(names.map((name) => table(this.packed[name])));
    names.forEach((name, at) => { this[name] = tables[at]; });
    delete this.packed;
    this.plain = chosen(this.data, (i) => this.data.kind[i] === 0);
    this.others = chosen(this.data, (i) => this.data.kind[i] !== 0);
    for (const sent of [this.plain, this.others]) {
      sent.blocks = new Blocks(sent.t_s, sent.seq, sent.seq.map((seq, i) => seq + sent.size[i]));
    }
    const edge = this.acks.ack.map((ack, i) => ack + this.acks.window[i]);
    this.acks.blocks = new Blocks(this.acks.t_s, this.acks.ack, this.acks.ack);
    this.acks.edges = new Blocks(this.acks.t_s, edge, edge);
    this.rtts.blocks = new Blocks(this.rtts.t_s, this.rtts.rtt_s, this.rtts.rtt_s);
    for (const [name, flag] of [["sack", 0], ["dsack", 1]]) {
      this[name] = chosen(this.sacks, (i) => this.sacks.dsack[i] === flag);
      this[name].blocks = new Blocks(this[name].t_s, this[name].start, this[name].end);
    }
    const gaps = this.series.t_s.slice(1).map((t, i) => t - this.series.t_s[i]).sort();
    this.step = gaps[gaps.length >> 1] || this.end;
    this.counts = new Map();
    for (const kind of this.others.kind) this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    for (const kind of this.counts.keys()) this.layers[kind] = true;
    this.build();
    this.show(content.zoom[0], content.zoom[1] ?? this.end);
  }

  build() {
    const bar = document.createElement("div");
    bar.className = "bar";
    for (const [text, label, act] of [
      ["Everything", "Show everything", () => this.whole()],
      ["First 750 ms", "Show the first 750 ms", () => this.to(0, 0.75)],
      ["+", "Zoom in", () => this.zoom(0.5)],
      ["−", "Zoom out", () => this.zoom(2)],
      ["←", "Earlier", () => this.move(-0.4)],
      ["→", "Later", () => this.move(0.4)],
    ]) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, onclick: act });
      button.setAttribute("aria-label", `${label}: ${this.name}`);
      bar.append(button);
    }
    this.status = document.createElement("p");
    this.status.className = "status";
    this.status.setAttribute("role", "status");
    this.graphs.append(bar, this.status, this.legend());
    this.panels = [
      new Panel(this, "Time and sequence numbers", 470, sequence),
      new Panel(this, "Goodput", 150, goodput),
      new Panel(this, "Bytes in flight, and the receive window", 150, flight),
      new Panel(this, "Round-trip time: samples, smallest of an interval", 150, roundTrips),
    ];
    const limits = [...new Set(this.series.limit)].filter((one) => look.limits[one]).sort();
    if (limits.length) {
      const line = document.createElement("p");
      line.className = "hint";
      line.append("Shaded: limited by");
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
    const kinds = [...this.counts.keys()].sort((a, b) => a - b);
    const set = document.createElement("fieldset");
    set.className = "layers";
    set.innerHTML = "<legend>Show</legend>";
    const counted = (name, count) => `${name} (${count.toLocaleString("en")})`;
    for (const [layer, name, colour, shape] of [
      ["data", counted("data", this.plain.length), "var(--data)", "s"],
      ...kinds.map((kind) => {
        const { name, colour, shape } = look.kinds[kind];
        return [kind, counted(name, this.counts.get(kind)), colour, shape];
      }),
      ["ack", "acknowledged", look.ack, "-"],
      ["window", "receive window ends", look.window, "-"],
      ...(this.sack.length ? [["sack", "SACK", look.sack, "s"]] : []),
      ...(this.dsack.length ? [["dsack", counted("duplicate SACK", this.dsack.length), look.dsack, "s"]] : []),
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

  show(left, right) {
    const width = Math.max(SMALLEST, Math.min(right - left, Math.max(this.end, right - Math.max(left, 0))));
    this.left = Math.max(0, left);
    this.right = this.left + width;
    this.redraw();
  }

  // As asked for by the reader: all views follow where they go together.
  to(left, right, box = null) {
    for (const view of document.getElementById("together")?.checked ? views : [this]) {
      view.box = view === this ? box : null;
      view.show(left, right);
    }
  }

  whole() {
    this.to(0, document.getElementById("together")?.checked ? Math.max(...views.map((view) => view.end)) : this.end);
  }

  zoom(factor, about = (this.left + this.right) / 2) {
    const right = Math.min(about + (this.right - about) * factor, Math.max(this.end, this.right));
    this.to(about - (about - this.left) * factor, right);
  }

  move(share) {
    const by = Math.max(-this.left, (this.right - this.left) * share);
    this.to(this.left + by, this.right + by);
  }

  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const before = performance.now();
      for (const panel of this.panels) panel.draw();
      this.drawn = performance.now() - before;
      this.tell();
    });
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

const OUTLINES = {
  "^": "M0 -5 5 5 -5 5z", "v": "M0 5 5 -5 -5 -5z", "s": "M-4 -4H4V4H-4z", "D": "M0 -5 5 0 0 5 -5 0z",
  "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "X": "M-4 -4 4 4M-4 4 4 -4", "P": "M-5 0H5M0 -5V5", "-": "M-6 0H6",
};

// What lies under the pointer: a segment of the time-sequence graph with its number in the file.
function told(panel, x, y) {
  const { view } = panel, { data } = view, t = panel.time(x), reach = panel.time(x + NEAR) - t;
  const unit = new Map([[goodput, "bit/s"], [flight, "B"], [roundTrips, "s"]]).get(panel.drawer);
  if (unit) return `${t.toPrecision(6)} s: ${quantity(Math.max(0, panel.value(y)), unit)}`;
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
      view.to(start.left + by, start.right + by);
      return;
    }
    const [fromX, fromY] = start.at, whole = !boxed(panel, fromY, y);
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
    view.to(...times, boxed(panel, from.at[1], y) ? numbers : null);
  };
  canvas.onpointercancel = canvas.onlostpointercapture = () => { start = null; drag.hidden = true; };
  canvas.onpointerleave = () => { tip.hidden = true; };
  canvas.ondblclick = () => view.whole();
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas) return;
    event.preventDefault();
    view.zoom(1.0015 ** event.deltaY, panel.time(place(event)[0]));
  }, { passive: false });
  canvas.onkeydown = (event) => {
    const act = {
      "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), "0": () => view.whole(),
      Home: () => view.whole(), ArrowLeft: () => view.move(-0.2), ArrowRight: () => view.move(0.2),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  };
}

// A drag over some height of the time-sequence graph chooses sequence numbers too.
function boxed(panel, from, to) { return panel.drawer === sequence && Math.abs(to - from) > 24; }

async function start() {
  const all = () => views.forEach((view) => view.redraw());
  document.querySelectorAll(".view").forEach((element, at) => views.push(new View(content.views[at], element)));
  await Promise.all(views.map((view) => view.read()));
  addEventListener("resize", all);
  dark.addEventListener("change", all);
}

start().catch((error) => {
  for (const place of document.querySelectorAll(".graphs")) place.append(`The graphs could not be drawn: ${error}`);
});
