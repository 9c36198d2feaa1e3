//! What a training reports about itself, found by the names of its metrics: `NAME_loss` and `NAME_step`,
//! beside them `NAME_tokens_per_second`, and before its first loss how many kernels are ready.

use telltale_schema::quantity;
use telltale_schema::snapshot::{MetricSample, MetricValue, Process};

/// How the metrics are called, behind the name of the training.
const LOSS: &str = "loss";
const STEP: &str = "step";
const TOKENS_PER_SECOND: &str = "tokens_per_second";
const KERNELS: &str = "kernels";
const KERNELS_READY: &str = "kernels_ready";
const PRINTED: [&str; 3] = ["printed_min", "printed_mean", "printed_max"];
/// The label of what was printed.
const PREFIX: &str = "prefix";

/// What a training reports. It has a loss from its first step on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingReport {
    /// The loss of the last step.
    pub loss: Option<f64>,
    /// The number of the last step.
    pub step: Option<u64>,
    /// Tokens learned from in a second.
    pub tokens_per_second: Option<u64>,
    /// Kernels that the first step has, and how many of them are ready.
    pub kernels: Option<(u64, u64)>,
    /// What its kernels printed last into the debug stream, in words.
    pub printed: Option<String>,
}

// === impl TrainingReport ===

impl TrainingReport {
    /// What a process reports; none where it reports no training.
    #[must_use]
    pub fn of(process: &Process) -> Option<Self> {
        let pairs = [[LOSS, STEP], [KERNELS, KERNELS_READY]];
        let name = pairs.into_iter().find_map(|pair| name(process, pair))?;
        let reported = |metric: &str| gauge(process, &format!("{name}{metric}"));
        let number = |metric: &str| reported(metric).map(whole);
        let kernels = number(KERNELS_READY).zip(number(KERNELS));
        Some(Self {
            loss: reported(LOSS),
            step: number(STEP),
            tokens_per_second: number(TOKENS_PER_SECOND),
            kernels: kernels.map(|(ready, all)| (all, ready.min(all))),
            printed: printed(process, name),
        })
    }

    /// Its progress as a sentence, without what was printed.
    #[must_use]
    pub fn words(&self) -> String {
        let Some(loss) = self.loss else { return self.compiling() };
        let step = self.step.map(|step| format!("step {}", quantity::count(step)));
        let speed = self.tokens_per_second.map(|it| format!("{} tokens/s", quantity::count(it)));
        let parts = [step, Some(format!("loss {loss:.4}")), speed];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// How far the first step is with its kernels.
    fn compiling(&self) -> String {
        match self.kernels {
            Some((all, ready)) if ready < all => {
                format!("compiling kernel {} of {all}", ready + 1)
            }
            _ => String::from("first step"),
        }
    }
}

/// What stands before the names of two metrics that the process has, an underscore included. One alone says
/// little: packets are lost, too.
fn name<'a>(process: &'a Process, [metric, other]: [&str; 2]) -> Option<&'a str> {
    let mut names = process.metrics.iter().filter_map(|sample| sample.name.strip_suffix(metric));
    names.find(|name| {
        let is_whole = name.is_empty() || name.ends_with('_');
        is_whole
            && [metric, other].iter().all(|it| gauge(process, &format!("{name}{it}")).is_some())
    })
}

fn gauge(process: &Process, name: &str) -> Option<f64> {
    process.metrics.iter().find(|sample| sample.name == name).and_then(value)
}

fn value(sample: &MetricSample) -> Option<f64> {
    match sample.value {
        MetricValue::Gauge(value) => Some(value),
        MetricValue::Counter(_) | MetricValue::Histogram { .. } => None,
    }
}

/// What is no number of things becomes the nearest one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

/// The last prints of a process: its loss, and the range of each activation.
fn printed(process: &Process, name: &str) -> Option<String> {
    let [min, mean, max] = PRINTED.map(|metric| format!("{name}{metric}"));
    let mut parts = Vec::new();
    for sample in process.metrics.iter().filter(|sample| sample.name == mean) {
        let Some((_, prefix)) = sample.labels.iter().find(|(label, _)| label == PREFIX) else {
            continue;
        };
        let of_prefix = |name: &str| {
            let mut samples = process.metrics.iter();
            samples.find(|it| it.name == name && it.labels == sample.labels).and_then(value)
        };
        let Some(mean) = value(sample) else { continue };
        if prefix == LOSS {
            parts.insert(0, format!("{prefix} {mean:.4}"));
        } else if let Some((min, max)) = of_prefix(&min).zip(of_prefix(&max)) {
            parts.push(format!("{prefix} {min:.3} to {max:.3}, mean {mean:.4}"));
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::TrainingReport;
    use telltale_schema::snapshot::{MetricSample, MetricValue, Process};

    fn process(gauges: &[(&str, f64)]) -> Process {
        let sample = |(name, value): &(&str, f64)| MetricSample {
            name: (*name).to_owned(),
            help: String::new(),
            unit: String::new(),
            labels: Vec::new(),
            value: MetricValue::Gauge(*value),
        };
        Process { metrics: gauges.iter().map(sample).collect(), ..Process::hidden(None, "train") }
    }

    fn words(gauges: &[(&str, f64)]) -> Option<String> {
        TrainingReport::of(&process(gauges)).map(|report| report.words())
    }

    #[test]
    fn a_training_is_found_by_its_loss_or_by_its_kernels() {
        assert_eq!(words(&[("packet_loss", 0.1), ("gloss", 1.0), ("gstep", 1.0)]), None);
        let short = words(&[("loss", 0.5), ("step", 1.0)]);
        assert_eq!(short.as_deref(), Some("step 1, loss 0.5000"));
        let gauges = [("x_loss", 2.5), ("x_step", 1200.0), ("x_tokens_per_second", 64_000.0)];
        let whole = words(&gauges).unwrap();
        assert_eq!(whole, "step 1,200, loss 2.5000, 64,000 tokens/s");
        let compiling = |ready| words(&[("x_kernels", 23.0), ("x_kernels_ready", ready)]).unwrap();
        assert_eq!(compiling(0.0), "compiling kernel 1 of 23");
        assert_eq!(compiling(6.0), "compiling kernel 7 of 23");
        assert_eq!(compiling(23.0), "first step");
    }
}
