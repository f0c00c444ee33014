//! Tables of topologies and hosts.

use crate::fields::counted;
use crate::jitter::Jitter;
use crate::loss::LossModel;
use crate::policer::Policer;
use crate::problem::{FieldProblems, below};
use crate::queue_model::QueueModel;
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Rate, Size, Span};
use crate::value::Value;
use crate::varying::{Change, Reorder, Share, TextOr};
use crate::view::View;

pub const MAX_CONNECTIONS: u64 = 100_000;
pub const MAX_SAMPLES: u64 = 10_000_000;
const DELAY: Rule = Rule::Between("0 s", "3600 s");
const AGGREGATION: Rule = Rule::Between("0 s", "1 s");
const OVERHEAD: Rule = Rule::Between("0 bytes", "1000 bytes");
const OPPORTUNITY: Rule = Rule::Between("0 bytes", "1 MB");
const BUFFER: Rule = Rule::Between("4 KiB", "1 GiB");
pub(crate) const NAME: Rule = Rule::Name(40);

table! {
    /// One bottleneck between two hosts; topology "path".
    Path {
        rate: Rate, Any, Text("100 Mbit/s"), "rate of the bottleneck, sender to receiver";
        reverse_rate: Option<Rate>, Any, Nothing,
            "rate of the bottleneck, receiver to sender, for acknowledgements and reverse flows; absent: unlimited";
        rtt: Span, DELAY, Text("20 ms"), "base RTT, half in each direction";
        queue: QueueModel, Any, Text("1 bdp"),
            "queue of the bottleneck, in each direction that has a rate; a time or bdp is relative to that direction's rate";
        loss: LossModel, Any, Text("0%"), "loss of data, after the bottleneck";
        ack_loss: LossModel, Any, Text("0%"), "loss of acknowledgements, before the bottleneck";
        changes: Option<Vec<Change>>, Any, Nothing,
            "changes of the bottleneck's rate, and of delay and loss in the data direction, at given times";
        trace: Option<String>, Any, Nothing,
            "trace of the data direction, as for a link; its rates are the bottleneck's";
        jitter: Option<TextOr<Jitter>>, Any, Nothing,
            "standard deviation of the delay in the data direction, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing,
            "share of packets that overtake others in the data direction, after the bottleneck";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share of packets duplicated, after the bottleneck";
        corrupt: Option<TextOr<Share>>, Any, Nothing, "share of packets with a wrong checksum, after the bottleneck";
        policer: Option<Policer>, Any, Nothing, "drops packets that leave the bottleneck above a rate";
    }
}

table! {
    /// Five hosts in a row, one network card each; topologies "chain" and "chain-asymmetric".
    Chain {
        rate: Rate, Any, Text("1 Gbit/s"), "rate of each host's card";
        rtt: Span, DELAY, Text("0.4 ms"),
            "round-trip propagation time from h1 to h5; full segments add 50 µs on idle 1 Gbit/s cards";
        queue: QueueModel, Any, Text("1000 packets"), "queue of each host's card";
        loss: LossModel, Any, Text("0%"), "loss on the link from h3 to h4";
        reverse_rate: Option<Rate>, Any, Nothing,
            "rate of a second card per host, for packets toward h1; absent: one card for both directions";
        ack_loss: Option<LossModel>, Any, Nothing,
            "loss in the reverse direction, on the link from h4 to h3 or from h5 to h1; absent: none";
    }
}

/// One length of time, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(pub Vec<Span>);

