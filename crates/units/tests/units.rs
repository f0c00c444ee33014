//! Tests of the quantities' arithmetic: units convert exactly, the order is that of the numbers, and nothing is rounded
//! up.

use sawtooth_units::{Span, Time};

#[test]
fn spans_of_all_units_are_nanoseconds() {
    assert_eq!(Span::from_secs(3).nanos(), 3_000_000_000);
    assert_eq!(Span::from_millis(3).nanos(), 3_000_000);
    assert_eq!(Span::from_micros(3).nanos(), 3_000);
    assert_eq!(Span::from_nanos(3).nanos(), 3);
    assert_eq!(Span::ZERO, Span::default());
}

#[test]
fn microseconds_are_rounded_down() {
    assert_eq!(Time::from_nanos(1_999).micros(), 1);
    assert_eq!(Span::from_nanos(1_999).micros(), 1);
    assert_eq!(Span::from_nanos(999).micros(), 0);
}

#[test]
fn span_as_seconds() {
    assert_eq!(Span::from_millis(1_500).secs_f64(), 1.5);
}

#[test]
fn time_plus_span_minus_time_is_span() {
    for (start, length) in [(0, 0), (0, 1), (7, 1_000_000_007), (u64::MAX / 2, u64::MAX / 2)] {
        let (time, span) = (Time::from_nanos(start), Span::from_nanos(length));
        assert_eq!((time + span) - time, span);
        assert_eq!((time + span).since(time), span);
        let mut moved = time;
        moved += span;
        assert_eq!(moved, time + span);
        assert_eq!(time.since(time + span), Span::ZERO);
    }
}

#[test]
fn times_are_ordered_and_never_is_last() {
    assert!(Time::ZERO < Time::from_nanos(1));
    assert!(Time::from_nanos(u64::MAX - 1) < Time::NEVER);
    assert_eq!(Time::from_nanos(5).min(Time::NEVER), Time::from_nanos(5));
    assert!(Span::from_micros(999) < Span::from_millis(1));
    assert_eq!(Span::from_micros(400) + Span::from_micros(600), Span::from_millis(1));
}

#[test]
fn time_displays_seconds_with_nanoseconds() {
    assert_eq!(Time::from_nanos(12_000_000_034).to_string(), "12.000000034 s");
    assert_eq!(Time::ZERO.to_string(), "0.000000000 s");
}
