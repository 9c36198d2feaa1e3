//! Metrics as a scraper gets them: how long a text takes to make, and how many samples a second are
//! served, beside all-smi and Debian's node exporter where they are installed.
//!
//! The servers run as they would in use, one at a time being asked; each request is a whole scrape
//! over one connection that is kept.

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::Duration;

use telltale_client::Client;
use telltale_client::connect;
use telltale_collector::CollectOptions;
use telltale_node::samples::{SampleOptions, Sampler};
use telltale_node::service::{Service, ServiceOptions};
use telltale_wire::exposition::Format;
use telltale_wire::telemetry::encode;
use telltale_wire::telemetry::message::GetSnapshotRequest;
use tokio::runtime::{Builder, Runtime};

use crate::machine::{BusyMachine, Size};
use crate::sample::{Effort, Measurements, interleave, time_ns};
use crate::served::{all_smi, node_exporter, ours};
use crate::table::{Row, Table, Target, Unit};

/// Workloads in a full or quick run.
const WORKLOADS: u64 = 64;
/// Workloads when only the working is shown.
const FEW_WORKLOADS: u64 = 3;
/// The samples that the target for encoding names: one for each chip and each pair of chip and
/// process.
const NAMED_SAMPLES: f64 = 2080.0;
/// Scrapes of ours and of all-smi in one repeat; of the node exporter, which is slower, fewer.
const SCRAPES: u64 = 500;
const SCRAPES_OF_EXPORTER: u64 = 50;

/// How long the samples of the machine take to make and to write, and how many there are.
fn making(busy: &BusyMachine, effort: Effort) -> io::Result<([Measurements; 3], usize)> {
    let collect = CollectOptions { root: busy.root().to_owned(), ..CollectOptions::default() };
    let interval = Duration::from_secs(3600);
    let service = Service::start(ServiceOptions { collect, interval, legacy: None, known: None })
        .map_err(io::Error::other)?;
    let published = service.view().latest();
    let options = SampleOptions { process_pids: true, ..SampleOptions::default() };
    let mut sampler = Sampler::new(options);
    let mut other = Sampler::new(options);
    let samples = sampler.sample(&published, &published.snapshot, None);
    let count = samples.count();
    let (rounds, mut text) = (effort.operations(200), String::new());
    let values = interleave(
        effort.repeats(),
        [
            Box::new(|| {
                let all = || {
                    for _ in 0..rounds {
                        samples.encode(Format::Text, &mut text);
                    }
                };
                time_ns(rounds, all) * NAMED_SAMPLES / count as f64
            }),
            Box::new(|| {
                let all = || {
                    for _ in 0..rounds {
                        other.sample(&published, &published.snapshot, None);
                    }
                };
                time_ns(rounds, all)
            }),
            Box::new(|| {
                let all = || {
                    for _ in 0..rounds {
                        black_box(encode::snapshot(&published.snapshot));
                    }
                };
                time_ns(rounds, all)
            }),
        ],
    );
    Ok((values, count))
}

/// Calls of GetSnapshot over the service's socket file, one after the other.
struct Calls {
    runtime: Runtime,
    client: Client,
}

impl Calls {
    fn connect(path: &Path) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(connect(path)).map_err(io::Error::other)?;
        Ok(Self { runtime, client })
    }

    /// Nanoseconds of one of so many calls.
    fn time(&mut self, count: u64) -> f64 {
        let Self { runtime, client } = self;
        let request = GetSnapshotRequest::default();
        time_ns(count, || {
            runtime.block_on(async {
                for _ in 0..count {
                    let answer = client.unary("GetSnapshot", &request).await;
                    black_box(answer.expect("a service that answered answers again"));
                }
            });
        })
    }
}

/// What making a text costs, and how fast it is served.
///
/// # Errors
/// When the machine or a server cannot be started.
pub fn table(worker: &Path, serve: &Path, effort: Effort) -> io::Result<Table> {
    let workloads = if effort == Effort::Once { FEW_WORKLOADS } else { WORKLOADS };
    let busy = BusyMachine::start(worker, Size::Galaxy, workloads)?;
    let ([encoding, sampling, for_grpc], count) = making(&busy, effort)?;
    let socket = busy.root().join("grpc.sock");
    let mut ours = ours(serve, &busy, &["--grpc", &format!("unix:{}", socket.display())])?;
    let mut calls = Calls::connect(&socket)?;
    let mut rivals = [all_smi().transpose()?, node_exporter().transpose()?];
    let mut remarks =
        vec![format!("ours: {} samples, {} bytes a scrape", ours.samples(), ours.bytes())];
    for (rival, name) in rivals.iter().zip(["all-smi", "prometheus-node-exporter"]) {
        remarks.push(match rival {
            Some(rival) => {
                format!("{name}: {} samples, {} bytes a scrape", rival.samples(), rival.bytes())
            }
            None => format!("{name} is not installed and has no value"),
        });
    }
    let [mut each, mut slow, mut called] = [Vec::new(), Vec::new(), Vec::new()];
    let mut others = [Vec::new(), Vec::new()];
    let counts = [SCRAPES, SCRAPES_OF_EXPORTER].map(|count| effort.operations(count));
    for round in 0..=effort.repeats() {
        let (sample, p99) = ours.scrapes(counts[0]);
        let call = calls.time(counts[0]);
        let of_others = [0, 1].map(|at| rivals[at].as_mut().map(|it| it.scrapes(counts[at]).0));
        // The first round is not recorded.
        if round > 0 {
            each.push(sample);
            slow.push(p99);
            called.push(call);
            for (values, value) in others.iter_mut().zip(of_others) {
                values.extend(value);
            }
        }
    }
    let [of_smi, of_exporter] =
        others.map(|values| (!values.is_empty()).then(|| Measurements::new(values)));
    let each = Measurements::new(each);
    let row = |what: &str, ours: &Measurements, baseline, target| Row {
        what: what.to_owned(),
        unit: Unit::Time,
        ours: Some(ours.clone()),
        baseline,
        target,
    };
    let at_most = |most| Target { at_most: Some(most), ..Target::default() };
    let times = |times| Target { times_better: Some(times), ..Target::default() };
    Ok(Table {
        heading: format!(
            "Metrics of {} chips x {} processes; a sample served is a share of a scrape",
            busy.size().chips(),
            busy.workloads()
        ),
        rows: vec![
            row("write 2,080 samples as text", &encoding, None, at_most(100e3)),
            row(&format!("make {count} samples of a snapshot"), &sampling, None, Target::default()),
            row("the same snapshot as bytes for gRPC", &for_grpc, None, Target::default()),
            row(
                "GetSnapshot by gRPC, whole answer",
                &Measurements::new(called),
                None,
                Target::default(),
            ),
            row("a scrape over loopback, 99 of 100", &Measurements::new(slow), None, at_most(5e6)),
            row("a sample served; baseline: all-smi api", &each, of_smi, times(5.0)),
            row("a sample served; baseline: node exporter", &each, of_exporter, times(20.0)),
        ],
        remarks,
    })
}
