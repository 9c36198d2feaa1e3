//! Samples as messages of OTLP. It remembers since when each counter counts, and nothing else, so
//! that a series that has gone is in no message.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Point;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use telltale_schema::metric::MetricDefinition;
use telltale_schema::metric::otlp::{
    HEALTH_STATE, Instrument, attribute, health_state, instrument, name_of,
};
use telltale_wire::exposition::Number;

use super::OtlpOptions;
use crate::samples::{Family, Sample, SampleValue, Samples};
use crate::service::Published;

/// Points of one message. With 300 bytes each they stay below the 4 MiB that receivers take.
const MOST_POINTS: usize = 8192;

/// The version of the conventions whose names are used.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Makes messages.
#[derive(Debug)]
pub(super) struct Messages {
    attributes: Vec<(String, String)>,
    hashes: RandomState,
    /// Since when each counter counts, and what it was, by the hash of its names and labels.
    counters: HashMap<u64, Count>,
    last_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    since_ns: u64,
    value: f64,
}

/// The points of a message.
pub(super) fn points(request: &ExportMetricsServiceRequest) -> u64 {
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let count = scopes.flat_map(|scope| &scope.metrics).map(points_of).sum::<usize>();
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn points_of(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        _ => 0,
    }
}

impl Messages {
    pub(super) fn new(options: &OtlpOptions) -> Self {
        let uname = rustix::system::uname();
        let mut attributes = vec![
            ("service.name".to_owned(), "telltale".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("host.name".to_owned(), uname.nodename().to_string_lossy().into_owned()),
            ("os.type".to_owned(), "linux".to_owned()),
        ];
        if let Ok(id) = std::fs::read_to_string("/etc/machine-id") {
            attributes.push(("host.id".to_owned(), id.trim().to_owned()));
        }
        for pair in &options.attributes {
            if let Some((name, value)) = pair.split_once('=') {
                attributes.retain(|(other, _)| other != name);
                attributes.push((name.to_owned(), value.to_owned()));
            }
        }
        Self { attributes, hashes: RandomState::new(), counters: HashMap::new(), last_ns: 0 }
    }

    /// The messages with all of these samples.
    pub(super) fn make(
        &mut self,
        samples: &Samples<'_>,
        published: &Published,
    ) -> Vec<ExportMetricsServiceRequest> {
        let now_ns = published.snapshot.taken_at.0;
        let before = std::mem::take(&mut self.counters);
        let mut metrics: Vec<Metric> = Vec::new();
        for family in samples.families() {
            let metric = self.metric(samples, family, now_ns, &before);
            // Two families of ours may be one metric there: bytes received and bytes sent.
            match metrics.iter_mut().find(|other| other.name == metric.name) {
                Some(other) => merge(other, metric),
                None => metrics.push(metric),
            }
        }
        self.last_ns = now_ns;
        let mut requests = Vec::new();
        let (mut part, mut count) = (Vec::new(), 0);
        for metric in metrics.into_iter().flat_map(split) {
            let points = points_of(&metric);
            if count + points > MOST_POINTS && !part.is_empty() {
                requests.push(self.request(std::mem::take(&mut part)));
                count = 0;
            }
            count += points;
            part.push(metric);
        }
        requests.push(self.request(part));
        requests
    }

    fn request(&self, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
        let attributes = self.attributes.iter().map(|(name, value)| text(name, value)).collect();
        let scope = InstrumentationScope {
            name: "telltale".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_metrics =
            vec![ScopeMetrics { scope: Some(scope), metrics, schema_url: SCHEMA.to_owned() }];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let schema_url = SCHEMA.to_owned();
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, schema_url }];
        ExportMetricsServiceRequest { resource_metrics }
    }

