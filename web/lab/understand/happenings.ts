// What happened, in a sentence, with where it is written: of each control what its sender did, with the numbers of that moment.

import { significant } from "../amount";

export interface Happening {
  t: number;
  /** Of the page's flows. */
  flow: number;
  /** As the core names it. */
  kind: string;
  segments: number;
  before: number;
  cwnd: number;
  /** NaN: none yet. */
  ssthresh: number;
  /** NaN: nothing holds packets back. */
  pacingMbps: number;
}

/** What of a path the sentences need. */
export interface Told {
  cc: string;
  /** The queue drops what does not fit, and nothing else. */
  tailDrop: boolean;
}

/** What a happening is about, and how it is drawn. */
export type Class = "network" | "loss" | "less" | "state";

const BBR1 = "draft-cardwell-iccrg-bbr-congestion-control-00";
const BBR3 = "draft-ietf-ccwg-bbr";
/** What has no RFC. */
const HYSTART = "no RFC: HyStart, Ha and Rhee 2011; RFC 9406 has its successor";
const PRAGUE = "draft-briscoe-iccrg-prague-congestion-control";

interface Kind {
  class: Class;
  /** In the list of what happened how often. */
  short: (cc: string) => string;
  /** Where it is written; "": nowhere. */
  source: (cc: string) => string;
  words: (of: Happening, told: Told) => string;
}

/** Windows below it do not come down to a share of theirs, but to whole segments. */
const SMALL = 20;

const segments = (count: number): string => (count === 1 ? "1 segment" : `${count} segments`);
const mbps = (value: number): string => `${significant(value, 3)} Mbit/s`;
const isBbr = (cc: string): boolean => cc.startsWith("bbr");
/** Of version 1 the section, of version 3 its title. */
const draft = (section: string, title: string) => (cc: string): string => (cc === "bbr" ? `${BBR1} section ${section}` : `${BBR3}, "${title}"`);
const always = (text: string) => (): string => text;
const paces = ({ pacingMbps }: Happening): string => (Number.isNaN(pacingMbps) ? "" : ` It paces at ${mbps(pacingMbps)}.`);

/** Where a control's answer to a loss is written, and what it leaves of the window. */
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
  // The first version's draft says nothing of marks.
  if (isBbr(cc)) return cc === "bbr" ? "" : `${BBR3}, "ECN"`;
  return "RFC 3168 section 6.1.2";
}

const comesDown = ({ before, ssthresh }: Happening): string =>
  Number.isNaN(ssthresh) ? "" : ` from ${before} to ${segments(ssthresh)}`;