impl Field for Times {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Times, FieldProblems> {
        let one;
        let list = match given {
            Value::List(list) => list.as_slice(),
            other => {
                one = [other.clone()];
                one.as_slice()
            }
        };
        let (mut read, mut problems) = (Vec::with_capacity(list.len()), Vec::new());
        for (index, one) in list.iter().enumerate() {
            match Span::read(one, rule, at) {
                Ok(time) => read.push(time),
                Err(found) => problems.extend(below(&index.to_string(), found)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        counted(read.len(), 1, 10_000)?;
        Ok(Times(read))
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [only] => only.write(),
            several => Value::List(several.iter().map(Span::write).collect()),
        }
    }

    fn view(&self) -> View {
        self.0.view()
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let one = Span::schema(rule, definitions);
        schema::any([one.clone(), schema::list(one, 1, Some(10_000))])
    }
}

table! {
    /// Pairs of hosts around one bottleneck; topology "dumbbell".
    Dumbbell {
        pairs: u64, Within(1, 10_000), Whole(1),
            "number of senders s1 … and receivers r1 …; at least the number of RTTs";
        rate: Rate, Any, Text("100 Mbit/s"), "rate of the bottleneck, both directions";
        rtt: Times, DELAY, Text("20 ms"),
            "base RTT, all of it on the bottleneck; or a list that the pairs cycle through: the bottleneck has the shortest, and each receiver's link has the rest";
        queue: QueueModel, Any, Text("1 bdp"), "queue of the bottleneck, each direction";
        loss: LossModel, Any, Text("0%"), "loss of data on the bottleneck";
        access_rate: Option<Rate>, Any, Nothing, "rate of each access link; absent: unlimited";
        reverse_rate: Option<Rate>, Any, Nothing, "rate of the bottleneck, receivers to senders; absent: `rate`";
        ack_loss: Option<LossModel>, Any, Nothing, "loss of acknowledgements on the bottleneck; absent: none";
    }
}

impl Dumbbell {
    /// Number of pairs.
    pub fn number(&self) -> usize {
        (self.pairs as usize).max(self.rtt.0.len())
    }
}

table! {
    /// Several bottlenecks in a row. One path crosses all, others cross one each; topology "parking-lot".
    ParkingLot {
        hops: u64, Within(1, 100), Whole(3),
            "number of bottlenecks, n0 to n1, n1 to n2 …; the path from cn to dn crosses the n-th";
        rate: Rate, Any, Text("100 Mbit/s"), "rate of each bottleneck, both directions";
        reverse_rate: Option<Rate>, Any, Nothing, "rate of each bottleneck toward the senders; absent: `rate`";
        rtt: Span, DELAY, Text("60 ms"), "base RTT from a to b, spread evenly over the bottlenecks";
        queue: QueueModel, Any, Text("1 bdp"), "queue of each bottleneck, each direction";
        loss: LossModel, Any, Text("0%"), "loss of data on the first bottleneck";
        ack_loss: Option<LossModel>, Any, Nothing, "loss of acknowledgements on the first bottleneck; absent: none";
    }
}

table! {
    /// A device on Wi-Fi behind an access line with a long queue; topology "home". Data goes to the device.
    Home {
        down: Rate, Any, Text("50 Mbit/s"), "rate of the access line toward the home";
        up: Rate, Any, Text("10 Mbit/s"), "rate of the access line from the home";
        rtt: Span, DELAY, Text("20 ms"), "base RTT of the access line and the network beyond it";
        queue: QueueModel, Any, Text("250 ms"),
            "queue of the access line, each direction; a time or bdp is relative to that direction's rate";
        wifi: Rate, Any, Text("150 Mbit/s"), "rate of the Wi-Fi link, each direction, with a queue of 1000 packets";
        aggregation: Span, AGGREGATION, Text("2 ms"), "interval at which the Wi-Fi link sends waiting packets together";
        loss: LossModel, Any, Text("0%"), "loss of data on the Wi-Fi link";
        ack_loss: Option<LossModel>, Any, Nothing, "loss on the Wi-Fi link from the device; absent: none";
    }
}

/// `tcp_ecn`: a number, or on/off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn(pub u8);

impl Field for Ecn {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Ecn, FieldProblems> {
        let number = match given {
            Value::Bool(flag) => Value::Whole((*flag).into()),
            other => other.clone(),
        };
        u64::read(&number, &Rule::Within(0, 2), at).map(|number| Ecn(number as u8))
    }

    fn write(&self) -> Value {
        Value::Whole(self.0.into())
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::object([
            ("type", schema::texts(&["integer", "boolean"])),
            ("minimum", Value::Whole(0)),
            ("maximum", Value::Whole(2)),
        ])
    }
}

/// How long a card waits for more segments to merge. `None`: no merging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merging(pub Option<Span>);

impl Field for Merging {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Merging, FieldProblems> {
        match given {
            Value::Bool(true) => Ok(Merging(Some(Span { ns: 0 }))),
            Value::Bool(false) | Value::Null => Ok(Merging(None)),
            other => Span::read(other, rule, at).map(|wait| Merging(Some(wait))),
        }
    }

