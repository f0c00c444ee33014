//! Tables of topologies and hosts.

use crate::jitter::Jitter;
use crate::loss::LossModel;
use crate::policer::Policer;
use crate::problem::{Wrong, below};
use crate::queue::QueueModel;
use crate::table::{At, Field, Rule, counted, table};
use crate::units::{Rate, Size, Span};
use crate::value::Value;
use crate::varying::{Change, Reorder, Share, TextOr};

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
        rate: Rate, Any, Text("100 Mbit/s"), "of the bottleneck, sender to receiver";
        reverse_rate: Option<Rate>, Any, Nothing,
            "of the bottleneck, receiver to sender: of acknowledgements and reverse flows; absent: unlimited";
        rtt: Span, DELAY, Text("20 ms"), "base round-trip time, half each way";
        queue: QueueModel, Any, Text("1 bdp"),
            "of the bottleneck, each direction that has a rate; a time or bdp is of that direction's rate";
        loss: LossModel, Any, Text("0%"), "in the direction of the data, after the bottleneck";
        ack_loss: LossModel, Any, Text("0%"), "in the direction of the acknowledgements, before the bottleneck";
        changes: Option<Vec<Change>>, Any, Nothing,
            "other rates of the bottleneck, delays and losses of the way out, from given times on";
        trace: Option<String>, Any, Nothing, "of the way out, as of a link: its rates are the bottleneck's";
        jitter: Option<TextOr<Jitter>>, Any, Nothing, "deviation of the way out's delay, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing, "share that overtakes on the way out, after the bottleneck";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share that comes twice, after the bottleneck";
        corrupt: Option<TextOr<Share>>, Any, Nothing, "share with a wrong checksum, after the bottleneck";
        policer: Option<Policer>, Any, Nothing, "drops what leaves the bottleneck faster than a rate";
    }
}

table! {
    /// Five hosts in a row, one network card each; topologies "chain" and "chain-asymmetric".
    Chain {
        rate: Rate, Any, Text("1 Gbit/s"), "of each host's card";
        rtt: Span, DELAY, Text("0.4 ms"),
            "round-trip propagation time from h1 to h5 and back; frames add 50 µs on idle 1 Gbit/s cards";
        queue: QueueModel, Any, Text("1000 packets"), "of each host's card";
        loss: LossModel, Any, Text("0%"), "on the link from h3 to h4";
        reverse_rate: Option<Rate>, Any, Nothing,
            "of each host's card towards h1, another one then; absent: one card both ways";
        ack_loss: Option<LossModel>, Any, Nothing,
            "on the way back: the link from h4 to h3, or from h5 to h1; absent: none";
    }
}

/// One length of time, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(pub Vec<Span>);

