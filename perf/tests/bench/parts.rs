//! The parts that need no broker.

use std::sync::Arc;
use std::time::Duration;

use perf::assignment::{Share, deal, part_of};
use perf::batches::{Fill, Generator, Shape};
use perf::curves::{Series, draw};
use perf::hgrm;
use perf::options::{SizeRange, parse_bytes, parse_cpus, parse_duration};
use perf::pace::Pace;
use perf::requests::{Size, Stamp};
use perf::spans::Spans;
use perf::stage::Window;
use perf::tally::{Detail, Live, Tally, Told, latency};
use perf::usage::cpu_time;
use protocol::batch::header::{HEADER_BYTES, crc_ok};
use protocol::batch::{BatchHeader, Codec, RecordIter, decompress};
use runtime::time::Instant;
use serde_json::Value;

#[test]
fn partitions_are_dealt_once_and_evenly() {
    let leaders: Vec<(i32, i32)> = (0..10).map(|p| (p, 1000 + p % 2)).collect();
    let shares = deal(&leaders, 4).unwrap();
    let sizes: Vec<usize> = shares.iter().map(|share| share.partitions.len()).collect();
    assert_eq!(sizes, [3, 3, 2, 2]);
    let mut all: Vec<(i32, i32)> = Vec::new();
    for share in &shares {
        all.extend(share.partitions.iter().map(|&p| (p, share.node)));
    }
    all.sort_unstable();
    assert_eq!(all, leaders);
}

#[test]
fn more_connections_than_partitions_share_them() {
    let shares = deal(&[(0, 1), (1, 1)], 5).unwrap();
    let only = |partition| Share { node: 1, partitions: vec![partition] };
    assert_eq!(shares, [only(0), only(1), only(0), only(1), only(0)]);
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    assert!(deal(&[(0, 1), (1, 2)], 1).is_err());
    assert!(deal(&[(0, -1)], 1).is_err());
    assert!(deal(&[], 1).is_err());
}

#[test]
fn parts_add_up() {
    for total in [0, 1, 7, 100] {
        assert_eq!((0..3).map(|index| part_of(total, index, 3)).sum::<u64>(), total);
    }
}

#[test]
fn connections_take_turns_in_a_schedule() {
    let start = Instant::from_nanos(1_000_000_000);
    let far = start + Duration::from_secs(100);
    let mut due: Vec<u64> = Vec::new();
    for index in 0..3 {
        let mut pace = Pace::open(4, start, 1000.0, index, 3);
        assert_eq!(
            pace.behind(start + Duration::from_micros(6500)),
            if index == 0 { 3 } else { 2 }
        );
        assert_eq!((pace.behind(start), pace.behind(far)), (0, 4));
        assert_eq!(pace.take(start - Duration::from_nanos(1)), None);
        while let Some(at) = pace.take(far) {
            due.push(at.since(start).as_micros() as u64);
        }
        assert!(pace.is_spent());
    }
    due.sort_unstable();
    let expected: Vec<u64> = (0..12).map(|n| n * 1000).collect();
    assert_eq!(due, expected);
}

#[test]
fn batches_are_as_asked_and_valid() {
    for codec in Codec::ALL {
        let shape = Shape {
            record_size: SizeRange { min: 50, max: 150 },
            key_size: Some(10),
            fill: Fill::Bytes(4096),
            codec,
        };
        let batch = Generator::new(shape, 1).batch(1234, None);
        let header = BatchHeader::parse(&batch.whole).unwrap();
        let body = decompress(codec, &batch.whole[HEADER_BYTES..], 1 << 20).unwrap();
        assert!(body.len() + HEADER_BYTES <= 4096 && body.len() > 3900, "{}", body.len());
        assert!(crc_ok(&batch.whole));
        for record in RecordIter::new(&body, header.count) {
            let record = record.unwrap();
            assert_eq!(record.key.unwrap().len(), 10);
            assert!((50..=150).contains(&record.value.unwrap().len()));
        }
        let (head, body) = batch.numbered(77, 3, 12_345);
        let numbered = [head, body].concat();
        let header = BatchHeader::parse(&numbered).unwrap();
        assert!(crc_ok(&numbered));
        assert_eq!((header.producer_id, header.producer_epoch), (77, 3));
        assert_eq!(header.base_sequence, 12_345);
    }
}

#[test]
fn a_batch_holds_one_record_at_least() {
    let shape = Shape {
        record_size: SizeRange { min: 5000, max: 5000 },
        key_size: None,
        fill: Fill::Bytes(0),
        codec: Codec::None,
    };
    assert_eq!(Generator::new(shape, 1).batch(0, None).records, 1);
}

