"""Facts: how each congestion control of Linux works, in a sentence or two, with the source.

For Linux 6.12, including the defaults of module parameters.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Facts about one. ``law``: how it changes its window. ``source``: where this is described. ``parameters``: of
    Linux's module, with their defaults."""

    title: str
    law: str
    source: str
    parameters: str = ""


FACTS: dict[str, Facts] = {
    "bbr": Facts(
        "BBR version 1",
        "Paces at the highest delivery rate of the last ten round trips, sometimes 25% above or below it. "
        "The window is "
        "twice that rate times the smallest RTT of ten seconds. Losses do not change its estimate.",
        "Cardwell et al., BBR, ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
    ),
    "bbr3": Facts(
        "BBR version 3",
        "Version 1 with a limit learned from losses. Above 2% loss in a round trip it lowers the limit on data"
        " in flight, and probes for more only every few seconds.",
        "draft-ietf-ccwg-bbr; a patch that some distributions ship; not in mainline Linux",
    ),
    "bic": Facts(
        "BIC",
        "After a loss the window falls to 80%. It then searches the window at the loss by halving the "
        "distance, by at most "
        "16 segments per round trip, and grows faster and faster beyond it.",
        "Xu, Harfoush, Rhee, Binary Increase Congestion Control, INFOCOM 2004",
        "beta 819/1024, fast_convergence 1, max_increment 16, low_window 14, smooth_part 20, initial_ssthresh 0",
    ),
    "cdg": Facts(
        "CDG",
        "Grows like Reno and backs off to 70% at random; the faster the RTT grows, the likelier. Up to a few losses"
        " in a row without a growing RTT do not count as congestion.",
        "Hayes, Armitage, Revisiting TCP Congestion Control Using Delay Gradients, IFIP Networking 2011",
        "window 8, backoff_beta 724/1024, backoff_factor 42, use_ineff 5, use_shadow 1, use_tolerance 0, "
        "hystart_detect 3",
    ),
    "cubic": Facts(
        "CUBIC",
        "After a loss the window falls to 70%. It then follows a cubic function of time, flat near the "
        "window at the loss "
        "and never below Reno's window. Linux's default.",
        "RFC 9438; HyStart: Ha, Rhee, Taming the Elephants, 2008",
        "beta 717/1024, bic_scale 41, fast_convergence 1, tcp_friendliness 1, hystart 1, hystart_detect 3, "
        "hystart_low_window 16, hystart_ack_delta_us 2000, initial_ssthresh 0",
    ),
    "dctcp": Facts(
        "DCTCP",
        "Cuts its window by half the share of marked packets, and by half at a loss. If ECN was "
        "not negotiated it is Reno (dctcp-reno).",
        "RFC 8257",
        "dctcp_shift_g 4, dctcp_alpha_on_init 1024",
    ),
    "highspeed": Facts(
        "HighSpeed TCP",
        "Reno up to 38 segments. The larger the window above that, the more segments it adds per round trip and the "
        "less it cuts at a loss, down to a tenth.",
        "RFC 3649",
    ),
    "htcp": Facts(
        "H-TCP",
        "Adds more segments per round trip the longer ago the last loss was, after one second. A loss cuts "
        "the window to "
        "the ratio of smallest to largest RTT, between 50 and 80%.",
        "Leith, Shorten, H-TCP: TCP for High-Speed and Long-Distance Networks, PFLDnet 2004",
        "use_rtt_scaling 1, use_bandwidth_switch 1",
    ),
    "hybla": Facts(
        "Hybla",
        "Grows as Reno would on a path of 25 ms, whatever the RTT: growth per round trip is proportional to "
        "its square. "
        "Halves at a loss.",
        "Caini, Firrincieli, TCP Hybla, Int. J. Satellite Communications and Networking 22, 2004",
        "rtt0 25",
    ),
    "illinois": Facts(
        "Illinois",
        "Adds 10 segments per round trip while the queue is short, down to 0.3 as it grows. A loss cuts the "
        "window by an "
        "eighth to a half: the longer the queue, the more.",
        "Liu, Başar, Srikant, TCP-Illinois, Performance Evaluation 65, 2008",
        "win_thresh 15, theta 5",
    ),
    "lp": Facts(
        "TCP-LP",
        "Reno that yields to others: if the one-way delay is above 15% of its range it halves, and if that persists it "
        "falls to one segment.",
        "Kuzmanovic, Knightly, TCP-LP, INFOCOM 2003",
    ),
    "nv": Facts(
        "TCP-NV",
        "New Vegas, for data centers: compares its window with what its delivery rate needs at the smallest RTT, "
        "and grows or shrinks accordingly. Falls to 80% at a loss.",
        "Brakmo, TCP-NV: Congestion Avoidance for Data Centers, Linux Plumbers Conference 2010",
        "nv_pad 10, nv_pad_buffer 2, nv_reset_period 5, nv_min_cwnd 2, and others for its averages",
    ),
    "prague": Facts(
        "Prague",
        "Grows with unmarked packets and cuts its window by half the share of marks, at most once in 25 ms. Paces, and "
        "halves at a loss. If accurate ECN was not negotiated it is Reno.",
        "draft-briscoe-iccrg-prague-congestion-control; L4STeam's Linux",
        "g 1/16, rtt_target 25 ms, rtt_transition 4, burst 1/4096 s",
    ),
    "reno": Facts(
        "Reno",
        "Adds one segment per round trip; halves at a loss.",
        "RFC 5681, RFC 6582",
    ),
    "scalable": Facts(
        "Scalable TCP",
        "Adds one segment for every 100 that arrive, whatever the window; cuts an eighth at a loss.",
        "Kelly, Scalable TCP, ACM SIGCOMM CCR 33(2), 2003",
    ),
    "vegas": Facts(
        "Vegas",
        "Keeps 2 to 4 of its segments queued, measured by the RTT minus the smallest RTT; like Reno at a loss.",
        "Brakmo, Peterson, TCP Vegas, IEEE JSAC 13(8), 1995",
        "alpha 2, beta 4, gamma 1",
    ),
    "veno": Facts(
        "Veno",
        "Reno that estimates its queue like Vegas. If the queue is short, a loss cuts only a fifth; if it is "
        "long, the window grows half as fast.",
        "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003",
    ),
    "westwood": Facts(
        "Westwood+",
        "Reno, except that a loss sets the window to the estimated delivery rate times the smallest RTT, not to half.",
        "Mascolo et al., TCP Westwood, MobiCom 2001; Grieco, Mascolo, ACM SIGCOMM CCR 34(2), 2004",
    ),
    "yeah": Facts(
        "YeAH",
        "Grows like Scalable TCP while its queue is below 80 segments, otherwise like Reno, and empties the "
        "queue. A loss "
        "cuts an eighth to a half, depending on the queue.",
        "Baiocchi, Castellani, Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007",
    ),
}
"""By Linux's name."""