impl Field for Times {
    fn read(given: &Value, _: &Rule, at: At) -> Result<Times, Wrong> {
        let one;
        let list = match given {
            Value::List(list) => list.as_slice(),
            other => {
                one = [other.clone()];
                one.as_slice()
            }
        };
        let (mut read, mut wrong) = (Vec::with_capacity(list.len()), Vec::new());
        for (place, one) in list.iter().enumerate() {
            match Span::read(one, &DELAY, at) {
                Ok(time) => read.push(time),
                Err(found) => wrong.extend(below(&place.to_string(), found)),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
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
}

table! {
    /// Pairs of hosts around one bottleneck; topology "dumbbell".
    Dumbbell {
        pairs: u64, Within(1, 10_000), Whole(1), "senders s1 … and receivers r1 …; at least as many as RTTs";
        rate: Rate, Any, Text("100 Mbit/s"), "of the bottleneck, both directions";
        rtt: Times, Any, Text("20 ms"),
            "base round-trip time, all of it on the bottleneck link; or a list, of which the pairs take one in turn: the shortest is on the bottleneck link, what a pair has more on its receiver's";
        queue: QueueModel, Any, Text("1 bdp"), "of the bottleneck, each direction";
        loss: LossModel, Any, Text("0%"), "on the bottleneck, in the direction of the data";
        access_rate: Option<Rate>, Any, Nothing, "of each access link; absent: unlimited";
        reverse_rate: Option<Rate>, Any, Nothing, "of the bottleneck, receivers to senders; absent: `rate`";
        ack_loss: Option<LossModel>, Any, Nothing,
            "on the bottleneck, in the direction of the acknowledgements; absent: none";
    }
}

impl Dumbbell {
    /// Of pairs.
    pub fn number(&self) -> usize {
        (self.pairs as usize).max(self.rtt.0.len())
    }
}

table! {
    /// Bottlenecks in a row, which one path crosses and others one each; topology "parking-lot".
    ParkingLot {
        hops: u64, Within(1, 100), Whole(3),
            "bottlenecks, from n0 to n1, n1 to n2 …; the n-th is crossed from cn to dn";
        rate: Rate, Any, Text("100 Mbit/s"), "of each bottleneck, both directions";
        reverse_rate: Option<Rate>, Any, Nothing, "of each bottleneck, towards the senders; absent: `rate`";
        rtt: Span, DELAY, Text("60 ms"), "base round-trip time from a to b, the same share on each";
        queue: QueueModel, Any, Text("1 bdp"), "of each bottleneck, each direction";
        loss: LossModel, Any, Text("0%"), "on the first bottleneck, in the direction of the data";
        ack_loss: Option<LossModel>, Any, Nothing,
            "on the first bottleneck, in the direction of the acknowledgements; absent: none";
    }
}

table! {
    /// A device on Wi-Fi, an access line with a long queue, a server; topology "home". Data goes to the device.
    Home {
        down: Rate, Any, Text("50 Mbit/s"), "of the access line, to the home";
        up: Rate, Any, Text("10 Mbit/s"), "of the access line, from the home";
        rtt: Span, DELAY, Text("20 ms"), "base round-trip time of the access line and beyond";
        queue: QueueModel, Any, Text("250 ms"),
            "of the access line, each direction; a time or bdp is of that direction's rate";
        wifi: Rate, Any, Text("150 Mbit/s"), "of the Wi-Fi, each direction, with 1000 packets of queue";
        aggregation: Span, AGGREGATION, Text("2 ms"), "of the Wi-Fi: packets leave together, so far apart";
        loss: LossModel, Any, Text("0%"), "on the Wi-Fi, in the direction of the data";
        ack_loss: Option<LossModel>, Any, Nothing, "on the Wi-Fi, from the device; absent: none";
    }
}

/// `tcp_ecn`: a number, or whether it is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ecn(pub u8);

impl Field for Ecn {
    fn read(given: &Value, _: &Rule, at: At) -> Result<Ecn, Wrong> {
        let number = match given {
            Value::Bool(flag) => Value::Whole((*flag).into()),
            other => other.clone(),
        };
        u64::read(&number, &Rule::Within(0, 2), at).map(|number| Ecn(number as u8))
    }

    fn write(&self) -> Value {
        Value::Whole(self.0.into())
    }
}

/// How long a card waits for more to merge. `None`: it merges nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Merging(pub Option<Span>);

impl Field for Merging {
    fn read(given: &Value, _: &Rule, at: At) -> Result<Merging, Wrong> {
        match given {
            Value::Bool(true) => Ok(Merging(Some(Span { ns: 0 }))),
            Value::Bool(false) | Value::Null => Ok(Merging(None)),
            other => Span::read(other, &Rule::Between("0 s", "10 ms"), at).map(|wait| Merging(Some(wait))),
        }
    }

    fn write(&self) -> Value {
        match self.0 {
            Some(wait) if wait.ns > 0 => wait.write(),
            wait => Value::Bool(wait.is_some()),
        }
    }
}

table! {
    /// Settings of a host's TCP.
    Host {
        kernel: Option<String>, NAME, Nothing,
            "which kernel the engine `kernel` boots, by the name that it was built with, one for all hosts; absent: Linux without additions. The others have no such choice and ignore it";
        hz: u64, OneOfNumbers(&[100, 250, 300, 1000]), Whole(250),
            "timer tick of its kernel: 100, 250, 300 or 1000";
        mss: u64, Within(48, 65_400), Whole(1448), "payload bytes of a full segment";
        initial_window: u64, Within(1, 1000), Whole(10), "segments";
        receive_buffer: Size, BUFFER, Text("64 MiB"), "maximum, as tcp_rmem[2]";
        send_buffer: Size, BUFFER, Text("64 MiB"), "maximum, as tcp_wmem[2]";
        delayed_ack: bool, Any, Flag(true), "whether the receiver delays acknowledgements";
        sack: bool, Any, Flag(true), "selective acknowledgements";
        timestamps: bool, Any, Flag(true), "12 bytes of TCP option in each segment";
        ecn: Ecn, Any, Whole(0),
            "explicit congestion notification, as tcp_ecn: true or 1 asks for it and agrees, 2 agrees, false or 0 neither; `dctcp` and `prague` ask by themselves";
        ecn_fallback: bool, Any, Flag(true), "asks with the first SYN only, as tcp_ecn_fallback";
        gro: Merging, Any, Nothing,
            "its cards merge segments that they receive (generic receive offload): a time, for which a card waits for more since the last one, or true: what comes at once; false: none";
        offload: bool, Any, Flag(false),
            "segmentation offload: loss on a link that leaves the sending host drops whole super-packets";
    }
}

impl Host {
    /// These settings with what `own` gives laid over them.
    pub fn with(&self, own: Option<&Host>) -> Host {
        let mut laid = self.clone();
        let Some(own) = own else { return laid };
        macro_rules! lay {
            ($($field:ident),+) => {
                $( if crate::table::Declare::gives(own, stringify!($field)) { laid.$field = own.$field.clone(); } )+
            };
        }
        lay!(kernel, hz, mss, initial_window, receive_buffer, send_buffer, delayed_ack, sack, timestamps);
        lay!(ecn, ecn_fallback, gro, offload);
        laid
    }
}

table! {
    /// A physical transmitter that all links leaving a host share.
    Card {
        rate: Rate, Any, Needed, "of the card";
        queue: QueueModel, Any, Text("1000 packets"), "of the card";
    }
}

table! {
    /// What one direction of a link does otherwise than the link says.
    Direction {
        rate: Option<Rate>, Any, Nothing, "of the transmitter";
        delay: Option<Span>, DELAY, Nothing, "propagation";
        queue: Option<QueueModel>, Any, Nothing, "before the transmitter";
        loss: Option<LossModel>, Any, Nothing, "before the queue";
        overhead: Option<Size>, OVERHEAD, Nothing, "bytes a frame that the wire carries and Linux does not count";
        aggregation: Option<Span>, AGGREGATION, Nothing, "packets leave together, so far apart";
        opportunity: Option<Size>, OPPORTUNITY, Nothing, "the rate is so many bytes at a time";
        changes: Option<Vec<Change>>, Any, Nothing,
            "other rates, delays, losses from given times on: a list of tables";
        trace: Option<String>, Any, Nothing,
            "a file of Mahimahi's packet-delivery times, or CSV of time, rate, delay, loss: instead of those; or the name of one that is shipped";
        jitter: Option<TextOr<Jitter>>, Any, Nothing, "deviation of the delay, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing, "share of packets that overtake, as text or as a table";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share of packets that come twice, as text or as a table";
        corrupt: Option<TextOr<Share>>, Any, Nothing,
            "share of packets that nobody takes, since their checksum is wrong, as text or as a table";
        policer: Option<Policer>, Any, Nothing,
            "drops what comes faster than a rate, after the transmitter, before the delay";
    }
}

table! {
    /// Two hosts joined, both directions; forward is `from` to `to`.
    Link {
        "from" from_: String, NAME, Needed, "a host";
        to: String, NAME, Needed, "a host";
        name: Option<String>, NAME, Nothing, "absent: \"FROM-TO\"";
        rate: Option<Rate>, Any, Nothing, "absent: unlimited, or the card's";
        delay: Span, DELAY, Text("0 s"), "propagation, one way";
        queue: Option<QueueModel>, Any, Nothing, "absent: \"1000 packets\" where there is a rate";
        loss: LossModel, Any, Text("0%"), "before the queue";
        overhead: Size, OVERHEAD, Text("0 bytes"), "bytes a frame that the wire carries and Linux does not count";
        aggregation: Span, AGGREGATION, Text("0 s"), "packets leave together, so far apart, as on Wi-Fi";
        opportunity: Size, OPPORTUNITY, Text("0 bytes"),
            "the rate is so many bytes at a time, as of cellular lines";
        changes: Option<Vec<Change>>, Any, Nothing,
            "other rates, delays, losses from given times on: a list of tables";
        trace: Option<String>, Any, Nothing,
            "a file of Mahimahi's packet-delivery times, or CSV of time, rate, delay, loss: instead of those; or the name of one that is shipped";
        jitter: Option<TextOr<Jitter>>, Any, Nothing, "deviation of the delay, as text or as a table";
        reorder: Option<TextOr<Reorder>>, Any, Nothing, "share of packets that overtake, as text or as a table";
        duplicate: Option<TextOr<Share>>, Any, Nothing, "share of packets that come twice, as text or as a table";
        corrupt: Option<TextOr<Share>>, Any, Nothing,
            "share of packets that nobody takes, since their checksum is wrong, as text or as a table";
        policer: Option<Policer>, Any, Nothing,
            "drops what comes faster than a rate, after the transmitter, before the delay";
        forward: Direction, Any, EmptyTable, "what differs from `from` to `to`";
        backward: Direction, Any, EmptyTable, "what differs from `to` to `from`";
    }
}

impl Link {
    /// Its name, or "FROM-TO".
    pub fn called(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}-{}", self.from_, self.to))
    }
}

table! {
    /// The way that packets from one host to another take, when it is not the one with the fewest hops.
    Route {
        "from" from_: String, NAME, Needed, "a host";
        to: String, NAME, Needed, "a host";
        via: Vec<String>, Via, EmptyList, "the hosts between, in order; \"link:NAME\" for one of two links";
    }
}
