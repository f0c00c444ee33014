//! What there is to know of each congestion control: one record for each of Linux's names, read by lists, figures,
//! messages and documentation. Facts are of Linux 6.12, with the defaults of module parameters.

use super::Algorithm;

/// A congestion control, by Linux's name.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub name: &'static str,
    /// Its name in figures and tables; empty: `name`.
    pub label: &'static str,
    pub title: &'static str,
    /// How it changes its window, in a sentence or two.
    pub law: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Parameters of Linux's module, with their defaults; empty: none.
    pub parameters: &'static str,
    /// Its color in every figure. None: figures choose one by position.
    pub colour: Option<&'static str>,
    /// Mainline Linux lacks it; only patched kernels have it.
    pub patched: bool,
    /// It slows down for each loss, whatever the cause, so that losses on the path can limit a flow.
    pub takes_losses_for_congestion: bool,
}

const PLAIN: Record = Record {
    name: "",
    label: "",
    title: "",
    law: "",
    source: "",
    parameters: "",
    colour: None,
    patched: false,
    takes_losses_for_congestion: false,
};

/// All, by name.
pub const RECORDS: &[Record] = &[
    Record {
        name: "bbr",
        label: "BBR",
        title: "BBR version 1",
        law: "Paces at the highest delivery rate of the last ten round trips, sometimes 25% above or below it. The \
            window is twice that rate times the smallest RTT of ten seconds. Losses do not change its estimate.",
        source: "Cardwell et al., BBR, ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
        colour: Some("#d55e00"),
        ..PLAIN
    },
    Record {
        name: "bbr3",
        label: "BBRv3",
        title: "BBR version 3",
        law: "Version 1 with a limit learned from losses. Above 2% loss in a round trip it lowers the limit on data in \
            flight, and probes for more only every few seconds.",
        source: "draft-ietf-ccwg-bbr; a patch that some distributions ship; not in mainline Linux",
        colour: Some("#e69f00"),
        patched: true,
        ..PLAIN
    },
    Record {
        name: "bic",
        title: "BIC",
        law: "After a loss the window falls to 80%. It then searches the window at the loss by halving the distance, \
            by at most 16 segments per round trip, and grows faster and faster beyond it.",
        source: "Xu, Harfoush, Rhee, Binary Increase Congestion Control, INFOCOM 2004",
        parameters: "beta 819/1024, fast_convergence 1, max_increment 16, low_window 14, smooth_part 20, initial_ssthresh 0",
        ..PLAIN
    },
    Record {
        name: "cdg",
        title: "CDG",
        law: "Grows like Reno and backs off to 70% at random; the faster the RTT grows, the likelier. Up to a few \
            losses in a row without a growing RTT do not count as congestion.",
        source: "Hayes, Armitage, Revisiting TCP Congestion Control Using Delay Gradients, IFIP Networking 2011",
        parameters: "window 8, backoff_beta 724/1024, backoff_factor 42, use_ineff 5, use_shadow 1, use_tolerance 0, \
            hystart_detect 3",
        ..PLAIN
    },
    Record {
        name: "cubic",
        label: "CUBIC",
        title: "CUBIC",
        law: "After a loss the window falls to 70%. It then follows a cubic function of time, flat near the window at \
            the loss and never below Reno's window. Linux's default.",
        source: "RFC 9438; HyStart: Ha, Rhee, Taming the Elephants, 2008",
        parameters: "beta 717/1024, bic_scale 41, fast_convergence 1, tcp_friendliness 1, hystart 1, hystart_detect 3, \
            hystart_low_window 16, hystart_ack_delta_us 2000, initial_ssthresh 0",
        colour: Some("#0072b2"),
        takes_losses_for_congestion: true,
        ..PLAIN
    },
    Record {
        name: "dctcp",
        label: "DCTCP",
        title: "DCTCP",
        law: "Cuts its window by half the share of marked packets, and by half at a loss. If ECN was not negotiated it \
            is Reno (dctcp-reno).",
        source: "RFC 8257",
        parameters: "dctcp_shift_g 4, dctcp_alpha_on_init 1024",
        colour: Some("#cc79a7"),
        takes_losses_for_congestion: true,
        ..PLAIN
    },
    Record {
        name: "highspeed",
        title: "HighSpeed TCP",
        law: "Reno up to 38 segments. The larger the window above that, the more segments it adds per round trip and \
            the less it cuts at a loss, down to a tenth.",
        source: "RFC 3649",
        ..PLAIN
    },
    Record {
        name: "htcp",
        title: "H-TCP",
        law: "Adds more segments per round trip the longer ago the last loss was, after one second. A loss cuts the \
            window to the ratio of smallest to largest RTT, between 50 and 80%.",
        source: "Leith, Shorten, H-TCP: TCP for High-Speed and Long-Distance Networks, PFLDnet 2004",
        parameters: "use_rtt_scaling 1, use_bandwidth_switch 1",
        ..PLAIN
    },
    Record {
        name: "hybla",
        title: "Hybla",
        law: "Grows as Reno would on a path of 25 ms, whatever the RTT: growth per round trip is proportional to its \
            square. Halves at a loss.",
        source: "Caini, Firrincieli, TCP Hybla, Int. J. Satellite Communications and Networking 22, 2004",
        parameters: "rtt0 25",
        ..PLAIN
    },
    Record {
        name: "illinois",
        title: "Illinois",
        law: "Adds 10 segments per round trip while the queue is short, down to 0.3 as it grows. A loss cuts the \
            window by an eighth to a half: the longer the queue, the more.",
        source: "Liu, Başar, Srikant, TCP-Illinois, Performance Evaluation 65, 2008",
        parameters: "win_thresh 15, theta 5",
        ..PLAIN
    },
    Record {
        name: "lp",
        title: "TCP-LP",
        law: "Reno that yields to others: if the one-way delay is above 15% of its range it halves, and if that \
            persists it falls to one segment.",
        source: "Kuzmanovic, Knightly, TCP-LP, INFOCOM 2003",
        ..PLAIN
    },
    Record {
        name: "nv",
        title: "TCP-NV",
        law: "New Vegas, for data centers: compares its window with what its delivery rate needs at the smallest RTT, \
            and grows or shrinks accordingly. Falls to 80% at a loss.",
        source: "Brakmo, TCP-NV: Congestion Avoidance for Data Centers, Linux Plumbers Conference 2010",
        parameters: "nv_pad 10, nv_pad_buffer 2, nv_reset_period 5, nv_min_cwnd 2, and others for its averages",
        ..PLAIN
    },
    Record {
        name: "prague",
        label: "Prague",
        title: "Prague",
        law: "Grows with unmarked packets and cuts its window by half the share of marks, at most once in 25 ms. \
            Paces, and halves at a loss. If accurate ECN was not negotiated it is Reno.",
        source: "draft-briscoe-iccrg-prague-congestion-control; L4STeam's Linux",
        parameters: "g 1/16, rtt_target 25 ms, rtt_transition 4, burst 1/4096 s",
        colour: Some("#56b4e9"),
        patched: true,
        takes_losses_for_congestion: true,
    },
    Record {
        name: "reno",
        label: "Reno",
        title: "Reno",
        law: "Adds one segment per round trip; halves at a loss.",
        source: "RFC 5681, RFC 6582",
        colour: Some("#009e73"),
        takes_losses_for_congestion: true,
        ..PLAIN
    },
    Record {
        name: "scalable",
        title: "Scalable TCP",
        law: "Adds one segment for every 100 that arrive, whatever the window; cuts an eighth at a loss.",
        source: "Kelly, Scalable TCP, ACM SIGCOMM CCR 33(2), 2003",
        ..PLAIN
    },
    Record {
        name: "vegas",
        title: "Vegas",
        law: "Keeps 2 to 4 of its segments queued, measured by the RTT minus the smallest RTT; like Reno at a loss.",
        source: "Brakmo, Peterson, TCP Vegas, IEEE JSAC 13(8), 1995",
        parameters: "alpha 2, beta 4, gamma 1",
        ..PLAIN
    },
    Record {
        name: "veno",
        title: "Veno",
        law: "Reno that estimates its queue like Vegas. If the queue is short, a loss cuts only a fifth; if it is \
            long, the window grows half as fast.",
        source: "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003",
        ..PLAIN
    },
    Record {
        name: "westwood",
        title: "Westwood+",
        law: "Reno, except that a loss sets the window to the estimated delivery rate times the smallest RTT, not to \
            half.",
        source: "Mascolo et al., TCP Westwood, MobiCom 2001; Grieco, Mascolo, ACM SIGCOMM CCR 34(2), 2004",
        ..PLAIN
    },
    Record {
        name: "yeah",
        title: "YeAH",
        law: "Grows like Scalable TCP while its queue is below 80 segments, otherwise like Reno, and empties the \
            queue. A loss cuts an eighth to a half, depending on the queue.",
        source: "Baiocchi, Castellani, Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007",
        ..PLAIN
    },
];

