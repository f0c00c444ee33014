// A run on the native core of the machine that serves the page. Rows arrive as frames (see
// src/sawtooth/lab/__main__.py).

import type { Column, Tables } from "./core";
import type { Native, Rows } from "./protocol";
import { answered } from "./served";

const KINDS = { f8: Float64Array, i8: BigInt64Array, u8: BigUint64Array, u4: Uint32Array, u1: Uint8Array } as const;

interface Head {
  kind: "rows" | "error";
  message?: string;
  fix?: string;
  events: number;
  workedMs: number;
  runs: { nowNs: number; finished: boolean; tables: [table: string, columns: [name: string, kind: keyof typeof KINDS, rows: number][]][] }[];
}

/** Reports rows until all runs are finished. Raises InputError with the field, and Error if the answer breaks off. */
export async function run(
  { key, page, text }: Native,
  everyMs: number,
  signal: AbortSignal,
  tell: (runs: Rows[], events: number, workedMs: number) => void,
): Promise<void> {
  const headers = { "Content-Type": "application/json", "X-Sawtooth-Key": key, "X-Sawtooth-Page": page, "X-Sawtooth-Every": String(everyMs) };
  const answer = await answered(new Request(new URL("run", self.location.href), { method: "POST", headers, body: text, signal }));
  const stream = new Stream(answer.body!.getReader());
  for (let finished = false; !finished; ) {
    const lengths = new DataView(await stream.take(8));
    const head = JSON.parse(new TextDecoder().decode(await stream.take(lengths.getUint32(0, true)))) as Head;
    const body = await stream.take(lengths.getUint32(4, true));
    if (head.kind === "error") throw new Error(`${head.message ?? ""}. ${head.fix ?? ""}`);
    let place = 0;
    const column = (kind: keyof typeof KINDS, rows: number): Column => {
      const bytes = rows * KINDS[kind].BYTES_PER_ELEMENT;
      place += bytes;
      // A copy, so that the bytes are aligned.
      return new KINDS[kind](body.slice(place - bytes, place));
    };
    const runs = head.runs.map(({ nowNs, finished, tables }) => ({
      nowNs,
      finished,
      tables: Object.fromEntries(
        tables.map(([table, columns]) => [table, Object.fromEntries(columns.map(([name, kind, rows]) => [name, column(kind, rows)]))]),
      ) as Tables,
    }));
    tell(runs, head.events, head.workedMs);
    finished = head.runs.every((one) => one.finished);
  }
}

/** A stream of bytes, read in pieces of the caller's size. */
class Stream {
  private waiting: Uint8Array[] = [];
  private length = 0;

  constructor(private readonly reader: ReadableStreamDefaultReader<Uint8Array>) {}

  async take(bytes: number): Promise<ArrayBuffer> {
    while (this.length < bytes) {
      const { done, value } = await this.reader.read();
      if (done) throw new Error("the native core broke off: it was stopped, or took too long");
      this.waiting.push(value);
      this.length += value.length;
    }
    const found = new Uint8Array(bytes);
    let place = 0;
    while (place < bytes) {
      const [first] = this.waiting;
      const part = first!.subarray(0, bytes - place);
      found.set(part, place);
      place += part.length;
      if (part.length === first!.length) this.waiting.shift();
      else this.waiting[0] = first!.subarray(part.length);
    }
    this.length -= bytes;
    return found.buffer;
  }
}
