//! What a training prints into the debug stream of the core that prints: the loss of each step from
//! here, and from a kernel the activations that were asked for. Where no other reads that
//! stream, it is read here: events are shown, and summed up on the endpoint.

use std::collections::HashMap;

use telltale_debug_stream::{
    Consumer, Event, NextEvent, Publisher, Stream, Tensor, TensorEvent, TextStyle, sink,
};
use telltale_gpt::Activations;
use telltale_operations::{OperationError, PRINTING_CORE, Session};
use telltale_runtime::{Gauge, Registry};

use crate::arguments::Print;
use crate::exit::Failure;

/// The prefix of losses.
const LOSS_PREFIX: &str = "loss";
/// The metrics that have the range of what was last printed, and the label with its prefix.
const PRINTED_MIN: &str = "gpt_printed_min";
const PRINTED_MEAN: &str = "gpt_printed_mean";
const PRINTED_MAX: &str = "gpt_printed_max";
const PRINTED_PREFIX: &str = "prefix";
/// How many numbers of an event are shown in JSON.
const MOST_JSON_VALUES: usize = 1_000;

/// See the module.
pub(super) struct Prints {
    wanted: Vec<Print>,
    publisher: Publisher,
    reading: Option<Reading>,
}

/// The stream's reader, if it is this process's command itself.
struct Reading {
    consumer: Consumer,
    registry: Registry,
    /// For each prefix the gauges of [`PRINTED_MIN`], [`PRINTED_MEAN`] and [`PRINTED_MAX`].
    gauges: HashMap<String, [Gauge; 3]>,
}

/// The range of the events of one prefix in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    min: f64,
    max: f64,
    sum: f64,
    count: f64,
}

// === impl Prints ===

impl Prints {
    /// Prints to `stream`, and reads it where `reads` says so.
    pub(super) fn begin(
        wanted: &[Print],
        stream: &Stream,
        reads: bool,
        registry: Registry,
    ) -> Result<Self, Failure> {
        let connect = || stream.connect().map_err(|error| Failure::because(&error));
        let consumer = (reads && !wanted.is_empty()).then(connect).transpose()?;
        let reading =
            consumer.map(|consumer| Reading { consumer, registry, gauges: HashMap::new() });
        Ok(Self { wanted: wanted.to_vec(), publisher: stream.publisher(), reading })
    }

    /// The stream to print to.
    pub(super) fn stream(session: &Session) -> &'static Stream {
        let stream = session.accelerator().debug_stream(PRINTING_CORE);
        stream.expect("every chip has a first core")
    }

    /// Prints what is due in step number `step`, counted from 1.
    pub(super) fn print(
        &self,
        step: u64,
        session: &Session,
        found: &Activations<'_>,
    ) -> Result<(), OperationError> {
        for print in self.wanted.iter().filter(|print| print.is_due(step)) {
            let tensor = found.get(print.activation).expect("checked against the sizes");
            session.print(&print.activation.to_string(), tensor)?;
        }
        Ok(())
    }

    /// How many activations are due in step number `step`, counted from 1. Each has a kernel of its own.
    pub(super) fn count_due(&self, step: u64) -> u64 {
        let mut due: Vec<_> = self.wanted.iter().filter(|print| print.is_due(step)).collect();
        due.sort_by_key(|print| print.activation.to_string());
        due.dedup_by_key(|print| print.activation.to_string());
        u64::try_from(due.len()).unwrap_or(u64::MAX)
    }

    /// Prints the loss of a step that is done.
    pub(super) fn print_loss(&self, loss: f32) {
        let data = loss.to_le_bytes();
        let event =
            TensorEvent { prefix: LOSS_PREFIX, dtype: "float32", shape: &[], data: &data, pipe: 0 };
        // What is lost, the stream counts.
        let _ = self.publisher.tensor(&event);
    }

    /// Takes what was printed since the last call, sums it up on the endpoint, and gives what is to
    /// be shown of it. The loss is in the step's own line.
    pub(super) fn take(&mut self, json: bool) -> Result<String, Failure> {
        let Some(reading) = &mut self.reading else { return Ok(String::new()) };
        let mut text = Vec::new();
        let mut ranges = HashMap::new();
        while let Some(next) =
            reading.consumer.try_next().map_err(|error| Failure::because(&error))?
        {
            if let NextEvent::Event(event) = &next {
                add(&mut ranges, event);
                if event.prefix == LOSS_PREFIX {
                    continue;
                }
            }
            // How well it could be shown is in what is shown.
            let _ = match json {
                true => sink::write_json_line(&mut text, &next, MOST_JSON_VALUES)?,
                false => sink::write_text(&mut text, &next, TextStyle::default())?,
            };
        }
        for (prefix, range) in ranges {
            reading.tell(prefix, range);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Adds an event to the range of its prefix, if it has numbers.
fn add(ranges: &mut HashMap<String, Range>, event: &Event) {
    let Ok(tensor) = Tensor::of(event) else { return };
    let found = tensor.statistics();
    let (Some(min), Some(max), Some(mean)) = (found.min, found.max, found.mean) else { return };
    let special = found.nan + found.infinite;
    let count = (tensor.elements() as u64).saturating_sub(special) as f64;
    let range = ranges.entry(event.prefix.clone());
    let empty = Range { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, count: 0.0 };
    let range = range.or_insert(empty);
    range.min = range.min.min(min);
    range.max = range.max.max(max);
    range.sum += mean * count;
    range.count += count;
}

impl Reading {
    fn tell(&mut self, prefix: String, range: Range) {
        let registry = &self.registry;
        let gauge = |name: &str, what: &str, prefix: &str| {
            let help = format!("{what} of the numbers that were last printed with this prefix");
            registry.gauge(name).help(help).label(PRINTED_PREFIX, prefix).register()
        };
        let [min, mean, max] = self.gauges.entry(prefix).or_insert_with_key(|prefix| {
            [
                gauge(PRINTED_MIN, "Smallest", prefix),
                gauge(PRINTED_MEAN, "Mean", prefix),
                gauge(PRINTED_MAX, "Largest", prefix),
            ]
        });
        min.set(range.min);
        mean.set(range.sum / range.count);
        max.set(range.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_prefix_is_that_of_all_its_events() {
        let mut ranges = HashMap::new();
        let stream = Stream::new(0, telltale_debug_stream::StreamOptions::default());
        let mut consumer = stream.connect().unwrap();
        for numbers in [&[1.0_f32, 2.0, f32::NAN][..], &[6.0]] {
            let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let shape = [numbers.len() as u64];
            let (dtype, data) = ("float32", &data[..]);
            let event = TensorEvent { prefix: "x", dtype, shape: &shape, data, pipe: 0 };
            let _ = stream.publisher().tensor(&event);
        }
        let _ = stream.publisher().text("x", 0, "no numbers");
        while let Some(NextEvent::Event(event)) = consumer.try_next().unwrap() {
            add(&mut ranges, &event);
        }
        assert_eq!(ranges["x"], Range { min: 1.0, max: 6.0, sum: 9.0, count: 3.0 });
    }
}
