//! Readers: applications that request answers, pages and segments of a video, and how long each takes.

use crate::common::{MS, MSS, PERCENT, Path, Run, SECOND, find};
use sawtooth_net::scenario::Scenario;
use serde_json::{Value, json};

fn with_asks(path: Path, count: usize, asks: Value) -> Run {
    let mut scenario = path.json();
    scenario["flows"][0]["asks"] = asks;
    scenario["flows"][0]["count"] = json!(count);
    Run::of(&scenario)
}

fn requests(size: Value, think_ns: u64) -> Value {
    json!({"requests": {"sizes": size, "think": {"fixed_ns": think_ns}}})
}

#[test]
fn first_answer_takes_an_extra_handshake() {
    let run = with_asks(Path::default(), 1, requests(json!({"fixed": MSS}), 100 * MS));
    let took = run.floats("responses", "response_s");
    // Round trips of 20 ms; the segment takes 121 us, an acknowledgement of the way there 5 us.
    assert!((took[0] - 0.0401).abs() < 2e-4, "{took:?}");
    assert!(took[1..].iter().all(|took_s| (took_s - 0.0201).abs() < 1e-4), "{took:?}");
    let times = run.floats("responses", "t_s");
    assert!(times.windows(2).all(|two| (two[1] - two[0] - 0.1201).abs() < 1e-4), "a think time apart: {times:?}");
    assert_eq!(run.integers("responses", "number"), (0..times.len() as i64).collect::<Vec<_>>());
    assert_eq!(run.sum("responses", "bytes"), run.sum("flows", "delivered_bytes"));
}

#[test]
fn an_answer_of_many_segments_takes_the_round_trips_of_slow_start() {
    let run = with_asks(Path::default(), 1, requests(json!({"fixed": 30 * MSS}), 10 * MS));
    let took = run.floats("responses", "response_s");
    // Ten segments, then twenty.
    assert!(took[0] > 0.060 && took[0] < 0.064, "{took:?}");
    assert!(took[2..].iter().all(|took_s| *took_s < 0.0245), "the window stays open: {took:?}");
}

#[test]
fn lost_requests_and_lost_handshakes_are_repeated() {
    let mut scenario = Path { duration_ns: 60 * SECOND, ..Path::default() }.json();
    scenario["links"][2]["loss_ppb"] = json!(20 * PERCENT);
    scenario["flows"][0]["asks"] = requests(json!({"fixed": MSS}), 0);
    let run = Run::of(&scenario);
    let took = run.floats("responses", "response_s");
    assert!(took.len() > 500, "{}", took.len());
    let late = took.iter().filter(|took_s| **took_s > 0.1).count() as f64 / took.len() as f64;
    assert!((late - 0.2).abs() < 0.05, "{late} were asked for again");
    // After a round trip and 200 ms at least, on a tick.
    assert!(took.iter().filter(|took_s| **took_s > 0.1).all(|took_s| *took_s > 0.22));
}

#[test]
fn sizes_and_think_times_are_drawn_each_by_themselves() {
    let sizes = json!({"lognormal": {"mean_bytes": 20_000, "sigma_ppb": 1_000_000_000}});
    let run = |think: Value| with_asks(Path::default(), 2, json!({"requests": {"sizes": sizes, "think": think}}));
    let of_first = |run: &Run| -> Vec<i64> {
        let rows = run.integers("responses", "connection").into_iter().zip(run.integers("responses", "bytes"));
        rows.filter(|&(connection, _)| connection == 0).map(|(_, bytes)| bytes).take(5).collect()
    };
    let (some, others) = (run(json!({"fixed_ns": 10 * MS})), run(json!({"exponential_ns": 50 * MS})));
    assert_eq!(of_first(&some), of_first(&others));
    let bytes = some.integers("responses", "bytes");
    assert!(bytes.iter().min() < bytes.iter().max());
}

