// The simulator and the capture reader, compiled to WebAssembly (crates/bindings/wasm).

export type Column = Float64Array | BigInt64Array | BigUint64Array | Uint32Array | Uint8Array;
export type Table = Record<string, Column>;
export type Tables = Record<string, Table>;

/** A source of bytes, read front to back; returns 0 at the end. */
export type Reading = (most: number) => Uint8Array;

const KINDS = {
  f8: Float64Array,
  i8: BigInt64Array,
  u8: BigUint64Array,
  u4: Uint32Array,
  u1: Uint8Array,
} as const;
type Described = [table: string, columns: [column: string, kind: keyof typeof KINDS, address: number, rows: number][]][];

interface Exports {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  answer(): number;
  answer_bytes(): number;
  tell_panics(): void;
  congestion_controls(): void;
  event_names(): void;
  scenario_compile(): number;
  toml_read(): number;
  quantity_read(kind: number): number;
  quantity_print(kind: number, amount: bigint): void;
  language_registry(): void;
  simulation_open(watched: number): number;
  simulation_record(handle: number, on: number): void;
  simulation_advance(handle: number, until_ns: bigint, max_events: bigint): number;
  simulation_now_ns(handle: number): bigint;
  simulation_events(handle: number): bigint;
  simulation_delivered_packets(handle: number): bigint;
  simulation_take(handle: number): void;
  simulation_close(handle: number): void;
  capture_open(file: number, detailed: number, rows: number): number;
  capture_advance(handle: number, segments: bigint): number;
  capture_bytes(handle: number): bigint;
  capture_finish(handle: number): number;
  capture_close(handle: number): void;
  kept_path(handle: number, connection: number): number;
  kept_segments(handle: number, connection: number): number;
  limits_tables(): void;
  limits_open(): number;
  limits_add(handle: number, table: number): number;
  limits_report(handle: number, now_s: number): void;
  limits_close(handle: number): void;
}

/** Which connections of a capture to keep with every segment: one, or the longest that fit into `rows`. */
export interface Of {
  detailed?: number;
  rows?: number;
}

/** An answer of the core, or what is wrong with its input, as JSON. */
export interface CoreAnswer {
  fine: boolean;
  answer: string;
}

/** The core refused its input, or failed. */
export class CoreError extends Error {}

/** The core's request to the page: the next bytes of a file. */
class PageImports {
  readonly files = new Map<number, Reading>();
  memory: WebAssembly.Memory | undefined;

  readonly imports = {
    page: {
      read: (file: number, address: number, most: number): number => {
        try {
          const bytes = this.files.get(file)?.(most);
          if (bytes === undefined || bytes.length > most || this.memory === undefined) return -1;
          new Uint8Array(this.memory.buffer, address, bytes.length).set(bytes);
          return bytes.length;
        } catch {
          return -1;
        }
      },
    },
  };
}

export class Core {
  private readonly exports: Exports;
  private readonly files: Map<number, Reading>;

  constructor(module: WebAssembly.Module, pageImports = new PageImports(), instance = new WebAssembly.Instance(module, pageImports.imports)) {
    this.exports = instance.exports as unknown as Exports;
    this.files = pageImports.files;
    pageImports.memory = this.exports.memory;
    this.exports.tell_panics();
  }

  /** The same for a page's main thread, where some browsers compile only small modules synchronously. */
  static async of(module: WebAssembly.Module): Promise<Core> {
    const pageImports = new PageImports();
    return new Core(module, pageImports, await WebAssembly.instantiate(module, pageImports.imports));
  }

  /** Names of the simulator's congestion controls. */
  controls(): string[] {
    this.exports.congestion_controls();
    return JSON.parse(this.answer()) as string[];
  }

  /** Names of the events that a watched simulation reports, by number. */
  events(): string[] {
    this.exports.event_names();
    return JSON.parse(this.answer()) as string[];
  }

  /** Everything that a scenario can name: the records of congestion controls and of kinds of queues. */
  registry(): unknown {
    this.exports.language_registry();
    return JSON.parse(this.answer());
  }

  /** A scenario's tables, as JSON, compiled for a run; if not ok: what is wrong. */
  compile(tables: string): CoreAnswer {
    return this.ask(tables, () => this.exports.scenario_compile());
  }

  /** The tables of a TOML file, as JSON; if not ok: what is wrong. */
  toml(text: string): CoreAnswer {
    return this.ask(text, () => this.exports.toml_read());
  }

