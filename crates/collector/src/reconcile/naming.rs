//! The names of devices: one each, in the table, in series, in the history and in what processes
//! measure.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use telltale_schema::snapshot::MetricSample;

use super::{Draft, Reconciliation};
use crate::observation::Described;

/// The label by which a sample says which device it is about.
const LABEL: &str = "device";

/// What the names of samples that a runtime of ours makes begin with; an application's own labels
/// are its own.
const OWN_PREFIX: &str = "telltale_";

/// The name of each device. Where two have one name, the later ones have a number behind it: no two
/// series may have the same labels.
pub(super) fn ids(devices: &[Draft]) -> Vec<String> {
    let mut times: HashMap<String, u32> = HashMap::with_capacity(devices.len());
    let mut id = |draft: &Draft| {
        let name = match draft.identity.chip() {
            Some(chip) => Described { chip: chip.clone(), logical_id: draft.logical_id }.name(),
            None => draft.identity.display_id(),
        };
        let times = times.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name}#{times}") }
    };
    devices.iter().map(&mut id).collect()
}

/// Labels what processes measure with the names of the devices that they mean.
pub(super) fn name_measured(reconciliation: &mut Reconciliation, ids: &[String]) {
    for place in 0..reconciliation.processes.len() {
        let draft = &reconciliation.processes[place];
        let pid = draft.process.pid;
        let mut other_names: BTreeMap<String, &str> = BTreeMap::new();
        for described in &*draft.measured {
            let Some(index) = reconciliation.known_device(described) else { continue };
            let (name, id) = (described.name(), &ids[reconciliation.part_of(index, pid)]);
            if name != *id {
                other_names.insert(name, id);
            }
        }
        if !other_names.is_empty() {
            let metrics = renamed(&draft.process.metrics, &other_names);
            reconciliation.processes[place].process.metrics = metrics;
        }
    }
}

/// The samples with other names of devices.
fn renamed(samples: &[MetricSample], names: &BTreeMap<String, &str>) -> Arc<[MetricSample]> {
    let with_name = |sample: &MetricSample| {
        let mut sample = sample.clone();
        for (label, value) in &mut sample.labels {
            if label == LABEL
                && sample.name.starts_with(OWN_PREFIX)
                && let Some(name) = names.get(value)
            {
                *value = (*name).to_owned();
            }
        }
        sample
    };
    samples.iter().map(with_name).collect()
}
