//! Numbers that programs tell, and JSON.

// A step that fails is the report of the test that needed it.
#![allow(clippy::unwrap_used)]

use telltale_schema::snapshot::MetricValue;

#[test]
fn a_number_that_json_has_not_survives_it() {
    let cases = [
        (1.5, "1.5"),
        (-0.0, "-0.0"),
        (f64::NAN, "\"NaN\""),
        (f64::INFINITY, "\"+Inf\""),
        (f64::NEG_INFINITY, "\"-Inf\""),
    ];
    let read = |text: &str| match serde_json::from_str(text).unwrap() {
        MetricValue::Gauge(value) => value,
        MetricValue::Histogram { sum, .. } => sum,
        MetricValue::Counter(_) => panic!("{text} is no counter"),
    };
    for (value, text) in cases {
        let gauge = format!(r#"{{"gauge":{text}}}"#);
        assert_eq!(serde_json::to_string(&MetricValue::Gauge(value)).unwrap(), gauge);
        assert_eq!(read(&gauge).to_bits(), value.to_bits());
        let (bounds, counts) = (vec![0.5], vec![1, 2]);
        let whole = MetricValue::Histogram { bounds, counts, sum: value };
        let histogram =
            format!(r#"{{"histogram":{{"bounds":[0.5],"counts":[1,2],"sum":{text}}}}}"#);
        assert_eq!(serde_json::to_string(&whole).unwrap(), histogram);
        assert_eq!(read(&histogram).to_bits(), value.to_bits());
    }
}

#[test]
fn what_older_versions_and_other_programs_wrote_is_read_or_refused() {
    let read = |text: &str| serde_json::from_str::<MetricValue>(text);
    let is_nan = |value| matches!(value, MetricValue::Gauge(value) if value.is_nan());
    assert!(is_nan(read(r#"{"gauge":null}"#).unwrap()), "what stood for it before");
    assert_eq!(read(r#"{"gauge":7}"#).unwrap(), MetricValue::Gauge(7.0));
    assert_eq!(read(r#"{"gauge":-7}"#).unwrap(), MetricValue::Gauge(-7.0));
    for bad in [r#""nan""#, r#""7""#, r#""""#, "true", "[]", "{}"] {
        assert!(read(&format!(r#"{{"gauge":{bad}}}"#)).is_err(), "{bad}");
    }
}