export const KINDS: Record<string, Kind> = {
  start: {
    class: "state",
    short: always("the connection opens"),
    source: always("RFC 6928 section 2"),
    words: ({ cwnd }) => `The connection is open, and may send ${segments(cwnd)} at once.`,
  },
  "data-lost": {
    class: "network",
    short: always("packets that the path lost"),
    source: always(""),
    words: () => "The path loses a packet. Its sender does not know yet.",
  },
  "ack-lost": {
    class: "network",
    short: always("acknowledgements that the path lost"),
    source: always("RFC 9293 section 3.4"),
    words: () => "The path loses an acknowledgement. The next one says as much, for it tells of everything before it.",
  },
  "data-dropped": {
    class: "network",
    short: always("packets that the queue dropped"),
    source: always("RFC 7567 section 2"),
    words: ({ segments: count }, { tailDrop }) =>
      `${tailDrop ? "The queue is full and drops" : "The queue drops"} ${count === 1 ? "a packet" : `${count} packets`}. Its sender does not know yet.`,
  },
  "ack-dropped": {
    class: "network",
    short: always("acknowledgements that a queue dropped"),
    source: always("RFC 7567 section 2"),
    words: () => "The queue of the way back drops an acknowledgement.",
  },
  "data-refused": {
    class: "network",
    short: always("packets that a policer dropped, or that came damaged"),
    source: always(""),
    words: () => "A policer drops a packet, or it comes damaged and is thrown away. Its sender does not know yet.",
  },
  "ack-refused": {
    class: "network",
    short: always("acknowledgements that a policer dropped, or that came damaged"),
    source: always(""),
    words: () => "A policer drops an acknowledgement, or it comes damaged and is thrown away.",
  },
  "lost-by-sack": {
    class: "loss",
    short: always("losses found, by SACK"),
    source: always("RFC 8985 section 6.2"),
    words: ({ segments: count }) =>
      `${segments(count)} ${count === 1 ? "counts" : "count"} as lost: the receiver has told (SACK) that segments which left later have arrived.`,
  },
  "lost-by-duplicates": {
    class: "loss",
    short: always("losses found, by duplicate acknowledgements"),
    source: always("RFC 5681 section 3.2"),
    words: ({ segments: count }) => `${segments(count)} ${count === 1 ? "counts" : "count"} as lost: acknowledgements repeat themselves.`,
  },
  recovery: {
    class: "less",
    short: (cc) => (isBbr(cc) ? "recoveries, the model kept" : cc === "reno" ? "window halved for a loss" : cc === "cubic" ? "window cut to 70% for a loss" : "window cut for a loss"),
    source: (cc) => decrease(cc).source,
    words: (of, { cc }) => {
      if (cc === "bbr") {
        return `What is lost is sent again, but BBR keeps its model, bandwidth × round trip.${paces(of)} For a round it sends no more than is delivered; then its window returns.`;
      }
      if (isBbr(cc)) {
        return `What is lost is sent again; the bandwidth that BBR has seen stays.${paces(of)} Version 3 may bound what it sends for a while after a round with losses.`;
      }
      if (of.ssthresh >= of.before) return `The window stays at ${segments(of.before)}, for it cannot come down further. What is lost is sent again.`;
      const { factor } = decrease(cc);
      const share = factor === "less" ? "less" : `${factor} of it${of.before < SMALL ? " in whole segments" : ""}`;
      return `The window comes down${comesDown(of)}, to ${share}, spread over a round trip (RFC 6937). What is lost is sent again.`;
    },
  },
  "recovery-amid-reduction": {
    class: "loss",
    short: always("losses while the window came down already"),
    source: always("RFC 3168 section 6.1.2"),
    words: () => "Something is lost, too, while the window comes down already: it is not cut twice in a round trip.",
  },
  "reduced-by-mark": {
    class: "less",
    short: (cc) => (isBbr(cc) ? "echoed marks" : "window cut for marks"),
    source: marked,
    words: (of, { cc }) => {
      if (!isBbr(cc)) return `The receiver echoes a mark of the queue: the window comes down${comesDown(of)}, and nothing was lost.`;
      const heeds = cc === "bbr" ? "BBR's first version does not heed it." : "BBR's third version heeds marks by the round, where it has its low-latency ECN, and else not.";
      return `The receiver echoes a mark of the queue. ${heeds}`;
    },
  },
  "reduced-by-probe": {
    class: "less",
    short: (cc) => (isBbr(cc) ? "losses that a probe of the tail repaired" : "window cut for a loss that a probe repaired"),
    source: always("RFC 8985 section 7.4.2"),
    words: (of, { cc }) =>
      `The probe of the tail has repaired a loss${isBbr(cc) ? ". BBR keeps its model." : `: the window comes down${comesDown(of)}.`}`,
  },
  timeout: {
    class: "less",
    short: always("timeouts"),
    source: always("RFC 6298 section 5"),
    words: ({ segments: count, cwnd, ssthresh }, { cc }) => {
      const kept = isBbr(cc) ? "BBR keeps the bandwidth that it has seen" : `slow start goes up to ${segments(ssthresh)} (RFC 5681 section 3.1)`;
      return `Nothing came for too long. ${segments(count)} more ${count === 1 ? "counts" : "count"} as lost, the window is ${segments(cwnd)}; ${kept}.`;
    },
  },
  recovered: {
    class: "state",
    short: always("recoveries that ended"),
    source: (cc) => (isBbr(cc) ? decrease(cc).source : "RFC 6675 section 5"),
    words: ({ cwnd }, { cc }) =>
      `${isBbr(cc) ? "The repair" : "The reduction"} is over, for all is acknowledged that was in flight when it began. The window is ${segments(cwnd)}.`,
  },
  undone: {
    class: "state",
    short: always("reductions undone, for nothing had been lost"),
    source: always("RFC 4015 section 3"),
    words: ({ cwnd }) =>
      `What was taken for lost had only been late, as timestamps (RFC 3522), duplicates (RFC 3708) or the order of acknowledgements (RFC 5682) show: the window is ${segments(cwnd)} again.`,
  },
  hystart: {
    class: "state",
    short: always("slow start left early, by HyStart"),
    source: always(HYSTART),
    words: ({ cwnd }) => `Acknowledgements take longer, or their train has got long: slow start ends at ${segments(cwnd)}, before anything is lost (HyStart, as Linux has it).`,
  },
  "slow-start-over": {
    class: "state",
    short: always("slow start came to its threshold"),
    source: (cc) => (cc === "cubic" ? "RFC 9438 section 4.10" : "RFC 5681 section 3.1"),
    words: ({ ssthresh }) => `The window has grown to its threshold, ${segments(ssthresh)}: from here on it grows more slowly.`,
  },
  "tail-probe": {
    class: "loss",
    short: always("probes of the tail"),
    source: always("RFC 8985 section 7.3"),
    words: () => "Nothing came for about two round trips: a segment is sent to find out whether the last ones were lost.",
  },
  "window-probe": {
    class: "state",
    short: always("probes of a closed window"),
    source: always("RFC 9293 section 3.8.6.1"),
    words: () => "The receiver's window is closed: the sender asks whether it still is.",
  },
  "bbr-startup": {
    class: "state",
    short: always("startup"),
    source: draft("4.3.2", "Startup"),
    words: (of) => `BBR sends faster from round to round, until the bandwidth that it sees grows no more.${paces(of)}`,
  },
  "bbr-drain": {
    class: "state",
    short: always("drains of what startup queued"),
    source: draft("4.3.3", "Drain"),
    words: (of) => `Startup is over: BBR sends more slowly than the path carries, until the queue that it made is gone.${paces(of)}`,
  },
  "bbr-up": {
    class: "state",
    short: always("probes for more bandwidth"),
    source: draft("4.3.4", "ProbeBW_UP"),
    words: (of) => `BBR sends a quarter faster than the bandwidth that it has seen, to find out whether there is more.${paces(of)}`,
  },
  "bbr-down": {
    class: "state",
    short: always("drains of what a probe queued"),
    source: draft("4.3.4", "ProbeBW_DOWN"),
    words: (of) => `BBR sends more slowly than the bandwidth that it has seen, so that what it queued drains.${paces(of)}`,
  },
  "bbr-cruise": {
    class: "state",
    short: always("cruises at the bandwidth it has seen"),
    source: draft("4.3.4", "ProbeBW_CRUISE"),
    words: (of) => `BBR sends at about the bandwidth that it has seen.${paces(of)}`,
  },
  "bbr-refill": {
    class: "state",
    short: always("rounds in which the path is filled again"),
    source: always(`${BBR3}, "ProbeBW_REFILL"`),
    words: (of) => `BBR fills the path for a round, before it probes for more.${paces(of)}`,
  },
  "bbr-probe-rtt": {
    class: "state",
    short: always("looks for the smallest round trip"),
    source: draft("4.3.5", "ProbeRTT"),
    words: () => "No round trip as short has been seen for a while: BBR lets little be in flight, so that queues empty and it sees the path's own.",
  },
};

/** Kinds in the order in which they are listed: the network, what is found, what is done, states. */
export const ORDER = Object.keys(KINDS);

/** In one sentence or two, with the section. */
export function sentence(of: Happening, told: Told): string {
  const kind = KINDS[of.kind];
  if (kind === undefined) return `${of.kind}.`;
  const source = kind.source(told.cc);
  const words = kind.words(of, told);
  return source === "" ? words : `${words} (${source})`;
}