#[test]
fn page_loads_objects_over_its_own_connections() {
    let pages = |keep: bool| json!({"pages": {"objects": 9, "sizes": {"fixed": MSS}, "think": {"fixed_ns": 100 * MS}, "connections": 4, "keep": keep}});
    let path = Path { duration_ns: SECOND, ..Path::default() };
    let run = with_asks(path, 8, pages(false));
    assert_eq!(run.integers("pages", "reader")[..2], [0, 1]);
    assert!(run.integers("pages", "bytes").iter().all(|&bytes| bytes == 9 * MSS as i64));
    // A handshake and three rounds.
    let loads = run.floats("pages", "load_s");
    assert!(loads.iter().all(|load_s| (0.080..0.085).contains(load_s)), "{loads:?}");
    let first: Vec<i64> = run.integers("responses", "generation").into_iter().take(18).collect();
    assert_eq!(first, [0; 18]);
    assert!(run.integers("flows", "generation").iter().any(|&generation| generation > 2));
    let ended = run.floats("flows", "end_s").into_iter().zip(run.integers("flows", "completed"));
    assert!(ended.filter(|&(end_s, _)| end_s < 1.0).all(|(_, completed)| completed == 1));
    let kept = with_asks(path, 8, pages(true));
    let loads = kept.floats("pages", "load_s");
    assert!(
        loads[..2].iter().all(|load_s| *load_s > 0.08) && loads[2..].iter().all(|load_s| *load_s < 0.065),
        "{loads:?}"
    );
    assert_eq!(kept.integers("flows", "generation"), [0; 8]);
}

#[test]
fn a_reader_closes_when_its_time_is_over() {
    let mut scenario = Path::default().json();
    scenario["flows"][0]["asks"] = requests(json!({"fixed": 100_000_000}), 0);
    scenario["flows"][0]["start_ns"] = json!(100 * MS);
    scenario["flows"][0]["duration_ns"] = json!(SECOND);
    let run = Run::of(&scenario);
    assert!(run.floats("responses", "t_s").is_empty());
    let end_s = run.floats("flows", "end_s");
    assert!((end_s[0] - 1.11).abs() < 1e-3, "half a round trip later: {end_s:?}");
    assert_eq!(run.integers("flows", "completed"), [0]);
}

#[test]
fn video_fills_buffer_then_requests_as_it_plays() {
    let video = |rule: &str| {
        json!({"video": {"rates_bps": [1_000_000, 4_000_000, 16_000_000], "segment_ns": 2 * SECOND, "buffer_ns": 20 * SECOND,
            "rule": rule}})
    };
    for rule in ["buffer", "throughput"] {
        let path = Path { rate_bps: 8_000_000, duration_ns: 100 * SECOND, ..Path::default() };
        let run = with_asks(path, 1, video(rule));
        let (buffers, stalls) = (run.floats("segments", "buffer_s"), run.floats("segments", "stalled_s"));
        assert!(buffers.iter().all(|buffer_s| *buffer_s <= 20.0 + 1e-9), "{buffers:?}");
        assert!(stalls[0] > 0.25 && stalls[1..].iter().all(|stalled_s| *stalled_s == 0.0), "{stalls:?}");
        let rates = run.integers("segments", "rate_bps");
        assert_eq!(rates[0], 1_000_000);
        assert!(rates[10..].contains(&4_000_000), "{rule}: {rates:?}");
        assert_eq!(run.integers("segments", "bytes")[0], 250_000);
    }
    let path = Path { rate_bps: 800_000, duration_ns: 60 * SECOND, ..Path::default() };
    let run = with_asks(path, 1, video("buffer"));
    let stalled: f64 = run.floats("segments", "stalled_s")[1..].iter().sum();
    // A fifth of the video's rate is lacking, and headers.
    assert!((10.0..25.0).contains(&stalled), "{stalled}");
}

#[test]
fn reader_tables_exist_only_with_readers() {
    let names = |run: &Run| run.tables.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert!(!names(&Path::default().run()).contains(&"responses"));
    let run = with_asks(Path::default(), 1, requests(json!({"fixed": 1}), 0));
    assert!(names(&run).contains(&"responses") && !names(&run).contains(&"pages"));
    find(&run.tables, "responses", "response_s");
}

#[test]
fn contradictory_reader_is_refused() {
    let refused = |asks: Value| {
        let mut scenario = Path::default().json();
        scenario["flows"][0]["asks"] = asks;
        Scenario::parse(&scenario.to_string()).expect_err("it has no meaning")
    };
    assert!(refused(requests(json!({"fixed": 0}), 0)).contains("asks.sizes.fixed"));
    let video = json!({"video": {"rates_bps": [2, 1], "segment_ns": SECOND, "buffer_ns": SECOND, "rule": "buffer"}});
    assert!(refused(video).contains("order"));
    let page = json!({"pages": {"objects": 1, "sizes": {"fixed": 1}, "think": {"fixed_ns": 0}, "connections": 2, "keep": true}});
    assert!(refused(page).contains("whole number"));
}
