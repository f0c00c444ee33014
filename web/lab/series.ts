// Collects the rows of a run in columns for figures: one column per line drawn, against time.

import { numbers, type Limited, type Limits, type Table, type Tables } from "./core";

/** The link of a path that loses data, as an index into the compiled scenario. */
const DATA_LOSS = 2;

/** A growing column of numbers. */
export class Growing {
  private all = new Float64Array(256);
  length = 0;

  push(value: number): void {
    if (this.length === this.all.length) {
      const more = new Float64Array(2 * this.length);
      more.set(this.all);
      this.all = more;
    }
    this.all[this.length++] = value;
  }

  get values(): Float64Array {
    return this.all.subarray(0, this.length);
  }
}

/** One line of a figure. */
export class Line {
  readonly t = new Growing();
  readonly y = new Growing();

  push(t: number, y: number): void {
    this.t.push(t);
    this.y.push(y);
  }
}

/** The lines of one flow: those of its first connection if it has several, except goodput, which counts all. */
export class FlowLines {
  readonly goodput = new Line();
  readonly window = new Line();
  readonly ssthresh = new Line();
  readonly rtt = new Line();
  bytes = 0;
  segments = 0;
  retransmits = 0;
  timeouts = 0;
  /** For each connection reported: the number of segments whose acknowledgement echoed a mark. */
  readonly echoed: number[] = [];
  readonly delivered: number[] = [];
}

/** The rows of a run so far. */
export class RunLines {
  readonly flows: FlowLines[];
  readonly queue = new Line();
  readonly drops = new Line();
  readonly lost = new Line();
  nowS = 0;
  finished = false;

  constructor(
    flows: number,
    private readonly intervalS: number,
    private readonly limits?: Limits,
  ) {
    this.flows = Array.from({ length: flows }, () => new FlowLines());
  }

  add(tables: Tables, nowS: number, finished: boolean): void {
    this.nowS = nowS;
    this.finished = finished;
    this.limits?.add(tables);
    each(tables.intervals, ["t_s", "flow", "goodput_bps", "segments_out", "retransmits", "timeouts"], (t, flow, bps, out, again, timeouts) => {
      const one = this.flows[flow]!;
      one.goodput.push(t, bps / 1e6);
      one.bytes += (bps * this.intervalS) / 8;
      one.segments += out;
      one.retransmits += again;
      one.timeouts += timeouts;
    });
    const columns = ["t_s", "flow", "connection", "cwnd_segments", "ssthresh_segments", "srtt_s", "delivered_ce_segments", "delivered_segments"];
    each(tables.tcp_info, columns, (t, flow, connection, cwnd, ssthresh, srtt, echoed, delivered) => {
      const one = this.flows[flow]!;
      one.echoed[connection] = echoed;
      one.delivered[connection] = delivered;
      if (connection !== 0) return;
      one.window.push(t, cwnd);
      one.ssthresh.push(t, ssthresh < 0 || ssthresh > 1e8 ? NaN : ssthresh);
      one.rtt.push(t, srtt * 1e3);
    });
    each(tables.queues, ["t_s", "transmitter", "packets", "drops"], (t, transmitter, packets, drops) => {
      if (transmitter !== 0) return;
      this.queue.push(t, packets);
      this.drops.push(t, drops);
    });
    each(tables.links, ["t_s", "link", "lost"], (t, link, lost) => {
      if (link !== DATA_LOSS) return;
      this.lost.push(t, lost);
    });
  }

  /** What limits each flow, as far as the run has come. */
  limited(): Limited[] {
    return this.limits?.report(this.nowS) ?? [];
  }

  close(): void {
    this.limits?.close();
  }
}

/** Calls `call` with the numbers of each row. */
function each(table: Table | undefined, names: string[], call: (...row: number[]) => void): void {
  if (table === undefined) return;
  const columns = names.map((name) => numbers(table[name]!));
  const rows = columns[0]!.length;
  const values = columns.map(() => 0);
  for (let row = 0; row < rows; row += 1) {
    columns.forEach((column, at) => (values[at] = column[row]!));
    call(...values);
  }
}
