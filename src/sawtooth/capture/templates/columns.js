"use strict";

// Columns of numbers, as packed.py writes them, and how to find one's way in very many rows.

async function unpack({ length, planes, data }) {
  const packed = await fetch(`data:application/octet-stream;base64,${data}`);
  const stream = packed.body.pipeThrough(new DecompressionStream("deflate"));
  const plane = new Uint8Array(await new Response(stream).arrayBuffer());
  const numbers = new Float64Array(length);
  let sum = 0;
  for (let i = 0; i < length; i++) {
    let coded = 0;
    for (let p = planes - 1; p >= 0; p--) coded = coded * 256 + plane[p * length + i];
    sum += coded % 2 ? -(coded + 1) / 2 : coded / 2;
    numbers[i] = sum;
  }
  return numbers;
}

async function table(packed) {
  const columns = {};
  for (const name of Object.keys(packed)) {
    columns[name] = await unpack(packed[name]);
    if (name.endsWith("_s")) columns[name] = columns[name].map((ns) => (ns === -1 ? NaN : ns / 1e9));
  }
  columns.length = columns.t_s.length;
  return columns;
}

// The same of plain lists, which need no time: what is drawn at once.
function listed(lists) {
  const columns = Object.fromEntries(Object.entries(lists).map(([name, values]) => [name, Float64Array.from(values)]));
  columns.length = columns.t_s.length;
  return columns;
}

// The first position in sorted numbers that is not below the value.
function position(numbers, value) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// Rows in blocks with their extent: blocks that lie within one column of pixels and are hardly higher than one pixel
// are drawn as one bar, so that a frame takes time for the pixels, not for the rows.
class Blocks {
  static ROWS = 64;

  constructor(t, low, high) {
    Object.assign(this, { t, low, high });
    const count = Math.ceil(t.length / Blocks.ROWS);
    this.least = new Float64Array(count).fill(Infinity);
    this.most = new Float64Array(count).fill(-Infinity);
    for (let i = 0; i < t.length; i++) {
      const block = Math.floor(i / Blocks.ROWS);
      if (low[i] < this.least[block]) this.least[block] = low[i];
      if (high[i] > this.most[block]) this.most[block] = high[i];
    }
  }

  extent(i, j) {
    let [low, high] = [Infinity, -Infinity];
    for (; i < j; i++) {
      const block = i / Blocks.ROWS, end = i + Blocks.ROWS;
      if (Number.isInteger(block) && end <= j) {
        [low, high, i] = [Math.min(low, this.least[block]), Math.max(high, this.most[block]), end - 1];
      } else [low, high] = [Math.min(low, this.low[i]), Math.max(high, this.high[i])];
    }
    return [low, high];
  }

  // Calls bar(x, top, foot) in pixels of the panel for what is to be seen of rows i … j.
  each(panel, i, j, bar) {
    for (; i < j; i++) {
      const x = panel.X(this.t[i]), end = i + Blocks.ROWS;
      if (i % Blocks.ROWS === 0 && end <= j && panel.X(this.t[end - 1]) === x) {
        const block = i / Blocks.ROWS, top = panel.Y(this.most[block]), foot = panel.Y(this.least[block]);
        if (foot - top <= 2 || foot < 0 || top >= panel.h) {
          bar(x, top, foot);
          i = end - 1;
          continue;
        }
      }
      bar(x, panel.Y(this.high[i]), panel.Y(this.low[i]));
    }
  }
}

// Those rows of a table, as a table of their own.
function chosen(columns, wanted) {
  const rows = Uint32Array.from({ length: columns.length }, (_, i) => i).filter(wanted);
  const found = { length: rows.length };
  for (const name of Object.keys(columns)) {
    if (name !== "length") found[name] = Float64Array.from(rows, (i) => columns[name][i]);
  }
  return found;
}
