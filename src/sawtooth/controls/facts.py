"""Facts: what each congestion control of Linux does, in a sentence or two, and where that is written.

Of Linux 6.12, whose values are those of its modules' parameters.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """``law``: what it does with its window; ``source``: where that is described; ``parameters``: those of Linux's
    module, with what they are where nobody sets them.
    """

    title: str
    law: str
    source: str
    parameters: str = ""


FACTS: dict[str, Facts] = {
    "bbr": Facts(
        "BBR version 1",
        "Paces at the largest delivery rate of the last ten round trips, by turns 25% above and below it, with a "
        "window of twice that rate times the smallest RTT of ten seconds. Losses do not change its estimate.",
        "Cardwell et al., BBR, ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
    ),
    "bbr3": Facts(
        "BBR version 3",
        "As version 1, but bounded by what it learns from losses: above 2% in a round trip it lowers what it puts"
        " in flight, and probes for more only every few seconds.",
        "draft-ietf-ccwg-bbr; the patch for Linux that distributions carry. Not in Linux itself",
    ),
    "bic": Facts(
        "BIC",
        "After a loss to 80%; then a binary search for the window that was lost at, by 16 segments a round trip "
        "at most, and beyond it ever faster.",
        "Xu, Harfoush, Rhee, Binary Increase Congestion Control, INFOCOM 2004",
        "beta 819/1024, fast_convergence 1, max_increment 16, low_window 14, smooth_part 20, initial_ssthresh 0",
    ),
    "cdg": Facts(
        "CDG",
        "Grows as Reno, and backs off to 70% at random, the likelier the faster the RTT has grown. A loss without"
        " a growing RTT is not taken for congestion, up to a few in a row.",
        "Hayes, Armitage, Revisiting TCP Congestion Control Using Delay Gradients, IFIP Networking 2011",
        "window 8, backoff_beta 724/1024, backoff_factor 42, use_ineff 5, use_shadow 1, use_tolerance 0, "
        "hystart_detect 3",
    ),
    "cubic": Facts(
        "CUBIC",
        "After a loss to 70%; then a cubic function of the time since, flat about the window that was lost at, "
        "and never slower than Reno would be. Linux's default.",
        "RFC 9438; HyStart: Ha, Rhee, Taming the Elephants, 2008",
        "beta 717/1024, bic_scale 41, fast_convergence 1, tcp_friendliness 1, hystart 1, hystart_detect 3, "
        "hystart_low_window 16, hystart_ack_delta_us 2000, initial_ssthresh 0",
    ),
    "dctcp": Facts(
        "DCTCP",
        "Cuts its window by half the share of packets that the network marked; at a loss by half. Where ECN was "
        "not agreed on it is Reno (dctcp-reno).",
        "RFC 8257",
        "dctcp_shift_g 4, dctcp_alpha_on_init 1024",
    ),
    "highspeed": Facts(
        "HighSpeed TCP",
        "Reno up to 38 segments; above, the larger the window, the more segments it adds a round trip and the "
        "less it gives up, down to a tenth.",
        "RFC 3649",
    ),
    "htcp": Facts(
        "H-TCP",
        "Adds more segments a round trip the longer the last loss is past, beyond one second; falls to the ratio "
        "of smallest to largest RTT, between 50 and 80%.",
        "Leith, Shorten, H-TCP: TCP for High-Speed and Long-Distance Networks, PFLDnet 2004",
        "use_rtt_scaling 1, use_bandwidth_switch 1",
    ),
    "hybla": Facts(
        "Hybla",
        "Reno as it would grow on a path of 25 ms, whatever the RTT: growth a round trip goes with its square. "
        "Halves at a loss.",
        "Caini, Firrincieli, TCP Hybla, Int. J. Satellite Communications and Networking 22, 2004",
        "rtt0 25",
    ),
    "illinois": Facts(
        "Illinois",
        "Adds 10 segments a round trip while the queue is short, down to 0.3 as it grows, and gives up an eighth "
        "to a half at a loss, the more the longer it is.",
        "Liu, Başar, Srikant, TCP-Illinois, Performance Evaluation 65, 2008",
        "win_thresh 15, theta 5",
    ),
    "lp": Facts(
        "TCP-LP",
        "Reno that gives way: when the one-way delay is above 15% of its range it halves, and falls to one "
        "segment if that goes on.",
        "Kuzmanovic, Knightly, TCP-LP, INFOCOM 2003",
    ),
    "nv": Facts(
        "TCP-NV",
        "New Vegas, for data centres: compares its window with what its delivery rate needs at the smallest RTT, "
        "and grows or shrinks by which is larger. To 80% at a loss.",
        "Brakmo, TCP-NV: Congestion Avoidance for Data Centers, Linux Plumbers Conference 2010",
        "nv_pad 10, nv_pad_buffer 2, nv_reset_period 5, nv_min_cwnd 2, and others for its averages",
    ),
    "prague": Facts(
        "Prague",
        "Grows by what came unmarked, and cuts its window by half the share of marks at most once in 25 ms, as if "
        "short round trips were that long; paces; at a loss by half. Where accurate ECN was not agreed on it is Reno.",
        "draft-briscoe-iccrg-prague-congestion-control; L4STeam's Linux",
        "g 1/16, rtt_target 25 ms, rtt_transition 4, burst 1/4096 s",
    ),
    "reno": Facts(
        "Reno",
        "One more segment a round trip; half of it at a loss.",
        "RFC 5681, RFC 6582",
    ),
    "scalable": Facts(
        "Scalable TCP",
        "One segment more for every 100 that arrive, whatever the window; an eighth less at a loss.",
        "Kelly, Scalable TCP, ACM SIGCOMM CCR 33(2), 2003",
    ),
    "vegas": Facts(
        "Vegas",
        "Keeps 2 to 4 segments of its own waiting in the network, by the difference of RTT and smallest RTT; Reno"
        " at a loss.",
        "Brakmo, Peterson, TCP Vegas, IEEE JSAC 13(8), 1995",
        "alpha 2, beta 4, gamma 1",
    ),
    "veno": Facts(
        "Veno",
        "Reno that estimates its queue as Vegas does: where it is short, a loss costs a fifth only; where it is "
        "long, it grows half as fast.",
        "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003",
    ),
    "westwood": Facts(
        "Westwood+",
        "Reno that falls to its estimate of the delivery rate times the smallest RTT at a loss, instead of to half.",
        "Mascolo et al., TCP Westwood, MobiCom 2001; Grieco, Mascolo, ACM SIGCOMM CCR 34(2), 2004",
    ),
    "yeah": Facts(
        "YeAH",
        "Grows as Scalable TCP while its own queue is below 80 segments, else as Reno and empties the queue; "
        "gives up an eighth to a half at a loss, by the length of the queue.",
        "Baiocchi, Castellani, Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007",
    ),
}
"""By the name that Linux gives it."""
