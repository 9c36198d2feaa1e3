//! A healthy machine for a long time: nobody must be suspected.
//!
//! Each node is in a mesh of eight and in the ring of all.

use std::collections::BTreeSet;
use std::time::Duration;

use telltale_cluster::detection::{Detector, Rule, Settings};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspect, Suspects};

use crate::faults::machine::{Machine, Noise, Topology, name, ranks};

/// Nodes in one mesh.
const MESH_NODES: u32 = 8;

/// What was said of a healthy machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alarms {
    /// Verdicts that one node is slow, each from its beginning to its end: evictions, if acted on.
    pub nodes: u64,
    /// Verdicts that one link is slow.
    pub links: u64,
    /// Verdicts that could not tell.
    pub ambiguous: u64,
}

/// Looks at a healthy machine of `nodes` nodes for `windows` windows.
#[must_use]
pub fn look_for(nodes: u32, windows: u64, noise: Noise, rule: Rule, seed: u64) -> Alarms {
    let mut groups = vec![Topology::Ring.edges(0, nodes)];
    let meshes = (0..nodes / MESH_NODES).map(|mesh| mesh * MESH_NODES);
    groups.extend(meshes.map(|first| Topology::Mesh.edges(first, MESH_NODES)));
    let mut machine = Machine::new(nodes, &groups, noise, seed);
    let settings = Settings { rule, ..Settings::default() };
    let mut detector = Detector::new(settings);
    let names: Vec<_> = (0..nodes).map(name).collect();
    let mut now = Moment::default();
    detector.set_ranks(now, &ranks(nodes));
    let mut alarms = Alarms::default();
    let mut told: BTreeSet<Vec<Suspect>> = BTreeSet::new();
    for _ in 0..windows {
        now = now.after(settings.window);
        for (node, observation) in names.iter().zip(machine.window()) {
            detector.observe(now, node, observation);
        }
        let verdicts = detector.look(now);
        let told_before = std::mem::take(&mut told);
        for verdict in verdicts {
            let identity = verdict.suspects.all().to_vec();
            told.insert(identity.clone());
            if told_before.contains(&identity) {
                continue;
            }
            match verdict.suspects {
                Suspects::Ambiguous(_) => alarms.ambiguous += 1,
                Suspects::One(_) if verdict.suspects.node().is_some() => alarms.nodes += 1,
                Suspects::One(_) => alarms.links += 1,
            }
        }
    }
    alarms
}

/// How many windows there are in this time.
#[must_use]
pub fn windows_in(time: Duration) -> u64 {
    time.as_secs() / Settings::default().window.as_secs().max(1)
}
