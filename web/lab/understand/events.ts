// Describes an event in a sentence and cites its specification: what the sender did, with the numbers of that moment,
// for each control.

import { significant } from "../amount";

export interface FlowEvent {
  t: number;
  /** The page's flow. */
  flow: number;
  /** The core's name for the event. */
  kind: string;
  segments: number;
  before: number;
  cwnd: number;
  /** NaN: none yet. */
  ssthresh: number;
  /** NaN: packets are not paced. */
  pacingMbps: number;
}

/** What the sentences need to know of a path. */
export interface PathFacts {
  cc: string;
  /** The queue drops only what does not fit. */
  tailDrop: boolean;
}

/** What an event concerns, and how it is drawn. */
export type Class = "network" | "loss" | "less" | "state";

const BBR1 = "draft-cardwell-iccrg-bbr-congestion-control-00";
const BBR3 = "draft-ietf-ccwg-bbr";
/** The source of rules without an RFC. */
const HYSTART = "no RFC: HyStart, Ha and Rhee 2011; RFC 9406 has its successor";
const PRAGUE = "draft-briscoe-iccrg-prague-congestion-control";

interface Kind {
  class: Class;
  /** The name in the list of counts. */
  short: (cc: string) => string;
  /** The section that specifies it; "": none. */
  source: (cc: string) => string;
  describe: (event: FlowEvent, path: PathFacts) => string;
}

/** Windows below this size shrink in whole segments, not by an exact share. */
const SMALL = 20;

const segments = (count: number): string => (count === 1 ? "1 segment" : `${count} segments`);
const mbps = (value: number): string => `${significant(value, 3)} Mbit/s`;
const isBbr = (cc: string): boolean => cc.startsWith("bbr");
/** For version 1 the section, for version 3 its title. */
const draft = (section: string, title: string) => (cc: string): string => (cc === "bbr" ? `${BBR1} section ${section}` : `${BBR3}, "${title}"`);
const always = (text: string) => (): string => text;
const paces = ({ pacingMbps }: FlowEvent): string => (Number.isNaN(pacingMbps) ? "" : ` It paces at ${mbps(pacingMbps)}.`);

/** The section that specifies a control's response to a loss, and the share of the window that it leaves. */
function decrease(cc: string): { source: string; factor: string } {
  if (cc === "cubic") return { source: "RFC 9438 section 4.6", factor: "70%" };
  if (cc === "reno") return { source: "RFC 5681 section 3.2", factor: "half" };
  if (cc === "dctcp") return { source: "RFC 8257 section 3.5", factor: "less" };
  if (cc === "prague") return { source: PRAGUE, factor: "less" };
  return { source: draft("4.2.3.4", "Updating the Model Upon Packet Loss")(cc), factor: "what it was" };
}

function marked(cc: string): string {
  if (cc === "dctcp") return "RFC 8257 section 3.3";
  if (cc === "prague") return PRAGUE;
  // The draft of the first version does not mention marks.
  if (isBbr(cc)) return cc === "bbr" ? "" : `${BBR3}, "ECN"`;
  return "RFC 3168 section 6.1.2";
}

const comesDown = ({ before, ssthresh }: FlowEvent): string =>
  Number.isNaN(ssthresh) ? "" : ` from ${before} to ${segments(ssthresh)}`;

