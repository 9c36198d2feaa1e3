//! Whatever is written reads back the same by a strict reader, in both formats.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use telltale_harness::exposition::{ParsedFamily, ParsedSample, parse, promtool};
use telltale_harness::skip;
use telltale_schema::clock::Timestamp;
use telltale_schema::metric::MetricKind;
use telltale_wire::exposition::{Buckets, Encoder, Format, Head, Labels, Number};

/// A family as a test has it.
#[derive(Debug, Clone)]
struct Family {
    kind: MetricKind,
    help: String,
    unit: Option<&'static str>,
    samples: BTreeMap<BTreeMap<String, String>, Value>,
}

#[derive(Debug, Clone)]
enum Value {
    Number(Number, Option<Timestamp>),
    Buckets(Vec<f64>, Vec<u64>, f64),
}

fn full_name(place: usize, family: &Family) -> String {
    let ending = match family.kind {
        MetricKind::Counter => "_total",
        MetricKind::Info => "_info",
        MetricKind::Gauge | MetricKind::Histogram => "",
    };
    let unit = family.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
    format!("test_{place}{unit}{ending}")
}

fn encoded(format: Format, families: &[Family], text: &mut String) {
    let mut encoder = Encoder::new(format, text);
    for (place, family) in families.iter().enumerate() {
        let name = full_name(place, family);
        let head = Head { name: &name, help: &family.help, kind: family.kind, unit: family.unit };
        let mut family_encoder = encoder.family(&head);
        for (labels, value) in &family.samples {
            // In two parts, as callers that share parts between samples have them.
            let part = |odd: bool| {
                let labels = labels.iter().enumerate().filter(move |(at, _)| (at % 2 == 1) == odd);
                Labels::new(labels.map(|(_, (name, value))| (name.as_str(), value.as_str())))
                    .expect("names are words")
            };
            let parts = [&part(false), &part(true)];
            match value {
                Value::Number(number, created) => family_encoder.sample(&parts, *number, *created),
                Value::Buckets(bounds, counts, sum) => {
                    family_encoder.histogram(&parts, Buckets { bounds, counts, sum: *sum }, None);
                }
            }
        }
    }
    encoder.finish();
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        vec(
            prop_oneof![Just('\\'), Just('"'), Just('\n'), Just('}'), Just('#'), any::<char>()],
            1..8
        )
        .prop_map(String::from_iter),
    ]
}

fn label_sets() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[a-z][a-z0-9_]{0,6}x", texts(), 0..4)
}

fn numbers() -> impl Strategy<Value = Number> {
    prop_oneof![any::<u64>().prop_map(Number::Whole), any::<f64>().prop_map(Number::Float)]
}

fn histograms() -> impl Strategy<Value = Value> {
    (vec(-1e9..1e9, 0..5), vec(0..u64::MAX / 8, 6), any::<f64>()).prop_map(
        |(mut bounds, mut counts, sum)| {
            bounds.sort_by(f64::total_cmp);
            bounds.dedup();
            counts.truncate(bounds.len() + 1);
            Value::Buckets(bounds, counts, sum)
        },
    )
}

fn families() -> impl Strategy<Value = Family> {
    let counts = (any::<u64>(), proptest::option::of(any::<u64>().prop_map(Timestamp)))
        .prop_map(|(count, created)| Value::Number(Number::Whole(count), created));
    let gauges = numbers().prop_map(|number| Value::Number(number, None));
    let infos = Just(Value::Number(Number::Whole(1), None));
    let units = prop_oneof![Just(None), Just(Some("bytes")), Just(Some("seconds"))];
    let of =
        |kind, values: proptest::strategy::BoxedStrategy<Value>, unit| {
            (texts(), btree_map(label_sets(), values, 0..5))
                .prop_map(move |(help, samples)| Family { kind, help, unit, samples })
        };
    let (counts, gauges) = (counts.boxed(), gauges.boxed());
    units.prop_flat_map(move |unit| {
        prop_oneof![
            of(MetricKind::Counter, counts.clone(), unit),
            of(MetricKind::Gauge, gauges.clone(), unit),
            of(MetricKind::Info, infos.clone().boxed(), None),
            of(MetricKind::Histogram, histograms().boxed(), unit),
        ]
    })
}

