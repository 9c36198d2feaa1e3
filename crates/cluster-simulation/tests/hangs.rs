//! Hangs of the network are located in jobs of every shape.
//!
//! `TELLTALE_LONG_TESTS=1 cargo test --release -p telltale-cluster-simulation --test main hangs:: -- --nocapture`
//! goes up to 1,024 ranks and prints what docs/benchmarks/hangs.md has.

use std::collections::BTreeMap;

use telltale_cluster_simulation::faults::hangs::program::Pattern;
use telltale_cluster_simulation::faults::hangs::{HangFaultKind, outcome};
use telltale_harness::long;

/// Of so many faults, one may be missed.
const ONE_IN: usize = 100;

#[test]
fn what_holds_the_data_is_named_among_few() {
    let (sizes, seeds) = if long() {
        (vec![(4, 40), (8, 40), (16, 40), (64, 20), (256, 10), (1024, 3)], 1)
    } else {
        (vec![(4, 6), (8, 6), (16, 4), (64, 2)], 1)
    };
    let mut missed: BTreeMap<(Pattern, HangFaultKind), Vec<String>> = BTreeMap::new();
    let mut suspects: BTreeMap<HangFaultKind, (usize, usize, usize)> = BTreeMap::new();
    let mut all = 0;
    for pattern in Pattern::ALL {
        for (ranks, count) in &sizes {
            for kind in HangFaultKind::ALL {
                for seed in seeds..seeds + count {
                    let tells_within_nodes = seed % 2 == 0;
                    let found = outcome(pattern, *ranks, kind, tells_within_nodes, seed);
                    let counts = suspects.entry(kind).or_default();
                    counts.0 += 1;
                    counts.1 += found.suspects;
                    counts.2 = counts.2.max(found.suspects);
                    all += 1;
                    if !found.is_named || !found.is_narrow {
                        let said: Vec<String> = found.verdicts.iter().map(in_short).collect();
                        let what =
                            format!("{ranks} ranks, seed {seed}: {:?}: {said:?}", found.fault);
                        missed.entry((pattern, kind)).or_default().push(what);
                    }
                }
            }
        }
    }
    for (kind, (count, sum, most)) in &suspects {
        let mean = *sum as f64 / *count as f64;
        println!("{kind:?}: {count} faults, {mean:.1} suspects on average, {most} at most");
    }
    let count: usize = missed.values().map(Vec::len).sum();
    println!("{count} of {all} missed: {missed:#?}");
    assert!(count * ONE_IN <= all, "{count} of {all}");
}

fn in_short(verdict: &telltale_cluster::verdict::Verdict) -> String {
    let names: Vec<String> = verdict.suspects.all().iter().map(ToString::to_string).collect();
    format!("{:?} {}", verdict.kind, names.join(" | "))
}
