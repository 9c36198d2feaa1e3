//! Unchanged PyTorch trainings of several shapes, with one rank's processor limited or one link held: who is named.
//!
//! `.ci/long` runs each situation five times, `.ci/run` some of them once.

use std::time::Instant;

use serde_json::Value;
use telltale_harness::{long, wait_until};

use crate::cluster::job::{Job, TIMEOUT};
use crate::cluster::network::Network;
use crate::cluster::throttle::Throttle;
use crate::cluster::training::{NODES, PYTHON, turn};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/shapes.py");
/// How many seconds a verdict is watched for others beside it.
const WATCHED_SECONDS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The processor of rank 2, on c, is limited.
    Processor,
    /// The link between b and c is slow, both ways or one.
    BothWays,
    OneWay,
}

#[derive(Debug, Clone, Copy)]
struct Situation {
    shape: &'static str,
    fault: Fault,
    /// From the first step on, or from the tenth.
    from_the_start: bool,
}

impl Situation {
    /// All of them.
    fn all() -> Vec<Self> {
        let of = |shape, fault| {
            [true, false].map(|from_the_start| Self { shape, fault, from_the_start })
        };
        let faults = [Fault::Processor, Fault::BothWays, Fault::OneWay];
        let all = ["ddp", "pipeline", "ring", "pairs"].into_iter();
        all.flat_map(|shape| faults.map(|fault| of(shape, fault))).flatten().collect()
    }

    /// Whether a verdict's text names what is at fault and nothing else.
    fn is_right(self, text: &str) -> bool {
        let names: &[&str] = match self.fault {
            Fault::Processor => &["slow node: node c;"],
            Fault::OneWay if self.shape == "ddp" => &["slow link: link from c to b;"],
            Fault::OneWay => &["slow link: link from b to c;"],
            // One way may be beyond doubt some looks before the other.
            Fault::BothWays => &[
                "slow link: link between b and c;",
                "slow link: link from b to c;",
                "slow link: link from c to b;",
            ],
        };
        names.iter().any(|name| text.starts_with(name))
    }

    /// Runs it, and says after how many seconds the first verdict came. Panics at a wrong one.
    fn run(self) -> Option<f64> {
        let test = "cluster::shapes";
        let network = Network::of(NODES.len(), test)?;
        let _turn = turn(test)?;
        let mut job = Job::start(4, &[PYTHON, SCRIPT]);
        job.set("SHAPE", self.shape);
        job.set("GLOO_SOCKET_IFNAME", Network::INTERFACE);
        if self.from_the_start && self.fault != Fault::Processor {
            self.slow(&network);
        }
        for (place, node) in NODES.into_iter().enumerate() {
            let (by, address) = (network.entry(place), Network::address(place));
            job.add_by(&by, &address, node, &["--stop-grace", "2"]);
        }
        let limited = job.worker("c", 1, 2);
        if !self.from_the_start {
            job.wait_printed("a", 1, 0, "step 10\n");
        }
        let throttle = (self.fault == Fault::Processor).then(|| Throttle::on(limited));
        if !self.from_the_start && throttle.is_none() {
            self.slow(&network);
        }
        job.wait_printed("a", 1, 0, "step 0\n");
        let began = Instant::now();
        wait_until(&format!("a verdict of {self:?}"), TIMEOUT, || !events(&job).is_empty());
        let seconds = began.elapsed().as_secs_f64();
        wait_until("others beside it", TIMEOUT, || {
            let wrong = events(&job).into_iter().find(|text| !self.is_right(text));
            assert_eq!(
                wrong,
                None,
                "{self:?}: {} {}",
                job.json(&["report"])["text"],
                job.json(&["incidents"])
            );
            began.elapsed().as_secs_f64() > seconds + WATCHED_SECONDS as f64
        });
        drop(throttle);
        Some(seconds)
    }

    fn slow(self, network: &Network) {
        match self.fault {
            Fault::Processor => {}
            Fault::BothWays => network.slow(1, 2),
            // There each rank sends to the one before, in Gloo's all-reduce.
            Fault::OneWay if self.shape == "ddp" => network.slow_one_way(2, 1),
            Fault::OneWay => network.slow_one_way(1, 2),
        }
    }
}

/// What all incidents have been events of.
fn events(job: &Job) -> Vec<String> {
    let incidents = job.json(&["incidents"]);
    let all = incidents.as_array().into_iter().flatten();
    let events = all.flat_map(|one| one["signs"].as_array().cloned().unwrap_or_default());
    events.filter_map(|event: Value| Some(event["text"].as_str()?.to_owned())).collect()
}

/// `TELLTALE_SITUATIONS=5 TELLTALE_LONG_TESTS=1 cargo test -p telltale --test main cluster::shapes -- --nocapture` runs all
/// of them, each five times.
#[test]
fn a_limited_processor_and_a_slow_link_are_distinguished() {
    if !long() {
        return;
    }
    let rounds = std::env::var("TELLTALE_SITUATIONS").ok();
    let rounds: Option<u32> = rounds.map(|text| text.parse().expect("a number"));
    let some = [
        ("ring", Fault::Processor, true),
        ("pairs", Fault::OneWay, false),
        ("ring", Fault::BothWays, true),
        ("ddp", Fault::OneWay, true),
    ];
    let some =
        some.map(|(shape, fault, from_the_start)| Situation { shape, fault, from_the_start });
    let situations = rounds.map_or_else(|| some.to_vec(), |_| Situation::all());
    let only = std::env::var("TELLTALE_SITUATION").unwrap_or_default();
    for situation in situations.into_iter().filter(|one| format!("{one:?}").contains(&only)) {
        let runs = (0..rounds.unwrap_or(1)).map_while(|_| situation.run());
        let seconds: Vec<String> = runs.map(|seconds| format!("{seconds:.1}")).collect();
        println!("{situation:?}: right {} times, after {} s", seconds.len(), seconds.join(", "));
    }
}