    fn metric(
        &mut self,
        samples: &Samples<'_>,
        family: &Family<'_>,
        now_ns: u64,
        before: &HashMap<u64, Count>,
    ) -> Metric {
        let head = family.head();
        let (name, unit, kind, common) = match family.definition().map(name_of) {
            Some(known) => (known.name, known.unit.to_owned(), known.instrument, known.attribute),
            // Registered by a process, which chose its unit too.
            None => {
                let name =
                    head.stem().replacen("telltale_application_", "telltale.application.", 1);
                (name, head.unit.unwrap_or("1").to_owned(), instrument(head.kind), None)
            }
        };
        let common: Vec<KeyValue> = common.iter().map(|(name, value)| text(name, value)).collect();
        let (mut numbers, mut histograms) = (Vec::new(), Vec::new());
        for sample in family.samples() {
            let mut attributes = common.clone();
            let own = samples.labels(sample);
            attributes
                .extend(own.map(|(label, value)| labelled(family.definition(), label, value)));
            let created = family.created().map(|created| created.0);
            let mut since = |total: f64| {
                created
                    .unwrap_or_else(|| self.since(samples, family, sample, total, now_ns, before))
            };
            match sample.value() {
                SampleValue::Number(number) => {
                    let counts = kind == Instrument::Counter;
                    numbers.push(NumberDataPoint {
                        attributes,
                        start_time_unix_nano: if counts { since(float(*number)) } else { 0 },
                        time_unix_nano: now_ns,
                        value: Some(point(*number)),
                        ..NumberDataPoint::default()
                    });
                }
                SampleValue::Buckets(counted) => {
                    let count = counted.counts.iter().copied().fold(0, u64::saturating_add);
                    let grows = counted.bounds.first().is_none_or(|bound| *bound >= 0.0);
                    histograms.push(HistogramDataPoint {
                        attributes,
                        start_time_unix_nano: since(float(Number::Whole(count))),
                        time_unix_nano: now_ns,
                        count,
                        sum: Some(counted.sum.value())
                            .filter(|sum| grows && *sum >= 0.0 && sum.is_finite()),
                        bucket_counts: counted.counts.to_vec(),
                        explicit_bounds: counted.bounds.to_vec(),
                        ..HistogramDataPoint::default()
                    });
                }
            }
        }
        let description = head.help.to_owned();
        Metric {
            name,
            description,
            unit,
            metadata: Vec::new(),
            data: Some(data(kind, numbers, histograms)),
        }
    }

    /// Since when a counter counts: from when it was first seen, or after a fall from the message
    /// before, in which it was still the old one.
    fn since(
        &mut self,
        samples: &Samples<'_>,
        family: &Family<'_>,
        sample: &Sample<'_>,
        value: f64,
        now_ns: u64,
        before: &HashMap<u64, Count>,
    ) -> u64 {
        let labels: Vec<(&str, &str)> = samples.labels(sample).collect();
        let key = self.hashes.hash_one((family.head().name, labels));
        let since_ns = match before.get(&key) {
            Some(count) if value >= count.value => count.since_ns,
            Some(_) => self.last_ns,
            None => now_ns,
        };
        self.counters.insert(key, Count { since_ns, value });
        since_ns
    }
}

/// The points of a metric, of which it has one kind.
fn data(
    kind: Instrument,
    numbers: Vec<NumberDataPoint>,
    histograms: Vec<HistogramDataPoint>,
) -> Data {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    match kind {
        Instrument::Gauge => Data::Gauge(Gauge { data_points: numbers }),
        Instrument::Histogram => {
            Data::Histogram(Histogram { data_points: histograms, aggregation_temporality })
        }
        Instrument::Counter | Instrument::UpDownCounter => Data::Sum(Sum {
            data_points: numbers,
            aggregation_temporality,
            is_monotonic: kind == Instrument::Counter,
        }),
    }
}

fn merge(one: &mut Metric, other: Metric) {
    if let (Some(Data::Sum(one)), Some(Data::Sum(other))) = (&mut one.data, other.data) {
        one.data_points.extend(other.data_points);
    }
}

/// A metric in parts that fit a message.
fn split(metric: Metric) -> Vec<Metric> {
    if points_of(&metric) <= MOST_POINTS {
        return vec![metric];
    }
    let Metric { name, description, unit, metadata, data } = metric;
    let with = |data| Metric {
        name: name.clone(),
        description: description.clone(),
        unit: unit.clone(),
        metadata: metadata.clone(),
        data: Some(data),
    };
    match data {
        Some(Data::Gauge(gauge)) => {
            let parts = gauge.data_points.chunks(MOST_POINTS);
            parts.map(|part| with(Data::Gauge(Gauge { data_points: part.to_vec() }))).collect()
        }
        Some(Data::Sum(sum)) => {
            let parts = sum.data_points.chunks(MOST_POINTS);
            parts.map(|part| with(Data::Sum(Sum { data_points: part.to_vec(), ..sum }))).collect()
        }
        Some(data) => vec![with(data)],
        None => Vec::new(),
    }
}

fn text(name: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Any::StringValue(value.to_owned())) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

fn labelled(metric: Option<&MetricDefinition>, label: &str, value: &str) -> KeyValue {
    let name = attribute(metric, label).unwrap_or(label);
    if name == HEALTH_STATE {
        return text(name, health_state(value));
    }
    match value.parse::<i64>() {
        Ok(number) if matches!(label, "pid" | "namespace_pid") => {
            let value = Some(AnyValue { value: Some(Any::IntValue(number)) });
            KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
        }
        _ => text(name, value),
    }
}

/// A whole number beyond what the protocol has becomes the nearest one with a point.
fn point(number: Number) -> Point {
    match number {
        Number::Whole(whole) => match i64::try_from(whole) {
            Ok(whole) => Point::AsInt(whole),
            Err(_) => Point::AsDouble(float(number)),
        },
        Number::Float(float) => Point::AsDouble(float),
    }
}

#[allow(clippy::cast_precision_loss)]
fn float(number: Number) -> f64 {
    match number {
        Number::Whole(whole) => whole as f64,
        Number::Float(float) => float,
    }
}
