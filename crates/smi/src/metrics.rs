//! What a process's endpoint tells besides memory, a line for each value.

use telltale_schema::snapshot::{MetricSample, MetricValue};

use crate::quantity;

/// The beginning of the names of what an endpoint counts of itself: refusals and errors.
const OF_ENDPOINTS: &str = "telltale_endpoint_";

/// Whether the value is one that an endpoint counts of itself, and nothing has happened yet.
pub(crate) fn is_idle_endpoint(sample: &MetricSample) -> bool {
    sample.name.starts_with(OF_ENDPOINTS) && sample.value == MetricValue::Counter(0)
}

/// The name of a value, with its labels, and the value as text.
pub(crate) fn line(sample: &MetricSample) -> (String, String) {
    let mut name = quantity::printable(&sample.name);
    if !sample.labels.is_empty() {
        let labels = sample.labels.iter().map(|(label, value)| format!("{label}={value:?}"));
        let labels = labels.collect::<Vec<_>>().join(",");
        name.push_str(&format!("{{{}}}", quantity::printable(&labels)));
    }
    let value = match &sample.value {
        MetricValue::Counter(count) => quantity::count(*count),
        MetricValue::Gauge(value) => value.to_string(),
        MetricValue::Histogram { sum, .. } => {
            let observations = sample.value.observations();
            format!("{} observations, sum {sum}", quantity::count(observations))
        }
    };
    (name, value)
}

#[cfg(test)]
mod tests {
    use telltale_schema::snapshot::{MetricSample, MetricValue};

    use super::line;

    #[test]
    fn values_of_each_kind_read_well_and_steer_nothing() {
        let sample = |labels: &[(&str, &str)], value| MetricSample {
            name: String::from("jobs"),
            help: String::new(),
            unit: String::new(),
            labels: labels.iter().map(|(l, v)| ((*l).to_owned(), (*v).to_owned())).collect(),
            value,
        };
        let histogram =
            MetricValue::Histogram { bounds: vec![1.0], counts: vec![u64::MAX, 1], sum: 2.5 };
        let cases = [
            (sample(&[], MetricValue::Counter(1234)), "jobs 1,234"),
            (sample(&[("device", "0")], MetricValue::Gauge(0.5)), "jobs{device=\"0\"} 0.5"),
            (
                sample(&[("a", "\u{202e}x")], histogram),
                "jobs{a=\"\\u{202e}x\"} 18,446,744,073,709,551,615 observations, sum 2.5",
            ),
        ];
        for (sample, text) in cases {
            let (name, value) = line(&sample);
            assert_eq!(format!("{name} {value}"), text);
        }
    }
}
