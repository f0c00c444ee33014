"""Tables of a scenario, with their fields. What has a unit is a quantity.

Written by tools/scenario_tables.py from crates/scenario; a test compares. Do not edit.
"""

from __future__ import annotations

from typing import Literal

from sawtooth.scenario.part import Flowing, Labelled, Part
from sawtooth.scenario.units import Burst, Loss, Queue, Rate, Size, Span


class Arrivals(Part):
    """Transfers that arrive over time, each over a new connection."""

    kind: Literal["arrivals"]
    """`arrivals`"""
    every: Span | None
    """mean time between transfers; arrival times are random (Poisson)"""
    load: Rate | Loss | None
    """instead of `every`: mean offered load, as a payload rate, or as a share such as `30%` of the slowest rate on the
    path; arrival times are random as well
    """
    times: str | None
    """instead of `every`: a CSV file with the column `t_s`, and `bytes` if `sizes` is absent"""
    sizes: Size | Lognormal | Pareto | Cdf | None
    """size of a transfer: `10 kB`, or a table"""
    open: int
    """most transfers open at once; later ones wait in order"""


class Bfifo(Part):
    """First in, first out, with a limit in bytes."""

    kind: Literal["bfifo"]
    """`bfifo`"""
    limit: Queue | None
    """most bytes that wait; absent: 1000 full frames"""


class Cake(Part):
    """CAKE: a shaper, fair sharing among hosts and flows, and COBALT (CoDel and BLUE) on each flow."""

    kind: Literal["cake"]
    """`cake`"""
    bandwidth: Rate | None
    """rate of its shaper; absent: no shaper, only the transmitter's rate"""
    rtt: Span
    """about the longest RTT through the queue, or tc's name for one: `datacentre`, `lan`, `metro`, `regional`,
    `internet`, `oceanic`, `satellite`, `interplanetary`
    """
    isolation: Literal[
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
    ]
    """what gets equal shares, in tc's words"""
    memlimit: Size | None
    """kernel memory for waiting packets; absent: 4 `bandwidth` × `rtt`, at least 4 MiB, at most 10240 full frames"""


class Card(Part):
    """A physical transmitter that all links leaving a host share."""

    rate: Rate
    """rate of the card"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of the card"""


class Cdf(Part):
    """Sizes from a file with their cumulative distribution."""

    kind: Literal["cdf"]
    """`cdf`"""
    file: str
    """file with one line per size: bytes, and the share of transfers that are no larger"""


class Chain(Part):
    """Five hosts in a row, one network card each; topologies "chain" and "chain-asymmetric"."""

    rate: Rate
    """rate of each host's card"""
    rtt: Span
    """round-trip propagation time from h1 to h5; full segments add 50 µs on idle 1 Gbit/s cards"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of each host's card"""
    loss: Loss | LossPattern
    """loss on the link from h3 to h4"""
    reverse_rate: Rate | None
    """rate of a second card per host, for packets toward h1; absent: one card for both directions"""
    ack_loss: Loss | LossPattern | None
    """loss in the reverse direction, on the link from h4 to h3 or from h5 to h1; absent: none"""


class Change(Part):
    """A change of rate, delay or loss at a time. Two values are the bounds of a random one, drawn each time."""

    at: Span
    """time of the change"""
    every: Span | None
    """repeat the change at this interval until the end"""
    rate: tuple[Rate, ...] | None
    """rate of the transmitter; "0 bit/s" stops it"""
    delay: tuple[Span, ...] | None
    """one-way propagation delay; packets keep their order"""
    loss: tuple[Loss, ...] | None
    """loss before the queue"""


class Codel(Part):
    """CoDel, RFC 8289: drops once packets have waited longer than the target for an interval, then ever more often."""

    kind: Literal["codel"]
    """`codel`"""
    limit: Queue
    """most packets that wait"""
    target: Span
    """acceptable queue delay"""
    interval: Span
    """about the longest RTT through the queue"""
    ecn: bool
    """mark packets of connections that negotiated ECN, instead of dropping them"""
    ce_threshold: Span | None
    """mark every ECN packet that waited longer than this; absent: no such threshold"""


