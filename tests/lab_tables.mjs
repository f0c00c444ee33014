// Runs compiled scenarios in WebAssembly, in node or in a page, and returns digests of the results.

/**
 * For each scenario: events, delivered packets, and by table and column the type, the number of rows and a SHA-256 of
 * the bytes.
 */
export async function run(Core, bytes, scenarios, watched = false) {
  const core = new Core(await WebAssembly.compile(bytes));
  const told = [];
  for (const scenario of scenarios) {
    const simulation = core.simulation(JSON.stringify(scenario), watched);
    const columns = new Map();
    let finished = false;
    // In steps that differ from any interval: pauses change nothing.
    for (let until_ns = 0; !finished; ) {
      until_ns += 333_333_333;
      finished = simulation.advance(until_ns, 7_777);
      until_ns = Math.min(until_ns, simulation.now_ns + 333_333_333);
      for (const [table, taken] of Object.entries(simulation.take())) {
        for (const [column, values] of Object.entries(taken)) {
          const name = `${table}.${column}`;
          if (!columns.has(name)) columns.set(name, { kind: values.constructor.name, rows: 0, parts: [] });
          const found = columns.get(name);
          found.rows += values.length;
          found.parts.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
        }
      }
    }
    const digests = {};
    for (const [name, { kind, rows, parts }] of columns) digests[name] = [kind, rows, await digest(parts)];
    told.push({ events: simulation.events, delivered: simulation.delivered_packets, digests });
    simulation.close();
  }
  return told;
}

async function digest(parts) {
  const whole = new Uint8Array(await new Blob(parts).arrayBuffer());
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A capture from the given bytes, in pieces of a given size: its facts, and digests of its tables. */
export async function read(Core, bytes, capture, detailed) {
  const core = new Core(await WebAssembly.compile(bytes));
  let place = 0;
  let largest = 0;
  const reading = (most) => {
    largest = Math.max(largest, most);
    const part = capture.subarray(place, place + Math.min(most, 10_007));
    place += part.length;
    return part;
  };
  const analysis = core.capture(reading, { detailed });
  let steps = 0;
  while (!analysis.advance(1_000)) steps += 1;
  const seen = analysis.bytes;
  const { facts, tables, kept } = analysis.finish();
  const shown = kept.path(detailed, facts.connections[detailed]);
  return { facts, digests: await digested({ ...tables, ...kept.segments(detailed) }), steps, seen, largest, shown };
}

/** For each connection of a capture, the estimate from its kept segments, twice: null if none are kept. */
export async function kept(Core, bytes, capture, rows) {
  const core = new Core(await WebAssembly.compile(bytes));
  let place = 0;
  const reading = (most) => capture.subarray(place, (place += most));
  const analysis = core.capture(reading, { rows });
  while (!analysis.advance(1_000));
  const { facts, kept } = analysis.finish();
  const told = [];
  for (const { index } of facts.connections) {
    const [first, second] = [kept.segments(index), kept.segments(index)];
    told.push([first && (await digested(first)), second ?? null]);
  }
  return told;
}

async function digested(tables) {
  const digests = {};
  for (const [table, columns] of Object.entries(tables)) {
    for (const [column, values] of Object.entries(columns)) {
      digests[`${table}.${column}`] = [values.constructor.name, values.length, await digest([values])];
    }
  }
  return digests;
}