/// What a reader gets of a text: control characters that no parser agrees on are replaced.
fn shown(text: &str) -> String {
    let shown = |one: char| if one.is_ascii_control() && one != '\n' { '\u{fffd}' } else { one };
    text.chars().map(shown).collect()
}

fn same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan())
}

fn check(format: Format, name: &str, family: &Family, parsed: &ParsedFamily) {
    assert_eq!(parsed.help, shown(&family.help));
    let unit = family.unit.filter(|_| format == Format::OpenMetrics);
    assert_eq!(parsed.unit.as_deref(), unit);
    let mut lines = parsed.samples.iter();
    for (labels, value) in &family.samples {
        let labels: BTreeMap<String, String> =
            labels.iter().map(|(name, value)| (name.clone(), shown(value))).collect();
        match value {
            Value::Number(number, created) => {
                let line = lines.next().expect("each sample has a line");
                assert_eq!((line.name.as_str(), &line.labels), (name, &labels));
                let expected = match *number {
                    Number::Whole(number) => number as f64,
                    Number::Float(number) => number,
                };
                assert!(same(line.value, expected), "{line:?} is not {number:?}");
                if let (Format::OpenMetrics, Some(created)) = (format, created) {
                    let line = lines.next().expect("its creation has a line");
                    assert!((line.value - created.0 as f64 / 1e9).abs() <= 0.002, "{line:?}");
                }
            }
            Value::Buckets(bounds, counts, _) => {
                let buckets: Vec<&ParsedSample> = lines.by_ref().take(counts.len()).collect();
                assert_eq!(buckets.len(), bounds.len() + 1);
                let of_all = counts.iter().sum::<u64>() as f64;
                assert_eq!(buckets.last().map(|bucket| bucket.value), Some(of_all));
                while lines.clone().next().is_some_and(|line| !line.name.ends_with("_bucket")) {
                    lines.next();
                }
            }
        }
    }
    assert_eq!(lines.next(), None);
}

proptest! {
    #[test]
    fn whatever_is_written_reads_back(families in vec(families(), 0..6)) {
        let mut text = String::from("left from before");
        for format in Format::ALL {
            encoded(format, &families, &mut text);
            let parsed = parse(&text, format == Format::OpenMetrics)
                .unwrap_or_else(|reason| panic!("{reason}\n{text}"));
            let mut parsed = parsed.iter();
            // A family without samples is not announced.
            for (place, family) in families.iter().enumerate() {
                if !family.samples.is_empty() {
                    let name = full_name(place, family);
                    check(format, &name, family, parsed.next().expect("a family for each"));
                }
            }
            assert_eq!(parsed.next(), None);
        }
    }
}

/// One family of each kind.
fn one_of_each() -> Vec<Family> {
    let none = BTreeMap::new;
    let port = BTreeMap::from([("port".to_owned(), "\"0\"\\".to_owned())]);
    let family = |kind, unit, samples: Vec<(BTreeMap<String, String>, Value)>| Family {
        kind,
        help: "What it\nmeans \"here\".".to_owned(),
        unit,
        samples: samples.into_iter().collect(),
    };
    let whole = |number| Value::Number(Number::Whole(number), None);
    let created = Some(Timestamp(1_700_000_000_250_000_000));
    let buckets = Value::Buckets(vec![0.5, 1.0], vec![1, 0, 2], 7.25);
    vec![
        family(
            MetricKind::Counter,
            Some("bytes"),
            vec![(port, Value::Number(Number::Whole(7), created))],
        ),
        family(
            MetricKind::Gauge,
            Some("celsius"),
            vec![(none(), Value::Number(Number::Float(36.5), None))],
        ),
        family(
            MetricKind::Info,
            None,
            vec![(BTreeMap::from([("version".to_owned(), "1".to_owned())]), whole(1))],
        ),
        family(MetricKind::Histogram, Some("seconds"), vec![(none(), buckets)]),
        family(MetricKind::Gauge, None, Vec::new()),
    ]
}

