//! What runs on the machine of the pictures: a training on four chips, a chip that three people share, and services.
//! Each replays a trace of the sizes that such a program has.

use std::fs::File;
use std::path::Path;

use telltale_trace::{Description, Writer};

use crate::cli::page::fixture::Fixture;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// How long a trace is; it is replayed in a loop.
const SECONDS: u64 = 600;
const LAYERS: u64 = 16;
/// What is small goes to L1.
const TILE_BYTES: u64 = 32 << 10;
/// What a layer allocates for a moment only, which keeps the chip busy.
const TEMPORARIES: u64 = 300;

/// What a program holds, and how that changes.
struct Workload {
    name: &'static str,
    devices: &'static [usize],
    /// What it holds all the time.
    weights_bytes: u64,
    /// What a step adds, layer by layer, before it gives that back.
    step_bytes: u64,
    step_seconds: u64,
    /// Whether all is given back at once, as the requests of a service are; else layer by layer.
    at_once: bool,
}

const WORKLOADS: [Workload; 7] = [
    work("pretrain", &[0, 1, 2, 3], (5, 4 * GIB), 24, false),
    work("finetune", &[8], (2, 3 * GIB), 36, false),
    work("notebook", &[8], (1, 512 * MIB), 100, true),
    work("evaluate", &[8], (2, GIB), 50, true),
    work("serve-chat", &[9, 10], (6, 3 * GIB), 45, true),
    work("serve-code", &[17], (10, 512 * MIB), 60, true),
    work("embed", &[24], (11, 640 * MIB), 20, true),
];

const fn work(
    name: &'static str,
    devices: &'static [usize],
    (weights_gib, step_bytes): (u64, u64),
    step_seconds: u64,
    at_once: bool,
) -> Workload {
    Workload { name, devices, weights_bytes: weights_gib * GIB, step_bytes, step_seconds, at_once }
}

/// Names of workloads, which every picture of the whole machine shows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name)
}

/// Starts all of them.
pub(super) fn start(fixture: &mut Fixture) {
    for workload in &WORKLOADS {
        let trace = format!("{}.trace", workload.name);
        workload.write(&fixture.place().join(&trace));
        for device in workload.devices {
            fixture.start(workload.name, workload.name, &trace, *device);
        }
    }
    fixture.wait_for_workloads();
}

impl Workload {
    fn write(&self, path: &Path) {
        let description = Description {
            made_with: "sizes and times made up for a picture".to_owned(),
            command: self.name.to_owned(),
            page_bytes: 4096,
            threshold_bytes: 4096,
        };
        let mut trace = Writer::new(File::create(path).unwrap(), description).unwrap();
        for _ in 0..LAYERS {
            trace.allocate(0, 0, self.weights_bytes / LAYERS).unwrap();
        }
        // A layer forward takes half as long as one backward.
        let third = self.step_seconds * 1_000_000_000 / (3 * LAYERS);
        for _ in 0..SECONDS / self.step_seconds {
            let mut layers = Vec::new();
            for _ in 0..LAYERS {
                layers.push(trace.allocate(0, 0, self.step_bytes / LAYERS).unwrap());
                layers.push(trace.allocate(0, 0, TILE_BYTES).unwrap());
                compute(&mut trace, if self.at_once { 3 * third } else { third });
            }
            while let Some(one) = layers.pop() {
                trace.free(0, 0, one).unwrap();
                if !self.at_once && layers.len() % 2 == 0 {
                    compute(&mut trace, 2 * third);
                }
            }
        }
        trace.finish().unwrap();
    }
}

/// So much time with what a layer needs for a moment.
fn compute(trace: &mut Writer<File>, nanoseconds: u64) {
    for _ in 0..TEMPORARIES {
        let one = trace.allocate(nanoseconds / TEMPORARIES, 0, TILE_BYTES).unwrap();
        trace.free(0, 0, one).unwrap();
    }
}
