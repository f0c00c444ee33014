// The worker that reads captures: all connections, and every segment of the chosen one. If memory did not suffice for
// that one, reads the file again.

import { Core, CoreError, type Kept, type Of, type Reading, type Table, type Tables } from "../core";
import { turn } from "../turn";
import type { Shown } from "./estimate";
import { busier, data, type Connection, type Facts } from "./facts";
import type { Answer, Curves, Question } from "./protocol";
import type { Segments } from "../../capture/sequence";
import { segmentsOf } from "./segments";

/** The size of a slice of the file in memory. */
const SLICE = 4 << 20;
/** Segments between two readings of the clock, and the time between reports. */
const STEP = 20_000;
const REPORT_MS = 60;
/** The most connections that a page lists. */
const LISTED = 200;
/** Connections with at most this many packets are kept whole. */
const MOST_PACKETS = 3_000_000;
/**
 * Rows kept during the first pass, for the longest connections: 56 bytes each in the core, 40 in the page once chosen.
 */
const MOST_ROWS = 2 * MOST_PACKETS;

/** Exists in workers only; TypeScript's library for pages lacks it. */
declare class FileReaderSync {
  readAsArrayBuffer(of: Blob): ArrayBuffer;
}

const answer = (message: Answer, moved: Transferable[] = []): void => postMessage(message, { transfer: moved });

let module: WebAssembly.Module;
let file: File;
let facts: Facts;
let series: Table;
let kept: Kept;
let latest = 0;

self.onmessage = ({ data }: MessageEvent<Question>) => {
  latest += 1;
  if (data.kind === "stop") return;
  const mine = latest;
  const done = data.kind === "open" ? open(data, () => latest === mine) : choose(data.connection, data.known, () => latest === mine);
  done.catch(failed);
};

async function open(chosen: Extract<Question, { kind: "open" }>, isLatest: () => boolean): Promise<void> {
  ({ file, module } = chosen);
  const before = performance.now();
  const result = await pass(isLatest, { rows: MOST_ROWS });
  if (result === undefined) return;
  facts = result.facts;
  kept = result.kept;
  series = result.tables["series"]!;
  const { connections, ...rest } = facts;
  const bytes = (one: Connection): number => data(one)?.payload_bytes ?? 0;
  const largest = [...connections].sort((one, other) => bytes(other) - bytes(one)).slice(0, LISTED);
  answer({ kind: "listed", listed: { facts: rest, connections: largest, count: connections.length }, tookMs: performance.now() - before });
}

async function choose(index: number, isKnown: boolean, isLatest: () => boolean): Promise<void> {
  const connection = facts.connections[index]!;
  const direction = busier(connection);
  if (direction === undefined) return;
  answer({ kind: "curves", connection, curves: curves(connection, direction) });
  if (isKnown) return;
  const packets = connection.directions.reduce((sum, one) => sum + one.packets, 0);
  if (packets > MOST_PACKETS) return answer({ kind: "many", connection: index, packets, most: MOST_PACKETS });
  let found = handedOut(kept, connection, direction);
  if (found === undefined) {
    const result = await pass(isLatest, { detailed: index });
    if (result === undefined) return;
    found = handedOut(result.kept, connection, direction)!;
  }
  const columns = Object.values(found.segments).flatMap((part: Record<string, Float64Array>) => Object.values(part));
  answer({ kind: "segments", connection: index, ...found }, columns.map((column) => column.buffer as ArrayBuffer));
}

/** What is kept of a connection; undefined if nothing is, or if it was handed out. */
function handedOut(from: Kept, connection: Connection, direction: 0 | 1): { segments: Segments; shown: Shown } | undefined {
  const shown = from.path(connection.index, connection);
  const tables = from.segments(connection.index);
  if (shown === undefined || tables === undefined) return undefined;
  return { segments: segmentsOf(tables, direction, connection.start_s), shown: shown as Shown };
}

/** Reads the file to its end; undefined if the page no longer wants it. Frees the core's memory and what it kept. */
async function pass(isLatest: () => boolean, of: Of): Promise<{ facts: Facts; tables: Tables; kept: Kept } | undefined> {
  const capture = new Core(module).capture(slices(file), of);
  let reportedMs = performance.now();
  while (!capture.advance(STEP)) {
    if (performance.now() - reportedMs < REPORT_MS) continue;
    reportedMs = performance.now();
    answer({ kind: "progress", bytes: capture.bytes, of: file.size });
    await turn();
    if (!isLatest()) {
      capture.close();
      return undefined;
    }
  }
  return capture.finish() as { facts: Facts; tables: Tables; kept: Kept };
}

/** Reads the file from front to back, a slice at a time. */
function slices(of: File): Reading {
  const reader = new FileReaderSync();
  let [held, at, next] = [new Uint8Array(0), 0, 0];
  return (most) => {
    if (at === held.length && next < of.size) {
      held = new Uint8Array(reader.readAsArrayBuffer(of.slice(next, next + SLICE)));
      next += held.length;
      at = 0;
    }
    const given = held.subarray(at, at + most);
    at += given.length;
    return given;
  };
}

function curves({ index, start_s }: Connection, direction: 0 | 1): Curves {
  const rows: number[] = [];
  const [connections, directions] = [series["connection"]!, series["direction"]!];
  for (let row = 0; row < connections.length; row += 1) {
    if (connections[row] === index && directions[row] === direction) rows.push(row);
  }
  const column = (name: string): Float64Array => Float64Array.from(rows, (row) => Number(series[name]![row]!));
  return {
    t: column("t_s").map((t) => t - start_s),
    goodputBps: column("goodput_bps"),
    retransmits: column("retransmits"),
    flightBytes: column("in_flight_bytes"),
    windowBytes: column("window_bytes"),
    rttS: column("rtt_s"),
    rttMinS: column("rtt_min_s"),
    limit: Uint8Array.from(column("limit")),
  };
}

function failed(error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  // The core's message begins with a code, for programs.
  answer({ kind: "failed", why: error instanceof CoreError ? why.replace(/^[a-z-]+: /, "") : why });
}