class Direction(Part):
    """Settings of one direction of a link, which override the link's."""

    rate: Rate | None
    """rate of the transmitter"""
    delay: Span | None
    """one-way propagation delay"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2 | None
    """queue before the transmitter"""
    loss: Loss | LossPattern | None
    """loss before the queue"""
    overhead: Size | None
    """bytes per frame that the wire carries and Linux does not count"""
    aggregation: Span | None
    """interval at which waiting packets leave together"""
    opportunity: Size | None
    """bytes that leave at a time at that rate"""
    changes: tuple[Change, ...] | None
    """list of tables with changes of rate, delay or loss at given times"""
    trace: str | None
    """file with Mahimahi packet-delivery times, or CSV with time, rate, delay and loss; or the name of a shipped
    trace. Instead of `rate` and `changes`
    """
    jitter: Jitter | None
    """standard deviation of the delay, as text or as a table"""
    reorder: Reorder | None
    """share of packets that overtake others, as text or as a table"""
    duplicate: Share | None
    """share of packets that are duplicated, as text or as a table"""
    corrupt: Share | None
    """share of packets with a wrong checksum, which the receiver discards, as text or as a table"""
    policer: Policer | None
    """drops packets above a rate, after the transmitter and before the delay"""


class DualPi2(Part):
    """DualPI2, RFC 9332: a low-latency queue for ECT(1), a classic queue, and one controller for both."""

    kind: Literal["dualpi2"]
    """`dualpi2`"""
    limit: Queue
    """most packets that wait, both queues together"""
    target: Span
    """target delay of the classic queue"""
    tupdate: Span
    """interval between updates of the drop probability"""
    alpha: float
    """weight of the difference between delay and target, in Hz"""
    beta: float
    """weight of the change of the delay, in Hz"""
    coupling_factor: int
    """ratio of the low-latency marking probability to the square root of the classic one"""
    step_thresh: Queue
    """delay, or number of packets, above which every low-latency packet is marked"""
    min_qlen_step: int
    """packets that must wait in the low-latency queue before the step marks"""
    classic_protection: Loss
    """share of the classic queue if both queues have packets, in whole percent"""
    drop_on_overload: bool
    """drop from both queues once every low-latency packet is marked; false: drop only when the queue is full"""
    drop_enqueue: bool
    """mark and drop arriving packets; false: departing packets (tc's `drop_dequeue`)"""
    any_ect: bool
    """ECT(0) packets use the low-latency queue too; false: only ECT(1) (tc's `l4s_ect`)"""


class Dumbbell(Part):
    """Pairs of hosts around one bottleneck; topology "dumbbell"."""

    pairs: int
    """number of senders s1 … and receivers r1 …; at least the number of RTTs"""
    rate: Rate
    """rate of the bottleneck, both directions"""
    rtt: tuple[Span, ...]
    """base RTT, all of it on the bottleneck; or a list that the pairs cycle through: the bottleneck has the shortest,
    and each receiver's link has the rest
    """
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of the bottleneck, each direction"""
    loss: Loss | LossPattern
    """loss of data on the bottleneck"""
    access_rate: Rate | None
    """rate of each access link; absent: unlimited"""
    reverse_rate: Rate | None
    """rate of the bottleneck, receivers to senders; absent: `rate`"""
    ack_loss: Loss | LossPattern | None
    """loss of acknowledgements on the bottleneck; absent: none"""


class Exponential(Part):
    """Exponentially distributed times, independent of each other."""

    kind: Literal["exponential"]
    """`exponential`"""
    mean: Span
    """mean time"""


class Flow(Flowing):
    """Bulk transfers from one host to another; ``from`` sends the data."""

    name: str | None
    """name; absent: the congestion control's name, numbered if taken"""
    from_: str | None
    """host that sends the data; optional on a ready topology"""
    to: str | None
    """host that receives the data; optional on a ready topology"""
    cc: str | Variant | Module
    """congestion control, by Linux's name; `sawtooth cc list` shows which engine has it. Also a variant of it, `{ name
    = "bbr3", variant = "draft" }`, a module in C, `{ source = "tcp_mine.c" }`, or a policy, `{ source = "mine.npz"
    }`
    """
    count: int
    """number of connections"""
    start: Span
    """start time"""
    duration: Span | None
    """length of time it sends, including all replaced connections; absent: to the end of the run"""
    bytes: Size | None
    """data that each connection sends, instead of a duration"""
    replace: Replace | None
    """short connections: a new one starts when one ends"""
    source: Steady | OnOff | Arrivals | Udp | Requests | Pages | Video | None
    """application that decides what is sent and when; absent: there is always data to send"""
    reader: Reader | None
    """rate at which the receiving application reads; absent: it reads everything at once"""


class Fq(Part):
    """Flow queueing: flows take turns, each with a limit. The part of tc-fq that a router uses, without pacing."""

    kind: Literal["fq"]
    """`fq`"""
    limit: Queue
    """most packets that wait, all flows together"""
    flow_limit: int
    """most packets of one flow that wait"""
    quantum: Size | None
    """bytes of a flow per round; absent: two full frames"""
    initial_quantum: Size | None
    """bytes of a flow in its first round; absent: ten full frames"""
    refill_delay: Span
    """silence after which a flow gets a new quantum"""
    orphan_mask: int
    """mask of the hash bits that distinguish flows that the host only forwards"""


class FqCodel(Part):
    """FQ-CoDel, RFC 8290: flows take turns, each with CoDel."""

    kind: Literal["fq_codel"]
    """`fq_codel`"""
    limit: Queue
    """most packets that wait, all flows together"""
    target: Span
    """acceptable queue delay"""
    interval: Span
    """about the longest RTT through the queue"""
    flows: int
    """number of queues that flows are hashed to"""
    quantum: Size | None
    """bytes of a flow per round; absent: one full frame"""
    ecn: bool
    """mark packets of connections that negotiated ECN, instead of dropping them"""
    ce_threshold: Span | None
    """mark every ECN packet that waited longer than this; absent: no such threshold"""


class FqPie(Part):
    """FQ-PIE: flows take turns, each with PIE."""

    kind: Literal["fq_pie"]
    """`fq_pie`"""
    limit: Queue
    """most packets that wait, all flows together"""
    flows: int
    """number of queues that flows are hashed to"""
    target: Span
    """target queue delay"""
    tupdate: Span
    """interval between updates of the drop probability, in whole ticks of the host's kernel"""
    alpha: int
    """weight of the difference between delay and target, in sixteenths"""
    beta: int
    """weight of the change of the delay, in sixteenths"""
    quantum: Size | None
    """bytes of a flow per round; absent: one full frame"""
    bytemode: bool
    """drop small packets less often"""
    ecn: bool
    """mark packets of connections that negotiated ECN, instead of dropping them"""


class GilbertElliott(Part):
    """Loss in bursts: a good and a bad state, with a probability per packet of changing state (tc-netem's
    ``gemodel``).

    As in Linux (``loss_gilb_ell``), a packet may change the state, but is lost with the chance of the state that it
    finds; the first one finds the good state.
    """

    p: Loss
    """probability that a packet moves the link from the good state to the bad one"""
    r: Loss
    """probability that it moves the link from the bad state to the good one"""
    bad: Loss
    """loss in the bad state; tc calls it 1-h"""
    good: Loss
    """loss in the good state; tc calls it 1-k"""


class Home(Part):
    """A device on Wi-Fi behind an access line with a long queue; topology "home". Data goes to the device."""

    down: Rate
    """rate of the access line toward the home"""
    up: Rate
    """rate of the access line from the home"""
    rtt: Span
    """base RTT of the access line and the network beyond it"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of the access line, each direction; a time or bdp is relative to that direction's rate"""
    wifi: Rate
    """rate of the Wi-Fi link, each direction, with a queue of 1000 packets"""
    aggregation: Span
    """interval at which the Wi-Fi link sends waiting packets together"""
    loss: Loss | LossPattern
    """loss of data on the Wi-Fi link"""
    ack_loss: Loss | LossPattern | None
    """loss on the Wi-Fi link from the device; absent: none"""


class Host(Part):
    """Settings of a host's TCP."""

    kernel: str | None
    """name of the user-mode kernel that the engine `kernel` boots, one for all hosts; absent: Linux without additions.
    Other engines ignore it
    """
    hz: Literal[100, 250, 300, 1000]
    """timer ticks of its kernel per second: 100, 250, 300 or 1000"""
    mss: int
    """payload of a full segment, in bytes"""
    initial_window: int
    """initial congestion window, in segments"""
    receive_buffer: Size
    """maximum receive buffer, as tcp_rmem[2]"""
    adv_win_scale: int | None
    """the share of the receive buffer that is window, as tcp_adv_win_scale, by the rules of Linux before 6.6: 1 is
    half, 2 three quarters, 0 all; absent: Linux measures the share. `kernel` and `netns` need such a kernel
    """
    send_buffer: Size
    """maximum send buffer, as tcp_wmem[2]"""
    delayed_ack: bool
    """delay acknowledgements"""
    sack: bool
    """use selective acknowledgements"""
    timestamps: bool
    """use TCP timestamps, 12 bytes in each segment"""
    pacing: bool
    """pace what a congestion control asks to be paced; false: the kernel leaves that to the queue `fq`, which the host
    lacks, as Linux before 4.13. Only on `sim`, and not for agents
    """
    ecn: int
    """explicit congestion notification, as tcp_ecn: true or 1 requests and accepts it, 2 accepts it, false or 0 does
    neither; `dctcp` and `prague` always request it
    """
    ecn_fallback: bool
    """request ECN only in the first SYN, not when it is retransmitted, as tcp_ecn_fallback"""
    gro: Span | None
    """merge received segments (generic receive offload): a time, for how long the card waits for the next packet; or
    true, to merge what arrives together; false: no merging
    """
    cc: str | None
    """congestion control of the sockets that programs open; absent: the kernel's, `cubic`. Flows have their own"""
    processing: Span
    """longest time that it takes for a packet that reaches it: each takes a random one, evenly from 0, and keeps its
    place; not for packets from a link with jitter
    """
    offload: bool
    """segmentation offload (TSO, GSO, GRO): loss on a link that leaves the sending host drops whole super-packets, and
    a forwarding host queues those that reach it whole as one packet
    """


class Jitter(Part):
    """Random deviation of each packet's delay (tc-netem's ``delay TIME JITTER``), never below no delay."""

    deviation: Span
    """standard deviation; for `uniform`, the largest deviation"""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal", "table"]
    """`pareto` has a long tail; `paretonormal` is a quarter normal and three quarters pareto"""
    table: str | None
    """for distribution `table`: a file like tc-netem's `.dist`, whole numbers in 1/8192 of `deviation` with equal
    probability
    """
    correlation: Loss
    """correlation of each draw with the previous one"""
    ordered: bool
    """keep the packets in order; false: each has an independent delay, as in netem"""


class Link(Part):
    """Two hosts joined, both directions; forward is ``from`` to ``to``."""

    from_: str
    """host at one end"""
    to: str
    """host at the other end"""
    name: str | None
    """name; absent: "FROM-TO"
    """
    rate: Rate | None
    """rate; absent: unlimited, or the card's"""
    delay: Span
    """one-way propagation delay"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2 | None
    """queue; absent: "1000 packets" if there is a rate"""
    loss: Loss | LossPattern
    """loss before the queue"""
    overhead: Size
    """bytes per frame that the wire carries and Linux does not count"""
    aggregation: Span
    """interval at which waiting packets leave together, as on Wi-Fi"""
    opportunity: Size
    """bytes that leave at a time at that rate, as on cellular links"""
    changes: tuple[Change, ...] | None
    """list of tables with changes of rate, delay or loss at given times"""
    trace: str | None
    """file with Mahimahi packet-delivery times, or CSV with time, rate, delay and loss; or the name of a shipped
    trace. Instead of `rate` and `changes`
    """
    jitter: Jitter | None
    """standard deviation of the delay, as text or as a table"""
    reorder: Reorder | None
    """share of packets that overtake others, as text or as a table"""
    duplicate: Share | None
    """share of packets that are duplicated, as text or as a table"""
    corrupt: Share | None
    """share of packets with a wrong checksum, which the receiver discards, as text or as a table"""
    policer: Policer | None
    """drops packets above a rate, after the transmitter and before the delay"""
    forward: Direction
    """settings of the direction from `from` to `to`"""
    backward: Direction
    """settings of the direction from `to` to `from`"""


class Lognormal(Part):
    """Log-normal sizes."""

    kind: Literal["lognormal"]
    """`lognormal`"""
    mean: Size
    """mean size"""
    sigma: float
    """standard deviation of the natural logarithm; 0: every size is the mean"""


class LossPattern(Part):
    """Losses in a pattern, instead of a share like ``"1%"``.

    Give one of ``every``, ``packets``, ``gilbert_elliott``, and the pair ``mean`` and ``burst``. Packets of every
    kind count: data, retransmissions, acknowledgements, probes.
    """

    every: int | None
    """drop every n-th packet"""
    packets: tuple[int, ...] | None
    """drop the packets with these numbers, counted from 1; at most 100"""
    gilbert_elliott: GilbertElliott | None
    """losses in bursts, from a chain of two states"""
    mean: Loss | None
    """losses in bursts: the share of packets lost; requires `burst`"""
    burst: Burst | None
    """mean number of packets lost in a row; requires `mean`"""


class Module(Labelled):
    """A congestion control from a file: the C source of one for Linux, which engine ``sim`` compiles and runs; a
    policy of ``sawtooth.gym`` (``.npz``), or a Python file that decides (``.py``), which only ``sim`` runs. The
    scenario file's own directory is where it is looked for.
    """

    source: tuple[str, ...]
    """the C file, or several that belong together; a policy, or a Python file"""
    name: str | None
    """which one, where it registers several"""
    parameters: dict[str, int | bool | str]
    """module parameters"""


class OnOff(Part):
    """An application that alternately writes at a rate and is silent."""

    kind: Literal["on-off"]
    """`on-off`"""
    rate: Rate
    """payload rate while it writes"""
    write: Size
    """size of one write"""
    on: Span
    """time that it writes; it starts with a write"""
    off: Span
    """time that it is silent"""


class Pages(Part):
    """Web pages of several objects. The reader requests each object when a connection is free."""

    kind: Literal["pages"]
    """`pages`"""
    objects: int
    """number of objects on a page"""
    sizes: Size | Lognormal | Pareto | Cdf
    """size of an object: `20 kB`, or a table"""
    think: Span | Exponential
    """time from the last byte of a page to the next page: a time, or a table"""
    connections: int
    """parallel connections of one reader; browsers open 6 to a host"""
    keep: bool
    """use the same connections for the next page; false: each page opens new ones"""


class Pareto(Part):
    """Sizes with a long tail: a Pareto distribution cut at both ends."""

    kind: Literal["pareto"]
    """`pareto`"""
    least: Size
    """smallest size"""
    most: Size
    """largest size"""
    shape: float
    """shape parameter; the smaller, the longer the tail"""


class ParkingLot(Part):
    """Several bottlenecks in a row. One path crosses all, others cross one each; topology "parking-lot"."""

    hops: int
    """number of bottlenecks, n0 to n1, n1 to n2 …; the path from cn to dn crosses the n-th"""
    rate: Rate
    """rate of each bottleneck, both directions"""
    reverse_rate: Rate | None
    """rate of each bottleneck toward the senders; absent: `rate`"""
    rtt: Span
    """base RTT from a to b, spread evenly over the bottlenecks"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of each bottleneck, each direction"""
    loss: Loss | LossPattern
    """loss of data on the first bottleneck"""
    ack_loss: Loss | LossPattern | None
    """loss of acknowledgements on the first bottleneck; absent: none"""


class Path(Part):
    """One bottleneck between two hosts; topology "path"."""

    rate: Rate
    """rate of the bottleneck, sender to receiver"""
    reverse_rate: Rate | None
    """rate of the bottleneck, receiver to sender, for acknowledgements and reverse flows; absent: unlimited"""
    rtt: Span
    """base RTT, half in each direction"""
    queue: Queue | Pfifo | Bfifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
    """queue of the bottleneck, in each direction that has a rate; a time or bdp is relative to that direction's rate"""
    loss: Loss | LossPattern
    """loss of data, after the bottleneck"""
    ack_loss: Loss | LossPattern
    """loss of acknowledgements, before the bottleneck"""
    changes: tuple[Change, ...] | None
    """changes of the bottleneck's rate, and of delay and loss in the data direction, at given times"""
    trace: str | None
    """trace of the data direction, as for a link; its rates are the bottleneck's"""
    jitter: Jitter | None
    """standard deviation of the delay in the data direction, as text or as a table"""
    reorder: Reorder | None
    """share of packets that overtake others in the data direction, after the bottleneck"""
    duplicate: Share | None
    """share of packets duplicated, after the bottleneck"""
    corrupt: Share | None
    """share of packets with a wrong checksum, after the bottleneck"""
    policer: Policer | None
    """drops packets that leave the bottleneck above a rate"""


class Pfifo(Part):
    """First in, first out; drops what arrives at a full queue."""

    kind: Literal["pfifo"]
    """`pfifo`"""
    limit: Queue
    """most packets that wait"""


class Pie(Part):
    """PIE, RFC 8033: drops arriving packets with a probability that follows the queue delay and its change."""

    kind: Literal["pie"]
    """`pie`"""
    limit: Queue
    """most packets that wait"""
    target: Span
    """target queue delay"""
    tupdate: Span
    """interval between updates of the drop probability, in whole ticks of the host's kernel"""
    alpha: int
    """weight of the difference between delay and target, in sixteenths"""
    beta: int
    """weight of the change of the delay, in sixteenths"""
    bytemode: bool
    """drop small packets less often"""
    ecn: bool
    """mark packets of connections that negotiated ECN, instead of dropping them"""


class Policer(Part):
    """Drops packets above a rate and a burst, without a queue (tc-police)."""

    rate: Rate
    """long-term rate"""
    burst: Size
    """bytes that pass at once after silence; at least one full frame"""


class Probe(Part):
    """Small packets and their answers, like ping, through the same queues."""

    name: str | None
    """name; absent: "probe", numbered if taken"""
    from_: str | None
    """host that sends the probes; optional on a ready topology"""
    to: str | None
    """host that answers; optional on a ready topology"""
    interval: Span
    """time between two probes"""
    count: int | None
    """number of probes; absent: to the end of the run"""
    start: Span
    """time of the first probe"""


class Program(Part):
    """An unmodified program that runs on a host; engines ``kernel`` and ``netns``."""

    name: str | None
    """name in the results; absent: the host's name, numbered if taken"""
    host: str
    """host that it runs on; `server` and `client` are the two ends, where no host has that name"""
    command: str | tuple[str, ...]
    """the command: a list of words, or a text for the shell"""
    ready: str | None
    """makes it a server: servers start first, one after the other, and end with the run. When it is ready: `listening`
    (on any new port), `port 8000`, or a text that it prints
    """
    start: Span | None
    """start time; absent: 0 s, when all servers are ready"""
    directory: str | None
    """working directory; absent: that of the file"""
    environment: dict[str, str]
    """environment variables, added to `PATH`, `HOME` and `LC_ALL`"""
    stdin: str | None
    """text that it reads on standard input"""
    files: tuple[str, ...]
    """more directories that it sees, if they are below `/tmp` or `/run`; of a file, the directory that it is in"""
    collect: tuple[str, ...]
    """files to keep in the results when the run is over: names with `*` and `?`"""
    memory: Size | None
    """memory that it needs, its files included, on the engine `kernel`; the guest has the sum, and at least 2 GiB"""
    measure: dict[str, str]
    """numbers to read from its output, by column: `time_s = "stdout:/time_total"` (JSON pointer) or `"stdout:([0-9.]+)
    Mbit"` (regular expression)
    """


class Reader(Part):
    """An application that reads at a mean rate once it has accepted the connection, with or without pauses.

    What it has not read fills the receive buffer, and closes the window.
    """

    rate: Rate
    """mean payload rate; with pauses, the rate while it reads; with `whole = false`, the highest"""
    read: Size
    """size of one read; the reader sleeps until that much has arrived"""
    whole: bool
    """false: a read takes what has arrived, and the reader then sleeps for `read` / `rate`"""
    on: Span | None
    """time that it reads; it starts with a read; absent: always"""
    off: Span | None
    """time that it pauses; required with `on`"""


class Red(Part):
    """Random early detection: drops arriving packets with a probability that grows with the average queue, in bytes."""

    kind: Literal["red"]
    """`red`"""
    limit: Queue
    """most bytes that wait"""
    min: Queue | None
    """average queue below which nothing is dropped; absent: `max` / 3"""
    max: Queue | None
    """average queue from which on everything is dropped; absent: `limit` / 4"""
    avpkt: Size
    """size of an average packet, from which the weight of the average is computed"""
    burst: int | None
    """number of average packets that may arrive at once; absent: (2 `min` + `max`) / (3 `avpkt`)"""
    probability: Loss
    """drop probability at an average near `max`"""
    adaptive: bool
    """adjust the probability between 1 and 50% to keep the average halfway"""
    ecn: bool
    """mark packets of connections that negotiated ECN, instead of dropping them"""
    harddrop: bool
    """with `ecn`, drop instead of marking above `max`; without `ecn` this is always so"""


class Reorder(Part):
    """Packets without delay, which overtake all those on the way (tc-netem's ``reorder``)."""

    share: Loss
    """share of the packets"""
    gap: int
    """only every n-th packet may overtake others"""
    correlation: Loss
    """correlation of each draw with the previous one"""


class Replace(Part):
    """A new connection starts when one ends."""

    lifetime: tuple[Span, Span]
    """shortest and longest life of a connection; each draws its own, uniformly"""


class Requests(Part):
    """Responses over one connection. The client requests the next one a think time after the last byte."""

    kind: Literal["requests"]
    """`requests`"""
    sizes: Size | Lognormal | Pareto | Cdf
    """size of a response: `100 kB`, or a table"""
    think: Span | Exponential
    """time from the last byte of a response to the next request: a time, or a table"""


class Route(Part):
    """A route between two hosts, if it should not be the one with the fewest hops."""

    from_: str
    """host at the start"""
    to: str
    """host at the end"""
    via: tuple[str, ...]
    """hosts in between, in order; "link:NAME" chooses one of two links"""


class Sfq(Part):
    """Stochastic fairness queueing: hashed flows take turns; a full queue drops the last packet of the longest flow."""

    kind: Literal["sfq"]
    """`sfq`"""
    limit: Queue
    """most packets that wait, all flows together"""
    quantum: Size | None
    """bytes of a flow per round; absent: one full frame"""
    perturb: Span
    """interval at which flows are hashed again, in whole seconds; "0 s": never"""
    flows: int
    """number of queues"""
    divisor: int
    """number of hash values, a power of two"""
    depth: int
    """most packets of one queue that wait"""
    headdrop: bool
    """drop the first packet of the longest queue instead of the last"""


class Share(Part):
    """A share of the packets, chosen at random."""

    share: Loss
    """share of the packets"""
    correlation: Loss
    """correlation of each draw with the previous one"""


class Steady(Part):
    """An application that writes at a mean rate once its connection is established."""

    kind: Literal["rate"]
    """`rate`"""
    rate: Rate
    """mean payload rate"""
    write: Size
    """size of one write"""


class Tbf(Part):
    """A token bucket before the transmitter: shapes to a rate below the transmitter's, with a queue in bytes."""

    kind: Literal["tbf"]
    """`tbf`"""
    rate: Rate
    """long-term rate"""
    burst: Size
    """bytes that leave at the transmitter's rate after silence; at least one full frame"""
    latency: Span | None
    """longest time that a packet waits for tokens; instead of `limit`"""
    limit: Size | None
    """most bytes that wait; instead of `latency`"""
    peakrate: Rate | None
    """rate of a burst; absent: the transmitter's"""
    minburst: Size | None
    """bytes that leave at once at `peakrate`; absent: one full frame"""


class Udp(Part):
    """Datagrams on a schedule, without congestion control. The defaults are one side of a G.711 call."""

    kind: Literal["udp"]
    """`udp`"""
    rate: Rate
    """payload rate while it sends; the default is that of a call, 50 datagrams per second"""
    size: Size
    """payload of a datagram; the default is 20 ms of speech and the RTP header"""
    pattern: Literal["constant", "poisson", "on-off"]
    """`constant`: at equal distances; `poisson`: independently at random; `on-off`: at equal distances, with pauses"""
    on: Span | None
    """with `on-off`: time that it sends; it starts with a datagram"""
    off: Span | None
    """with `on-off`: time that it is silent"""


class Variant(Labelled):
    """A congestion control as another text than Linux's has it: ``draft`` is draft-ietf-ccwg-bbr, ``ecn`` BBR v3 with
    its tree's low-latency ECN, ``abe`` RFC 8511, by which an echoed mark takes less of the window than a loss;
    engine ``sim``.
    """

    name: str
    """the congestion control"""
    variant: str
    """its variant; `sawtooth cc show NAME` lists them"""


class Video(Part):
    """Segments of a video. The player requests the next one when its playback buffer has room."""

    kind: Literal["video"]
    """`video`"""
    rates: tuple[Rate, ...]
    """list of the video's rates, lowest first; absent: Netflix's ten rates of 2015, 235 kbit/s to 5.8 Mbit/s"""
    segment: Span
    """playing time of a segment"""
    buffer: Span
    """most video held in the playback buffer, as playing time"""
    rule: Literal["buffer", "throughput"]
    """choice of the next rate: `buffer` is BBA-0 (Huang and others 2014); `throughput` takes the highest rate within
    90% of the mean of the last four segments
    """


class Scenario(Part):
    """One experiment: a network, its flows and how long to watch them."""

    name: str
    """name of the results; absent: the file's name without .toml"""
    topology: Literal["path", "chain", "chain-asymmetric", "dumbbell", "parking-lot", "home", "custom"]
    """path, chain, chain-asymmetric, dumbbell, parking-lot, home or custom"""
    duration: Span
    """length of the run"""
    warmup: Span
    """first part of the run that the statistics discard; the tables keep it. 0 s: slow start counts"""
    interval: Span
    """sampling interval of the tables"""
    seed: int
    """seed for every random generator"""
    traffic: Literal["iperf3", "native"]
    """traffic source on the engines kernel and netns: iperf3, or sawtooth's lighter source (native); other engines
    ignore it
    """
    ip: Literal[4, 6] | None
    """IP version; 6 makes every frame 20 bytes longer; absent: 4"""
    date: str | None
    """what the clock of programs shows when the run starts, in UTC, on the engine kernel; the simulator's clock does
    not change; absent: 2026-01-01
    """
    queue_delays: bool
    """also record percentiles of the queue delay of tail-drop queues, on the engine sim; no other result changes, and
    runs take about 2% longer. Other engines ignore it
    """
    fast: Loss | None
    """on the engine sim, a run that is steady repeats what it measured until its end, once half of the 95% interval of
    each flow's goodput is at most this share; 0%: packets that repeat others exactly are skipped, and no result
    changes. Other engines ignore it. absent: every packet is simulated
    """
    path: Path | None
    """network of topology "path"
    """
    chain: Chain | None
    """network of topologies "chain" and "chain-asymmetric"
    """
    dumbbell: Dumbbell | None
    """network of topology "dumbbell"
    """
    parking_lot: ParkingLot | None
    """network of topology "parking-lot"
    """
    home: Home | None
    """network of topology "home"
    """
    host: Host
    """settings of every host"""
    hosts: dict[str, Host]
    """settings of single hosts; in a custom topology, all hosts"""
    cards: dict[str, Card]
    """network cards of topology "custom", by host"""
    links: tuple[Link, ...]
    """links of topology "custom"
    """
    routes: tuple[Route, ...]
    """routes of topology "custom"; absent: fewest hops"""
    flows: tuple[Flow, ...]
    """flows; absent: one cubic flow from end to end, or none if there are programs"""
    probes: tuple[Probe, ...]
    """probes; absent: none"""
    programs: tuple[Program, ...]
    """unmodified programs, on the engines `kernel` and `netns`; absent: none"""