  /** A quantity's amount; if not ok: what is wrong. */
  quantity(kind: number, text: string): CoreAnswer {
    return this.ask(text, () => this.exports.quantity_read(kind));
  }

  /** A quantity's text. */
  printed(kind: number, amount: bigint): string {
    this.exports.quantity_print(kind, amount);
    return this.answer();
  }

  private ask(text: string, act: () => number): CoreAnswer {
    this.give(text);
    const fine = this.safely(act) !== 0;
    return { fine, answer: this.answer() };
  }

  /** A run of a compiled scenario. A watched run reports the events of senders and packets. */
  simulation(scenario: string, watched = false): Simulation {
    this.give(scenario);
    const handle = this.safely(() => this.exports.simulation_open(Number(watched)));
    if (handle === 0) throw new CoreError(this.answer());
    return new Simulation(this, this.exports, handle);
  }

  /** Determines what limits the flows of a run of this compiled scenario. */
  limits(scenario: string): Limits {
    this.exports.limits_tables();
    const tables = JSON.parse(this.answer()) as [string, string[]][];
    this.give(scenario);
    const handle = this.safely(() => this.exports.limits_open());
    if (handle === 0) throw new CoreError(this.answer());
    return new Limits(this, this.exports, handle, tables);
  }

  /** A capture whose bytes `reading` supplies. */
  capture(reading: Reading, { detailed = 0xffffffff, rows = 0 }: Of = {}): Capture {
    const file = this.files.size === 0 ? 1 : Math.max(...this.files.keys()) + 1;
    this.files.set(file, reading);
    const ended = () => this.files.delete(file);
    const handle = this.safely(() => this.exports.capture_open(file, detailed, rows));
    if (handle === 0) {
      ended();
      throw new CoreError(this.answer());
    }
    return new Capture(this, this.exports, handle, ended);
  }

  /** The result of `act`, or the message of the trap that ended it. */
  safely<A>(act: () => A): A {
    try {
      return act();
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) throw new CoreError(this.answer() || error.message);
      throw error;
    }
  }

  /** Copies text to the core for the next call. */
  give(text: string): void {
    this.put(new TextEncoder().encode(text));
  }

  /** Copies bytes to the core. */
  put(bytes: Uint8Array): void {
    // When memory grows, its buffer is replaced.
    const address = this.exports.input(bytes.length);
    new Uint8Array(this.exports.memory.buffer, address, bytes.length).set(bytes);
  }

  /** The core's latest answer. */
  answer(): string {
    const { memory, answer, answer_bytes } = this.exports;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, answer(), answer_bytes()));
  }

  /** Copies tables, because the core overwrites its memory at the next call. */
  tables(described: Described): Tables {
    const { buffer } = this.exports.memory;
    const column = (kind: keyof typeof KINDS, address: number, rows: number): Column =>
      rows === 0 ? new KINDS[kind](0) : new KINDS[kind](buffer, address, rows).slice();
    return Object.fromEntries(
      described.map(([table, columns]) => [
        table,
        Object.fromEntries(columns.map(([name, kind, address, rows]) => [name, column(kind, address, rows)])),
      ]),
    );
  }
}

export class Simulation {
  constructor(
    private readonly core: Core,
    private readonly exports: Exports,
    private readonly handle: number,
  ) {}

  /** Runs until `until_ns` or the end, for at most `max_events` events. Returns true at the end. */
  advance(until_ns: number, max_events: number): boolean {
    const step = () => this.exports.simulation_advance(this.handle, BigInt(until_ns), BigInt(max_events));
    return this.core.safely(step) !== 0;
  }

  /** Starts or stops recording each packet's hops. */
  record(on: boolean): void {
    this.exports.simulation_record(this.handle, Number(on));
  }

  get now_ns(): number {
    return Number(this.exports.simulation_now_ns(this.handle));
  }

  get events(): number {
    return Number(this.exports.simulation_events(this.handle));
  }

  get delivered_packets(): number {
    return Number(this.exports.simulation_delivered_packets(this.handle));
  }

  /** The rows added since the last call. */
  take(): Tables {
    this.core.safely(() => this.exports.simulation_take(this.handle));
    return this.core.tables(JSON.parse(this.core.answer()) as Described);
  }

  close(): void {
    this.exports.simulation_close(this.handle);
  }
}

