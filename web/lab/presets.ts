// Questions to start from: paths from published studies and from ours, each a scenario that the page supports.

import type { Question } from "./experiment";
import type { Scenario } from "./scenario";

export interface Preset {
  name: string;
  title: string;
  about: string;
  question: Question;
  /** Names of published figures for this path (src/sawtooth/data/published). */
  published?: string;
}

const both = [{ cc: "cubic" }, { cc: "bbr" }];
const preset = (name: string, title: string, about: string, alone: boolean, scenario: Scenario, published?: string): Preset => ({
  name,
  title,
  about,
  question: { scenario: { name, ...scenario }, alone },
  ...(published === undefined ? {} : { published }),
});

export const PRESETS: readonly Preset[] = [
  preset(
    "one-percent",
    "What does 1% loss do?",
    "CUBIC treats each loss as congestion and slows down. BBR sends at the rate that it measures.",
    true,
    { duration: "10 s", path: { rate: "100 Mbit/s", rtt: "20 ms", loss: "1%" }, flows: both },
  ),
  preset(
    "sawtooth",
    "The sawtooth",
    "No loss on the path: the window grows until the queue is full and drops a packet, is halved, and grows again.",
    false,
    { duration: "20 s", path: { rate: "20 Mbit/s", rtt: "40 ms", queue: "1 bdp" }, flows: [{ cc: "reno" }] },
  ),
  preset(
    "what-helps",
    "What helps at 1% loss?",
    "The same line with four congestion controls, each by itself. Choose others under the flows.",
    true,
    { duration: "10 s", path: { rate: "100 Mbit/s", rtt: "20 ms", loss: "1%" }, flows: [{ cc: "cubic" }, { cc: "reno" }, { cc: "bbr" }, { cc: "bbr3" }] },
  ),
  preset(
    "cost-to-others",
    "What does BBR cost others?",
    "No loss on the line, and CUBIC and BBR share it at the same time. Half each would be fair.",
    false,
    { duration: "10 s", path: { rate: "100 Mbit/s", rtt: "20 ms", loss: "0%" }, flows: both },
  ),
  preset(
    "laboratory-path",
    "1 Gbit/s, five hosts, 1% loss",
    "The published study's path, as one bottleneck. Its points, including those with another return path, are on the response curve.",
    true,
    { duration: "5 s", path: { rate: "1 Gbit/s", rtt: "0.45 ms", queue: "1000 packets", loss: "1%" }, flows: both },
    "one-percent-loss",
  ),
  preset(
    "long-fat-path",
    "A long, fat path",
    "2.5 Gbit/s over 140 ms, with receive buffers of 12 MiB. 1.5% loss leaves CUBIC almost nothing.",
    true,
    {
      duration: "10 s",
      path: { rate: "2.5 Gbit/s", rtt: "140 ms", queue: "100000 packets", loss: "1.5%" },
      host: { receive_buffer: "12 MiB" },
      flows: both,
    },
    "long-fat-path",
  ),
  preset(
    "fibre-line",
    "A fiber line with a little loss",
    "1 Gbit/s to a home over 10 ms, one packet in a thousand lost.",
    true,
    { duration: "6 s", path: { rate: "1 Gbit/s", rtt: "10 ms", loss: "0.1%" }, flows: both },
  ),
  preset(
    "congested",
    "A congested interconnect",
    "Forty flows share a bottleneck. All losses come from its full queue.",
    false,
    {
      duration: "15 s",
      path: { rate: "200 Mbit/s", rtt: "30 ms", queue: "1 bdp" },
      flows: [{ cc: "cubic", count: 20 }, { cc: "bbr", count: 20 }],
    },
  ),
  preset(
    "bufferbloat",
    "Bufferbloat: a far too long queue",
    "A slow uplink has a queue of eight bandwidth-delay products. The round trip takes ten times as long as on the idle line.",
    false,
    { duration: "20 s", path: { rate: "10 Mbit/s", rtt: "30 ms", queue: "8 bdp" }, flows: [{ cc: "cubic" }] },
  ),
  preset(
    "fq-codel",
    "The same uplink with FQ-CoDel",
    "It drops early and serves flows in turn: the queue stays short, and a new flow does not wait.",
    false,
    {
      duration: "20 s",
      path: { rate: "10 Mbit/s", rtt: "30 ms", queue: { kind: "fq_codel" } },
      flows: [{ cc: "cubic" }, { cc: "bbr", start: "5 s" }],
    },
  ),
  preset(
    "aqm-atlas",
    "Compare queues",
    "Four flows through CoDel. Choose another kind of queue, or tail drop of 1000 packets: how long is the queue, and how much of the rate is used?",
    false,
    { duration: "20 s", path: { rate: "50 Mbit/s", rtt: "40 ms", queue: { kind: "codel" } }, flows: [{ cc: "cubic", count: 4 }] },
  ),
  preset(
    "ecn",
    "ECN: marks instead of drops",
    "FQ-CoDel marks packets of hosts with ECN, so nothing is retransmitted. Turn ECN off at the hosts, and it drops packets.",
    false,
    { duration: "20 s", path: { rate: "20 Mbit/s", rtt: "40 ms", queue: { kind: "fq_codel" } }, host: { ecn: 1 }, flows: [{ cc: "cubic", count: 2 }] },
  ),
  preset(
    "abe",
    "A mark costs less than a loss",
    "A mark comes from a short queue, so RFC 8511 (abe) reduces the window less for it than for a loss.",
    true,
    {
      duration: "20 s",
      path: { rate: "20 Mbit/s", rtt: "80 ms", queue: { kind: "codel", ecn: true } },
      host: { ecn: 1 },
      flows: [{ cc: "reno" }, { cc: { name: "reno", variant: "abe" } }],
    },
  ),
  preset(
    "coexistence",
    "CUBIC against BBR",
    "CUBIC and BBR share a queue of one bandwidth-delay product. Make it 5 ms, then 160 ms: which one gets more?",
    false,
    { duration: "30 s", path: { rate: "50 Mbit/s", rtt: "20 ms", queue: "20 ms" }, flows: both },
  ),
  preset(
    "shallow-buffer",
    "A buffer of 17 packets",
    "A twentieth of the bandwidth-delay product, for four flows of Reno, CUBIC or BBR. How much of the rate do they use?",
    true,
    {
      duration: "20 s",
      path: { rate: "100 Mbit/s", rtt: "40 ms", queue: "0.05 bdp" },
      flows: [{ cc: "reno", count: 4 }, { cc: "cubic", count: 4 }, { cc: "bbr", count: 4 }],
    },
  ),
  preset(
    "reverse",
    "When acknowledgements are slow",
    "100 Mbit/s forward and 1 Mbit/s back: acknowledgements fill the return path.",
    false,
    {
      duration: "10 s",
      path: { rate: "100 Mbit/s", reverse_rate: "1 Mbit/s", rtt: "20 ms", queue: "100 packets" },
      flows: [{ cc: "cubic" }],
    },
  ),
  preset(
    "late-comer",
    "A late second flow",
    "A second CUBIC flow begins after five seconds. How long until both get the same?",
    false,
    {
      duration: "30 s",
      path: { rate: "50 Mbit/s", rtt: "30 ms", queue: "1 bdp" },
      flows: [{ cc: "cubic" }, { cc: "cubic", start: "5 s" }],
    },
  ),
  preset(
    "l4s",
    "L4S: low latency with marks",
    "DualPI2 marks Prague's packets after one millisecond in the queue, and puts CUBIC in a separate queue.",
    false,
    {
      duration: "10 s",
      path: { rate: "40 Mbit/s", rtt: "20 ms", queue: { kind: "dualpi2" } },
      host: { ecn: 2 },
      flows: [{ cc: "prague" }, { cc: "cubic" }],
    },
  ),
  preset(
    "short-transfer",
    "A short transfer",
    "One megabyte: most of it is slow start, and one loss in it costs a round trip or more.",
    true,
    {
      duration: "3 s",
      path: { rate: "100 Mbit/s", rtt: "50 ms", loss: "0.5%" },
      flows: [{ cc: "cubic", bytes: "1 MB" }, { cc: "bbr", bytes: "1 MB" }],
    },
  ),
];