#[test]
fn both_formats_look_as_their_specifications_say() {
    let mut text = String::new();
    encoded(Format::Text, &one_of_each(), &mut text);
    let expected = r#"# HELP test_0_bytes_total What it\nmeans "here".
# TYPE test_0_bytes_total counter
test_0_bytes_total{port="\"0\"\\"} 7
# HELP test_1_celsius What it\nmeans "here".
# TYPE test_1_celsius gauge
test_1_celsius 36.5
# HELP test_2_info What it\nmeans "here".
# TYPE test_2_info gauge
test_2_info{version="1"} 1
# HELP test_3_seconds What it\nmeans "here".
# TYPE test_3_seconds histogram
test_3_seconds_bucket{le="0.5"} 1
test_3_seconds_bucket{le="1.0"} 1
test_3_seconds_bucket{le="+Inf"} 3
test_3_seconds_sum 7.25
test_3_seconds_count 3
"#;
    assert_eq!(text, expected);
    encoded(Format::OpenMetrics, &one_of_each(), &mut text);
    let expected = r#"# HELP test_0_bytes What it\nmeans \"here\".
# TYPE test_0_bytes counter
# UNIT test_0_bytes bytes
test_0_bytes_total{port="\"0\"\\"} 7
test_0_bytes_created{port="\"0\"\\"} 1700000000.250
# HELP test_1_celsius What it\nmeans \"here\".
# TYPE test_1_celsius gauge
# UNIT test_1_celsius celsius
test_1_celsius 36.5
# HELP test_2 What it\nmeans \"here\".
# TYPE test_2 info
test_2_info{version="1"} 1
# HELP test_3_seconds What it\nmeans \"here\".
# TYPE test_3_seconds histogram
# UNIT test_3_seconds seconds
test_3_seconds_bucket{le="0.5"} 1
test_3_seconds_bucket{le="1.0"} 1
test_3_seconds_bucket{le="+Inf"} 3
test_3_seconds_sum 7.25
test_3_seconds_count 3
# EOF
"#;
    assert_eq!(text, expected);
}

#[test]
fn promtool_has_nothing_to_say() {
    let mut text = String::new();
    encoded(Format::Text, &one_of_each(), &mut text);
    match promtool(&text) {
        None => skip("exposition::promtool_has_nothing_to_say", "there is no promtool"),
        Some(said) => assert_eq!(said, "", "{text}"),
    }
}

#[test]
fn what_is_no_histogram_is_left_out() {
    let cases: [(&[f64], &[u64]); 4] = [
        (&[1.0, 1.0], &[0, 0, 0]),
        (&[2.0, 1.0], &[0, 0, 0]),
        (&[f64::NAN], &[0, 0]),
        (&[1.0], &[0]),
    ];
    for (bounds, counts) in cases {
        let mut text = String::new();
        let mut encoder = Encoder::new(Format::Text, &mut text);
        let head = Head { name: "x", help: "", kind: MetricKind::Histogram, unit: None };
        encoder.family(&head).histogram(&[], Buckets { bounds, counts, sum: 0.0 }, None);
        encoder.finish();
        assert_eq!(text, "");
    }
}

#[test]
fn the_strict_reader_refuses_what_it_should() {
    let head = "# HELP a b\n# TYPE a gauge\n";
    let bad = [
        "a 1 1700000000000",
        "a{x=\"1\",x=\"2\"} 1",
        "a{x=\"1\"}1",
        "a 1\na 2",
        "b 1",
        "a{x=\"\\d\"} 1",
        "a 0x10",
        "a 1\n# HELP a b\n# TYPE a gauge\na{x=\"1\"} 1",
        "a{x=\"1\"} 1\n# HELP c d\n# TYPE c gauge\nc 1\na{x=\"2\"} 1",
    ];
    for lines in bad {
        assert!(parse(&format!("{head}{lines}\n"), false).is_err(), "{lines}");
    }
    assert!(parse(&format!("{head}a 1\n"), false).is_ok());
    assert!(parse(&format!("{head}a 1\n"), true).is_err(), "no # EOF");
}