/** What limits a flow, and what it got while it was active (crates/limits). */
export interface Limited {
  /** By its name in crates/limits. */
  limit: string;
  words: string;
  /** For which share of its time each limit holds it back. */
  shares: [limit: string, share: number][];
  /** The others at a shared rate, the largest first. */
  takers: { flow: string; goodput_bps: number; share: number }[];
  start_s: number;
  end_s: number;
  /** Measured from its start; null: its connections have not sent all their bytes, or end with the run. */
  completed_s: number | null;
  goodput_bps: number;
  /** As a share of what the rate allows. */
  share_of_rate: number;
}

/** Determines what limits the flows of one run, from rows of its tables. */
export class Limits {
  constructor(
    private readonly core: Core,
    private readonly exports: Exports,
    private readonly handle: number,
    private readonly read: readonly [table: string, columns: string[]][],
  ) {}

  add(tables: Tables): void {
    this.read.forEach(([name, columns], at) => {
      const table = tables[name];
      const rows = table?.[columns[0]!]?.length ?? 0;
      if (table === undefined || rows === 0) return;
      const flat = new Float64Array(rows * columns.length);
      columns.forEach((column, which) => flat.set(numbers(table[column]!), which * rows));
      this.core.put(new Uint8Array(flat.buffer));
      if (this.core.safely(() => this.exports.limits_add(this.handle, at)) === 0) throw new CoreError(this.core.answer());
    });
  }

  /** The answer for a run that has reached `nowS`. */
  report(nowS: number): Limited[] {
    this.core.safely(() => this.exports.limits_report(this.handle, nowS));
    return JSON.parse(this.core.answer()) as Limited[];
  }

  close(): void {
    this.exports.limits_close(this.handle);
  }
}

export class Capture {
  constructor(
    private readonly core: Core,
    private readonly exports: Exports,
    private readonly handle: number,
    private readonly ended: () => void,
  ) {}

  /** Reads up to `segments` segments. Returns true at the end. */
  advance(segments: number): boolean {
    return this.core.safely(() => this.exports.capture_advance(this.handle, BigInt(segments))) !== 0;
  }

  /** Bytes of the file read so far. */
  get bytes(): number {
    return Number(this.exports.capture_bytes(this.handle));
  }

  /**
   * The facts of docs/reference/capture.md, the tables, and the kept segments, including those of a single requested
   * connection. Ends the reading: call nothing afterward.
   */
  finish(): { facts: unknown; tables: Tables; kept: Kept } {
    const ok = this.core.safely(() => this.exports.capture_finish(this.handle)) !== 0;
    this.ended();
    if (!ok) throw new CoreError(this.core.answer());
    const { facts, tables, kept } = JSON.parse(this.core.answer()) as { facts: unknown; tables: Described; kept: number };
    return { facts, tables: this.core.tables(tables), kept: new Kept(this.core, this.exports, kept) };
  }

  close(): void {
    this.exports.capture_close(this.handle);
    this.ended();
  }
}

/** Segments of connections, valid as long as their core exists. */
export class Kept {
  constructor(
    private readonly core: Core,
    private readonly exports: Exports,
    private readonly handle: number,
  ) {}

  /** The estimated path of a connection in those facts; undefined if its segments are not kept, or were handed out. */
  path(connection: number, facts: unknown): unknown {
    this.core.give(JSON.stringify(facts));
    const ok = this.core.safely(() => this.exports.kept_path(this.handle, connection)) !== 0;
    return ok ? JSON.parse(this.core.answer()) : undefined;
  }

  /** The tables of a connection's segments. Hands them out once; undefined if they are not kept. */
  segments(connection: number): Tables | undefined {
    const ok = this.core.safely(() => this.exports.kept_segments(this.handle, connection)) !== 0;
    return ok ? this.core.tables(JSON.parse(this.core.answer()) as Described) : undefined;
  }
}

/** The numbers of a column. Unless they are floats, they are whole numbers below 2^53. */
export function numbers(column: Column): Float64Array | Uint32Array | Uint8Array {
  if (!(column instanceof BigInt64Array || column instanceof BigUint64Array)) return column;
  // Reads 32-bit halves, because each 64-bit number would allocate an object.
  const halves = new Uint32Array(column.buffer, column.byteOffset, column.length * 2);
  const high = new Int32Array(column.buffer, column.byteOffset, column.length * 2);
  const found = new Float64Array(column.length);
  for (let row = 0; row < found.length; row += 1) found[row] = halves[2 * row]! + high[2 * row + 1]! * 2 ** 32;
  return found;
}