#[test]
fn stamps_come_back() {
    let stamp = Stamp { run_id: 5, due: Instant::from_nanos(99) };
    let mut value = stamp.encode().to_vec();
    value.extend_from_slice(b"rest");
    assert_eq!(Stamp::decode(&value), Some(stamp));
    assert_eq!(Stamp::decode(&value[..15]), None);
}

#[test]
fn a_span_tells_of_itself_alone() {
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let window = Window { start: at(1_000), counted_from: at(2_000), end: at(100_000) };
    let live = Arc::new(Live::with_spans());
    let detail = Detail { spans: Some(Told::Answers), ..Detail::default() };
    let tally = Tally::new(Arc::clone(&live), detail);
    tally.open(window);
    let mut spans = Spans::new(window, Duration::from_secs(5));
    let answer = |due: u64, taken: u64| {
        tally.on_acknowledged(
            Size { batches: 1, records: 10, bytes: 2_000 },
            at(due),
            at(due + taken),
        );
    };
    let number = |line: &Value, path: &str| line.pointer(path).unwrap().as_f64().unwrap();

    answer(1_500, 400);
    assert_eq!(spans.due(), at(2_000));
    assert!(spans.line(&live, at(2_000)).is_none(), "the warm-up is no span");

    (0..100).for_each(|_| answer(3_000, 7));
    tally.on_error("refused");
    assert_eq!(spans.due(), at(7_000));
    let line: Value = serde_json::from_str(&spans.line(&live, at(7_000)).unwrap()).unwrap();
    assert_eq!(number(&line, "/records_per_second"), 200.0);
    assert_eq!((number(&line, "/errors"), number(&line, "/latency_ms/count")), (1.0, 100.0));
    assert!((6.9..7.1).contains(&number(&line, "/latency_ms/p99")), "{line}");

    answer(8_000, 60);
    let line: Value = serde_json::from_str(&spans.line(&live, at(12_000)).unwrap()).unwrap();
    assert_eq!((number(&line, "/from_seconds"), number(&line, "/errors")), (5.0, 0.0));
    assert!((59.9..60.1).contains(&number(&line, "/latency_ms/p50")), "{line}");
}

#[test]
fn distributions_are_read_as_written() {
    let mut values = latency();
    for millis in 1..=1000u64 {
        values.record(millis * 1_000_000).unwrap();
    }
    let points = hgrm::read(&hgrm::write(&values)).unwrap();
    let median = points.iter().find(|point| point.0 >= 0.5).unwrap().1;
    assert!((499.0..502.0).contains(&median), "{median}");
    let last = points.last().unwrap();
    assert!(last.0 == 1.0 && (999.0..1001.0).contains(&last.1), "{last:?}");
    assert!(hgrm::read("nothing").is_err());
    assert_eq!((hgrm::count(&hgrm::write(&values)), hgrm::count("nothing")), (Some(1000), None));
}

#[test]
fn a_drawing_has_every_curve_and_escapes_names() {
    let series = |name: &str, factor: f64| Series {
        name: name.to_owned(),
        points: vec![(0.5, factor), (0.99, 3.0 * factor), (1.0, 20.0 * factor)],
        count: None,
    };
    let drawing = draw("a <b>", &[series("one", 1.0), series("two & three", 7.0)]).unwrap();
    assert_eq!(drawing.matches("<path").count(), 2);
    assert!(drawing.contains("two &amp; three") && drawing.contains("a &lt;b&gt;"));
    assert!(draw("empty", &[]).is_err());
    // A hundred values tell no 99.9th percentile from the maximum: the axis ends before it.
    let hundred = Series { count: Some(100), ..series("one", 1.0) };
    let drawing = draw("few", &[hundred]).unwrap();
    assert!(drawing.contains(">99<") && !drawing.contains(">99.9<"));
}

#[test]
fn sizes_durations_and_cpus_are_read() {
    assert_eq!(parse_bytes("64KiB").unwrap(), 65_536);
    assert_eq!(parse_bytes("1.5MiB").unwrap(), 3 << 19);
    assert_eq!(parse_bytes("100").unwrap(), 100);
    assert!(parse_bytes("5 apples").is_err() && parse_bytes("-1").is_err());
    assert_eq!(parse_duration("250us").unwrap(), Duration::from_micros(250));
    assert_eq!(parse_duration("2m").unwrap(), Duration::from_secs(120));
    assert!(parse_duration("1 week").is_err());
    assert_eq!(parse_cpus("0,2-4").unwrap().0, [0, 2, 3, 4]);
    assert!(parse_cpus("4-2").is_err() && parse_cpus("x").is_err());
}

#[test]
fn processor_time_is_found_behind_any_name() {
    let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 5 1 1 1";
    assert_eq!(cpu_time(stat).unwrap(), Duration::from_secs(2));
    assert!(cpu_time("42 (x) S 1").is_err());
}