impl Record {
    /// The record of a name. None for the controls of kernels with others.
    pub fn of(name: &str) -> Option<&'static Record> {
        RECORDS.iter().find(|one| one.name == name)
    }

    /// Its name in figures and tables.
    pub fn shown(&self) -> &'static str {
        if self.label.is_empty() { self.name } else { self.label }
    }

    /// The simulator's algorithms of this name: Linux's first, then its variants. Empty: the simulator lacks it.
    pub fn simulated(&self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.iter().copied().filter(|one| one.name() == self.name)
    }

    /// The variants that the simulator has in addition to Linux's behaviour.
    pub fn variants(&self) -> impl Iterator<Item = &'static str> {
        self.simulated().filter_map(Algorithm::variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_match_algorithms() {
        assert!(RECORDS.is_sorted_by(|one, next| one.name < next.name));
        for algorithm in Algorithm::ALL {
            assert!(Record::of(algorithm.name()).is_some(), "{} has no record", algorithm.name());
        }
    }

    #[test]
    fn record_lists_simulated_versions() {
        let names = |name| Record::of(name).unwrap().simulated().map(Algorithm::variant).collect::<Vec<_>>();
        assert_eq!(names("bbr3"), [None, Some("draft"), Some("ecn")]);
        assert!(names("westwood").is_empty());
    }
}