    fn write(&self) -> Value {
        match self.0 {
            Some(wait) if wait.ns > 0 => wait.write(),
            Some(_) => Value::Bool(true),
            None => Value::Null,
        }
    }

    fn given(&self) -> Value {
        if self.0.is_none() { Value::Bool(false) } else { self.write() }
    }

    fn view(&self) -> View {
        self.0.view()
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([schema::of_type("boolean"), Span::schema(rule, definitions)])
    }
}

table! {
    /// Settings of a host's TCP.
    Host {
        kernel: Option<String>, Kernel, Nothing,
            "name of the user-mode kernel that the engine `kernel` boots, one for all hosts; absent: Linux without additions. Other engines ignore it";
        hz: u64, OneOfNumbers(&[100, 250, 300, 1000]), Whole(250),
            "timer ticks of its kernel per second: 100, 250, 300 or 1000";
        mss: u64, Within(48, 65_400), Whole(1448), "payload of a full segment, in bytes";
        initial_window: u64, Within(1, 1000), Whole(10), "initial congestion window, in segments";
        receive_buffer: Size, BUFFER, Text("64 MiB"), "maximum receive buffer, as tcp_rmem[2]";
        adv_win_scale: Option<u64>, Within(0, 31), Nothing,
            "the share of the receive buffer that is window, as tcp_adv_win_scale, by the rules of Linux before 6.6: 1 is half, 2 three quarters, 0 all; absent: Linux measures the share. `kernel` and `netns` need such a kernel";
        send_buffer: Size, BUFFER, Text("64 MiB"), "maximum send buffer, as tcp_wmem[2]";
        delayed_ack: bool, Any, Flag(true), "delay acknowledgements";
        sack: bool, Any, Flag(true), "use selective acknowledgements";
        timestamps: bool, Any, Flag(true), "use TCP timestamps, 12 bytes in each segment";
        pacing: bool, Any, Flag(true),
            "pace what a congestion control asks to be paced; false: the kernel leaves that to the queue `fq`, which the host lacks, as Linux before 4.13. Only on `sim`, and not for agents";
        ecn: Ecn, Any, Whole(0),
            "explicit congestion notification, as tcp_ecn: true or 1 requests and accepts it, 2 accepts it, false or 0 does neither; `dctcp` and `prague` always request it";
        ecn_fallback: bool, Any, Flag(true),
            "request ECN only in the first SYN, not when it is retransmitted, as tcp_ecn_fallback";
        gro: Merging, Between("0 s", "10 ms"), Nothing,
            "merge received segments (generic receive offload): a time, for how long the card waits for the next packet; or true, to merge what arrives together; false: no merging";
        cc: Option<String>, NAME, Nothing,
            "congestion control of the sockets that programs open; absent: the kernel's, `cubic`. Flows have their own";
        processing: Span, Between("0 s", "10 ms"), Text("0 s"),
            "longest time that it takes for a packet that reaches it: each takes a random one, evenly from 0, and keeps its place; not for packets from a link with jitter";
        offload: bool, Any, Flag(false),
            "segmentation offload (TSO, GSO, GRO): loss on a link that leaves the sending host drops whole super-packets, and a forwarding host queues those that reach it whole as one packet";
    }
}

impl Host {
    /// These settings, overridden by those that `own` gives.
    pub fn with(&self, own: Option<&Host>) -> Host {
        let mut laid = self.clone();
        let Some(own) = own else { return laid };
        macro_rules! lay {
            ($($field:ident),+) => {
                $( if crate::table::Declare::gives(own, stringify!($field)) { laid.$field = own.$field.clone(); } )+
            };
        }
        lay!(
            kernel,
            hz,
            mss,
            initial_window,
            receive_buffer,
            adv_win_scale,
            send_buffer,
            delayed_ack,
            sack,
            timestamps
        );
        lay!(pacing, ecn, ecn_fallback, gro, cc, processing, offload);
        laid
    }
}

table! {
    /// A physical transmitter that all links leaving a host share.
    Card {
        rate: Rate, Any, Needed, "rate of the card";
        queue: QueueModel, Any, Text("1000 packets"), "queue of the card";
    }
}

table! {
    /// Settings of one direction of a link, which override the link's.
    Direction {
        rate: Option<Rate>, Any, Nothing, "rate of the transmitter";
        delay: Option<Span>, DELAY, Nothing, "one-way propagation delay";
        queue: Option<QueueModel>, Any, Nothing, "queue before the transmitter";
        loss: Option<LossModel>, Any, Nothing, "loss before the queue";
        overhead: Option<Size>, OVERHEAD, Nothing, "bytes per frame that the wire carries and Linux does not count";
        aggregation: Option<Span>, AGGREGATION, Nothing, "interval at which waiting packets leave together";
        opportunity: Option<Size>, OPPORTUNITY, Nothing, "bytes that leave at a time at that rate";
        changes: Option<Vec<Change>>, Any, Nothing, "list of tables with changes of rate, delay or loss at given times";
        trace: Option<String>, Any, Nothing,
            "file with Mahimahi packet-delivery times, or CSV with time, rate, delay and loss; or the name of a shipped trace. Instead of `rate` and `changes`";
        jitter: Option<TextOr<Jitter>>, Any, Nothing, "standard deviation of the delay, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing, "share of packets that overtake others, as text or as a table";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share of packets that are duplicated, as text or as a table";
        corrupt: Option<TextOr<Share>>, Any, Nothing,
            "share of packets with a wrong checksum, which the receiver discards, as text or as a table";
        policer: Option<Policer>, Any, Nothing,
            "drops packets above a rate, after the transmitter and before the delay";
    }
}

table! {
    /// Two hosts joined, both directions; forward is `from` to `to`.
    Link {
        "from" from_: String, NAME, Needed, "host at one end";
        to: String, NAME, Needed, "host at the other end";
        name: Option<String>, NAME, Nothing, "name; absent: \"FROM-TO\"";
        rate: Option<Rate>, Any, Nothing, "rate; absent: unlimited, or the card's";
        delay: Span, DELAY, Text("0 s"), "one-way propagation delay";
        queue: Option<QueueModel>, Any, Nothing, "queue; absent: \"1000 packets\" if there is a rate";
        loss: LossModel, Any, Text("0%"), "loss before the queue";
        overhead: Size, OVERHEAD, Text("0 bytes"), "bytes per frame that the wire carries and Linux does not count";
        aggregation: Span, AGGREGATION, Text("0 s"), "interval at which waiting packets leave together, as on Wi-Fi";
        opportunity: Size, OPPORTUNITY, Text("0 bytes"),
            "bytes that leave at a time at that rate, as on cellular links";
        changes: Option<Vec<Change>>, Any, Nothing, "list of tables with changes of rate, delay or loss at given times";
        trace: Option<String>, Any, Nothing,
            "file with Mahimahi packet-delivery times, or CSV with time, rate, delay and loss; or the name of a shipped trace. Instead of `rate` and `changes`";
        jitter: Option<TextOr<Jitter>>, Any, Nothing, "standard deviation of the delay, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing, "share of packets that overtake others, as text or as a table";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share of packets that are duplicated, as text or as a table";
        corrupt: Option<TextOr<Share>>, Any, Nothing,
            "share of packets with a wrong checksum, which the receiver discards, as text or as a table";
        policer: Option<Policer>, Any, Nothing,
            "drops packets above a rate, after the transmitter and before the delay";
        forward: Direction, Any, EmptyTable, "settings of the direction from `from` to `to`";
        backward: Direction, Any, EmptyTable, "settings of the direction from `to` to `from`";
    }
}

impl Link {
    /// Its name, or "FROM-TO".
    pub fn called(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}-{}", self.from_, self.to))
    }
}

table! {
    /// A route between two hosts, if it should not be the one with the fewest hops.
    Route {
        "from" from_: String, NAME, Needed, "host at the start";
        to: String, NAME, Needed, "host at the end";
        via: Vec<String>, Via, EmptyList, "hosts in between, in order; \"link:NAME\" chooses one of two links";
    }
}
