//! Choices on hosts of several vendors.

use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::memory::MemorySpace;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Device, Snapshot, SpaceUsage};

use super::{ChosenDevices, DeviceChoice, DeviceChoiceError};

const NOW: Timestamp = Timestamp(1_000_000_000);
const GIB: u64 = 1 << 30;

struct Made<'a> {
    name: &'a str,
    class: DeviceClass,
    uuid: Option<&'a str>,
    parent: Option<&'a str>,
    /// None where the capacity is not known.
    free: Option<u64>,
}

fn device(vendor: &str, made: &Made<'_>) -> Device {
    let mut identity = OtherIdentity::new(made.name, vendor, made.class);
    identity.uuid = made.uuid.map(str::to_owned);
    identity.parent = made.parent.map(str::to_owned);
    let capacity = |free: u64| Reading::new(free + GIB, NOW);
    let space = SpaceUsage {
        space: MemorySpace::Dram,
        used_bytes: Reading::new(GIB, NOW),
        capacity_bytes: made
            .free
            .map_or_else(|| Reading::absent(Absence::Unsupported, ""), capacity),
        capacity_source: None,
    };
    Device { spaces: vec![space], ..Device::unread(made.name, identity) }
}

fn host(vendor: &str, devices: &[Made<'_>]) -> Snapshot {
    let devices = devices.iter().map(|made| device(vendor, made)).collect();
    Snapshot { devices, ..Snapshot::empty(NOW) }
}

fn gpu<'a>(name: &'a str, uuid: &'a str, free: u64) -> Made<'a> {
    Made { name, class: DeviceClass::Gpu, uuid: Some(uuid), parent: None, free: Some(free) }
}

/// Three GPUs, of which the last has the most room.
fn nvidia() -> Snapshot {
    host(
        "nvidia",
        &[gpu("g0", "GPU-aa", GIB), gpu("g1", "GPU-ab", 2 * GIB), gpu("g2", "GPU-cc", 3 * GIB)],
    )
}

/// A GPU with two parts, and a whole one.
fn divided() -> Snapshot {
    let part = |name, uuid, free| Made {
        name,
        class: DeviceClass::Partition,
        uuid: Some(uuid),
        parent: Some("g0"),
        free: Some(free),
    };
    let parts = [part("g0/1", "MIG-11", GIB), part("g0/2", "MIG-22", 2 * GIB)];
    let [first, second] = parts;
    host("nvidia", &[gpu("g0", "GPU-aa", 4 * GIB), first, second, gpu("g1", "GPU-bb", 8 * GIB)])
}

fn choice(count: usize) -> DeviceChoice {
    DeviceChoice { count, min_free: 0, max_processes: None, filter: None }
}

fn chosen(
    choice: &DeviceChoice,
    snapshot: &Snapshot,
    environment: &[(&str, &str)],
) -> Result<ChosenDevices, DeviceChoiceError> {
    choice.choose(snapshot, |name| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[track_caller]
fn check(count: usize, snapshot: &Snapshot, environment: &[(&str, &str)], value: &str) {
    let chosen = chosen(&choice(count), snapshot, environment).unwrap();
    assert_eq!(chosen.value, value, "{environment:?}");
}

#[test]
fn a_gpu_is_chosen_among_those_that_the_environment_leaves() {
    let host = nvidia();
    check(1, &host, &[], "GPU-cc");
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "0,1")], "GPU-ab");
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "GPU-aa, 1")], "GPU-ab");
    // What follows an entry that names nothing is not there for CUDA either.
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "0,-1,2")], "GPU-aa");
    // Another vendor's variable says nothing of these.
    check(1, &host, &[("HIP_VISIBLE_DEVICES", "0")], "GPU-cc");
    let two = [("CUDA_VISIBLE_DEVICES", "0,1")];
    let refused = chosen(&choice(3), &host, &two).unwrap_err();
    assert_eq!(refused, DeviceChoiceError::TooFew { wanted: 3, fit: 2, all: 2 });
    for nothing in ["", "-1", "GPU-zz"] {
        let refused = chosen(&choice(1), &host, &[("CUDA_VISIBLE_DEVICES", nothing)]).unwrap_err();
        let hidden = DeviceChoiceError::Hidden { variable: "CUDA_VISIBLE_DEVICES", all: 3 };
        assert_eq!(refused, hidden, "{nothing:?}");
    }
}

#[test]
fn a_divided_gpu_is_had_by_its_parts() {
    let host = divided();
    check(1, &host, &[], "GPU-bb");
    check(3, &host, &[], "GPU-bb,MIG-22,MIG-11");
    // GPU 0 is the divided one: its parts do not count.
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "0")], "MIG-22");
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "1")], "GPU-bb");
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "MIG-11")], "MIG-11");
}

/// Four cores without a known capacity.
fn neuron() -> Snapshot {
    let core =
        |name| Made { name, class: DeviceClass::Accelerator, uuid: None, parent: None, free: None };
    host("aws", &["n0/0", "n0/1", "n1/0", "n1/1"].map(core))
}

#[test]
fn cores_are_numbers_and_their_free_memory_is_not_known() {
    let host = neuron();
    check(2, &host, &[], "0,1");
    check(2, &host, &[("NEURON_RT_VISIBLE_CORES", "2-3")], "2,3");
    check(1, &host, &[("NEURON_RT_VISIBLE_CORES", "")], "0");
    let wanting = DeviceChoice { min_free: GIB, ..choice(1) };
    let refused = chosen(&wanting, &host, &[]).unwrap_err();
    assert_eq!(refused, DeviceChoiceError::FreeUnknown { wanted: 1, unknown: 4, all: 4 });
    assert!(refused.to_string().starts_with("free memory is not known"), "{refused}");
}

#[test]
fn numbers_of_hip_count_what_rocr_leaves() {
    let host = host(
        "amd",
        &[gpu("a0", "GPU-a", GIB), gpu("a1", "GPU-b", 2 * GIB), gpu("a2", "GPU-c", 3 * GIB)],
    );
    check(1, &host, &[], "2");
    check(1, &host, &[("ROCR_VISIBLE_DEVICES", "2,1")], "0");
    check(1, &host, &[("ROCR_VISIBLE_DEVICES", "2,1"), ("HIP_VISIBLE_DEVICES", "1")], "1");
    check(1, &host, &[("CUDA_VISIBLE_DEVICES", "0,1")], "1");
}