export const KINDS: Record<string, Kind> = {
  start: {
    class: "state",
    short: always("the connection opens"),
    source: always("RFC 6928 section 2"),
    describe: ({ cwnd }) => `The connection is open, and may send ${segments(cwnd)} at once.`,
  },
  "data-lost": {
    class: "network",
    short: always("packets that the path lost"),
    source: always(""),
    describe: () => "The path loses a packet. Its sender does not know yet.",
  },
  "ack-lost": {
    class: "network",
    short: always("acknowledgements that the path lost"),
    source: always("RFC 9293 section 3.4"),
    describe: () => "The path loses an acknowledgement. The next one replaces it, because acknowledgements are cumulative.",
  },
  "data-dropped": {
    class: "network",
    short: always("packets that the queue dropped"),
    source: always("RFC 7567 section 2"),
    describe: ({ segments: count }, { tailDrop }) =>
      `${tailDrop ? "The queue is full and drops" : "The queue drops"} ${count === 1 ? "a packet" : `${count} packets`}. Its sender does not know yet.`,
  },
  "ack-dropped": {
    class: "network",
    short: always("acknowledgements that a queue dropped"),
    source: always("RFC 7567 section 2"),
    describe: () => "The return path's queue drops an acknowledgement.",
  },
  "data-refused": {
    class: "network",
    short: always("packets that a policer dropped or that arrived damaged"),
    source: always(""),
    describe: () => "A policer drops a packet, or it arrives damaged and is discarded. Its sender does not know yet.",
  },
  "ack-refused": {
    class: "network",
    short: always("acknowledgements that a policer dropped or that arrived damaged"),
    source: always(""),
    describe: () => "A policer drops an acknowledgement, or it arrives damaged and is discarded.",
  },
  "lost-by-sack": {
    class: "loss",
    short: always("losses found, by SACK"),
    source: always("RFC 8985 section 6.2"),
    describe: ({ segments: count }) =>
      `${segments(count)} ${count === 1 ? "counts" : "count"} as lost: SACK reports that segments sent later have arrived.`,
  },
  "lost-by-duplicates": {
    class: "loss",
    short: always("losses found, by duplicate acknowledgements"),
    source: always("RFC 5681 section 3.2"),
    describe: ({ segments: count }) => `${segments(count)} ${count === 1 ? "counts" : "count"} as lost: the receiver repeats its acknowledgement.`,
  },
  recovery: {
    class: "less",
    short: (cc) => (isBbr(cc) ? "recoveries that keep the model" : cc === "reno" ? "window halved for a loss" : cc === "cubic" ? "window cut to 70% for a loss" : "window cut for a loss"),
    source: (cc) => decrease(cc).source,
    describe: (event, { cc }) => {
      if (cc === "bbr") {
        return `Lost segments are retransmitted, but BBR keeps its model, bandwidth × round trip.${paces(event)} For one round it sends only as much as is delivered; then its window returns.`;
      }
      if (isBbr(cc)) {
        return `Lost segments are retransmitted, and BBR keeps its bandwidth estimate.${paces(event)} Version 3 may limit its sending for a while after a round with losses.`;
      }
      if (event.ssthresh >= event.before) return `The window stays at ${segments(event.before)}, its minimum. Lost segments are retransmitted.`;
      const { factor } = decrease(cc);
      const share = factor === "less" ? "less" : `${factor} of it${event.before < SMALL ? " in whole segments" : ""}`;
      return `The window comes down${comesDown(event)}, to ${share}, spread over a round trip (RFC 6937). Lost segments are retransmitted.`;
    },
  },
  "recovery-amid-reduction": {
    class: "loss",
    short: always("losses during a reduction"),
    source: always("RFC 3168 section 6.1.2"),
    describe: () => "Another segment is lost while the window comes down. The window is not cut twice in a round trip.",
  },
  "reduced-by-mark": {
    class: "less",
    short: (cc) => (isBbr(cc) ? "echoed marks" : "window cut for marks"),
    source: marked,
    describe: (event, { cc }) => {
      if (!isBbr(cc)) return `The receiver echoes a mark of the queue: the window comes down${comesDown(event)}, and nothing was lost.`;
      const heeds = cc === "bbr" ? "BBR version 1 ignores it." : "BBR version 3 reacts to marks once per round with its low-latency ECN, and otherwise ignores them.";
      return `The receiver echoes a mark of the queue. ${heeds}`;
    },
  },
  "reduced-by-probe": {
    class: "less",
    short: (cc) => (isBbr(cc) ? "losses repaired by a tail loss probe" : "window cut for a loss that a tail loss probe repaired"),
    source: always("RFC 8985 section 7.4.2"),
    describe: (event, { cc }) =>
      `A tail loss probe has repaired a loss${isBbr(cc) ? ". BBR keeps its model." : `: the window comes down${comesDown(event)}.`}`,
  },
  timeout: {
    class: "less",
    short: always("timeouts"),
    source: always("RFC 6298 section 5"),
    describe: ({ segments: count, cwnd, ssthresh }, { cc }) => {
      const kept = isBbr(cc) ? "BBR keeps its bandwidth estimate" : `slow start goes up to ${segments(ssthresh)} (RFC 5681 section 3.1)`;
      return `The retransmission timer expires. ${segments(count)} more ${count === 1 ? "counts" : "count"} as lost, the window is ${segments(cwnd)}; ${kept}.`;
    },
  },
  recovered: {
    class: "state",
    short: always("recoveries that ended"),
    source: (cc) => (isBbr(cc) ? decrease(cc).source : "RFC 6675 section 5"),
    describe: ({ cwnd }, { cc }) =>
      `${isBbr(cc) ? "The recovery" : "The reduction"} is over: everything in flight when it began is acknowledged. The window is ${segments(cwnd)}.`,
  },
  undone: {
    class: "state",
    short: always("reductions undone: nothing had been lost"),
    source: always("RFC 4015 section 3"),
    describe: ({ cwnd }) =>
      `Segments deemed lost were only late, as timestamps (RFC 3522), duplicates (RFC 3708) or the order of acknowledgements (RFC 5682) show: the window is ${segments(cwnd)} again.`,
  },
  hystart: {
    class: "state",
    short: always("slow start left early, by HyStart"),
    source: always(HYSTART),
    describe: ({ cwnd }) => `Acknowledgements take longer, or their train has become long: slow start ends at ${segments(cwnd)}, before anything is lost (HyStart in Linux).`,
  },
  "slow-start-over": {
    class: "state",
    short: always("slow start reached its threshold"),
    source: (cc) => (cc === "cubic" ? "RFC 9438 section 4.10" : "RFC 5681 section 3.1"),
    describe: ({ ssthresh }) => `The window has grown to its threshold, ${segments(ssthresh)}: from here on it grows more slowly.`,
  },
  "tail-probe": {
    class: "loss",
    short: always("tail loss probes"),
    source: always("RFC 8985 section 7.3"),
    describe: () => "No acknowledgement has arrived for about two round trips: a segment is sent to find out whether the last ones were lost.",
  },
  "window-probe": {
    class: "state",
    short: always("zero-window probes"),
    source: always("RFC 9293 section 3.8.6.1"),
    describe: () => "The receiver's window is closed: the sender asks whether it still is.",
  },
  "bbr-startup": {
    class: "state",
    short: always("startup"),
    source: draft("4.3.2", "Startup"),
    describe: (event) => `BBR sends faster from round to round, until the bandwidth that it measures stops growing.${paces(event)}`,
  },
  "bbr-drain": {
    class: "state",
    short: always("drains of startup's queue"),
    source: draft("4.3.3", "Drain"),
    describe: (event) => `Startup is over: BBR sends more slowly than the path carries, until the queue that it made is gone.${paces(event)}`,
  },
  "bbr-up": {
    class: "state",
    short: always("probes for more bandwidth"),
    source: draft("4.3.4", "ProbeBW_UP"),
    describe: (event) => `BBR sends a quarter faster than its bandwidth estimate, to find out whether there is more.${paces(event)}`,
  },
  "bbr-down": {
    class: "state",
    short: always("drains of a probe's queue"),
    source: draft("4.3.4", "ProbeBW_DOWN"),
    describe: (event) => `BBR sends more slowly than its bandwidth estimate, so that its queue drains.${paces(event)}`,
  },
  "bbr-cruise": {
    class: "state",
    short: always("cruises at the estimated bandwidth"),
    source: draft("4.3.4", "ProbeBW_CRUISE"),
    describe: (event) => `BBR sends at about its bandwidth estimate.${paces(event)}`,
  },
  "bbr-refill": {
    class: "state",
    short: always("rounds that refill the path"),
    source: always(`${BBR3}, "ProbeBW_REFILL"`),
    describe: (event) => `BBR fills the path for a round before it probes for more bandwidth.${paces(event)}`,
  },
  "bbr-probe-rtt": {
    class: "state",
    short: always("probes for the minimum round trip"),
    source: draft("4.3.5", "ProbeRTT"),
    describe: () => "BBR has not seen its minimum round trip for a while: it keeps little in flight, so that queues empty and it can measure the path's base RTT.",
  },
};

/** Kinds in the order of the list: the network, what is detected, what is done, states. */
export const ORDER = Object.keys(KINDS);

/** The event in one or two sentences, with the section. */
export function sentence(event: FlowEvent, path: PathFacts): string {
  const kind = KINDS[event.kind];
  if (kind === undefined) return `${event.kind}.`;
  const source = kind.source(path.cc);
  const text = kind.describe(event, path);
  return source === "" ? text : `${text} (${source})`;
}
