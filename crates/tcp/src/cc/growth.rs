//! Window growth that Reno and CUBIC share (RFC 5681 section 3.1), as in Linux 6.12.

use crate::flight::Flight;
use crate::window::Window;

/// Whether the window, not the application, limited the sender. In slow start it suffices that more than half of the
/// window was in flight, so that the window may reach twice what was used.
pub(super) fn is_cwnd_limited(flight: &Flight, window: &Window) -> bool {
    flight.is_cwnd_limited || (window.in_slow_start() && window.cwnd < flight.max_packets_out.wrapping_mul(2))
}

/// The part of `acked` segments for congestion avoidance, if the window may grow at all; slow start uses the rest.
pub(super) fn beyond_slow_start(flight: &Flight, window: &mut Window, acked: u32) -> Option<u32> {
    if !is_cwnd_limited(flight, window) {
        None
    } else if window.in_slow_start() {
        Some(slow_start(window, acked)).filter(|&left| left > 0)
    } else {
        Some(acked)
    }
}

/// Slow start (RFC 5681 section 3.1): one segment for each segment acknowledged, up to `ssthresh`. Returns the
/// acknowledged segments that are left.
pub(super) fn slow_start(window: &mut Window, acked: u32) -> u32 {
    let used = window.ssthresh.wrapping_sub(window.cwnd).min(acked);
    window.cwnd = window.cwnd.wrapping_add(used).min(window.clamp);
    acked - used
}

/// Additive increase: one segment per `per_increase` (at least 1) acknowledged segments.
///
/// Credit accumulated under a larger `per_increase` counts as at most one increase.
pub(super) fn additive_increase(window: &mut Window, per_increase: u32, acked: u32) {
    let mut increases = 0;
    if window.cwnd_cnt >= per_increase {
        (increases, window.cwnd_cnt) = (1, 0);
    }
    window.cwnd_cnt = window.cwnd_cnt.wrapping_add(acked);
    if window.cwnd_cnt >= per_increase {
        increases += window.cwnd_cnt / per_increase;
        window.cwnd_cnt %= per_increase;
    }
    window.cwnd = window.cwnd.wrapping_add(increases).min(window.clamp);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{flight, window};

    #[test]
    fn slow_start_grows_by_what_was_acked_and_stops_at_ssthresh() {
        let mut w = window();
        w.ssthresh = 15;
        assert_eq!(slow_start(&mut w, 3), 0);
        assert_eq!(w.cwnd, 13);
        assert_eq!(slow_start(&mut w, 7), 5, "the rest is for congestion avoidance");
        assert_eq!(w.cwnd, 15);
    }

    #[test]
    fn slow_start_respects_the_clamp() {
        let mut w = window();
        w.clamp = 12;
        assert_eq!(slow_start(&mut w, 9), 0);
        assert_eq!(w.cwnd, 12);
    }

    #[test]
    fn one_window_of_acks_adds_one_segment() {
        let mut w = window();
        for _ in 0..9 {
            additive_increase(&mut w, 10, 1);
        }
        assert_eq!((w.cwnd, w.cwnd_cnt), (10, 9));
        additive_increase(&mut w, 10, 1);
        assert_eq!((w.cwnd, w.cwnd_cnt), (11, 0));
    }

    #[test]
    fn credit_from_a_slower_rate_is_spent_gently() {
        let mut w = window();
        w.cwnd_cnt = 90;
        additive_increase(&mut w, 10, 1);
        assert_eq!((w.cwnd, w.cwnd_cnt), (11, 1), "90 acked segments buy one, not nine");
    }

    #[test]
    fn one_stretched_ack_may_add_several_segments() {
        let mut w = window();
        additive_increase(&mut w, 2, 7);
        assert_eq!((w.cwnd, w.cwnd_cnt), (13, 1));
    }

    #[test]
    fn an_application_limited_window_is_not_cwnd_limited() {
        let (mut f, mut w) = (flight(), window());
        f.is_cwnd_limited = false;
        f.max_packets_out = 5;
        assert!(!is_cwnd_limited(&f, &w), "half of the window is not enough");
        f.max_packets_out = 6;
        assert!(is_cwnd_limited(&f, &w), "more than half is, in slow start");
        w.ssthresh = 10;
        assert!(!is_cwnd_limited(&f, &w), "but not in congestion avoidance");
    }
}
