//! How many workers a node runs: a number, or as many as it has accelerators or processors.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread::available_parallelism;

use telltale_cluster::rank::WorkersPerNode;
use telltale_collector::{CollectOptions, Collector};
use telltale_schema::device::DeviceClass;
use telltale_schema::snapshot::Snapshot;

use crate::exit::Failure;

/// Variables that say which GPUs a program may use, by the vendors that read them.
const VISIBLE: [(&str, &[&str]); 2] = [
    ("nvidia", &["CUDA_VISIBLE_DEVICES"]),
    ("amd", &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]),
];

/// The number of workers that is written so.
pub(super) fn count(text: &str) -> Result<WorkersPerNode, Failure> {
    let number = match text {
        "auto" => match accelerators() {
            0 => processors(),
            devices => devices,
        },
        "cpu" => processors(),
        "gpu" => match accelerators() {
            0 => {
                return Err(Failure::Message(String::from(
                    "--nproc-per-node gpu: this host has no accelerator that may be used (`telltale \
                     doctor` says what was looked for); write a number, cpu or auto",
                )));
            }
            devices => devices,
        },
        number => number.parse().map_err(|_| usage(text))?,
    };
    WorkersPerNode::new(number).ok_or_else(|| usage(text))
}

fn usage(text: &str) -> Failure {
    Failure::Usage(format!(
        "--nproc-per-node {text}: neither a number from 1 to 1024 nor auto, gpu or cpu; write one"
    ))
}

/// The processors that this process may use.
fn processors() -> u32 {
    let count = available_parallelism().map_or(1, NonZero::get);
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The accelerators that workers may use.
fn accelerators() -> u32 {
    let snapshot = Collector::new(CollectOptions::default()).map(|mut one| one.collect());
    snapshot.map_or(0, |snapshot| visible(&snapshot, |name| std::env::var(name).ok()))
}

/// Those of a machine that these variables leave visible: of one vendor, since workers are alike. A processor's own GPU
/// stands beside the cards of another.
fn visible(snapshot: &Snapshot, variable: impl Fn(&str) -> Option<String>) -> u32 {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for device in &snapshot.devices {
        let identity = &device.identity;
        let is_accelerator = identity
            .other()
            .is_none_or(|other| matches!(other.class, DeviceClass::Gpu | DeviceClass::Accelerator));
        if is_accelerator {
            *counts.entry(identity.vendor()).or_default() += 1;
        }
    }
    for (vendor, names) in VISIBLE {
        if let Some(all) = counts.get(vendor) {
            let listed = names.iter().find_map(|name| variable(name));
            return listed.map_or(*all, |listed| in_list(&listed, *all));
        }
    }
    counts.into_values().max().unwrap_or_default()
}

/// How many of so many devices a list names: up to the first that there is not, as CUDA reads it.
fn in_list(list: &str, all: u32) -> u32 {
    let is_there = |one: &&str| match one.parse::<i64>() {
        Ok(index) => (0..i64::from(all)).contains(&index),
        Err(_) => !one.is_empty(),
    };
    let named = list.split(',').map(str::trim).take_while(is_there).count();
    u32::try_from(named).unwrap_or(u32::MAX).min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_known_word_is_understood() {
        let check = |text: &str| count(text).map(WorkersPerNode::get).map_err(|it| it.to_string());
        assert_eq!(check("4"), Ok(4));
        assert_eq!(check("cpu"), Ok(processors()));
        for wrong in ["0", "-1", "1025", "xpu", "", "4.0"] {
            assert!(check(wrong).unwrap_err().contains("auto, gpu or cpu"), "{wrong}");
        }
    }

    #[test]
    fn a_list_of_visible_devices_ends_where_cuda_ends_it() {
        for (list, expected) in [
            ("0,1", 2),
            ("GPU-8932f937, GPU-1", 2),
            ("", 0),
            ("-1", 0),
            ("0,-1,2", 1),
            ("7,8", 0),
            ("3,4,0", 1),
        ] {
            assert_eq!(in_list(list, 4), expected, "{list:?}");
        }
        assert_eq!(in_list("GPU-1,GPU-2", 1), 1);
    }
}
