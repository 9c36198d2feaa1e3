//! Devices that a job can have, and the variable by which its runtime gets them.

use telltale_schema::device::DeviceClass;
use telltale_schema::health::HealthState;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Device, Snapshot};

use crate::Query;

/// What a job wants.
#[derive(Debug, Clone)]
pub struct DeviceChoice {
    /// How many devices.
    pub count: usize,
    /// Bytes of free DRAM that each must have.
    pub min_free: u64,
    /// Processes that each may have at most; none for any number.
    pub max_processes: Option<u64>,
    /// What must hold of each.
    pub filter: Option<Query>,
}

/// Devices that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenDevices {
    /// Their places in the snapshot's devices: those with the fewest processes first, and of these those with the most
    /// free memory.
    pub places: Vec<usize>,
    /// The variable that their runtime reads.
    pub variable: &'static str,
    /// What it must be.
    pub value: String,
}

/// Why no devices were chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceChoiceError {
    /// There is nothing to choose from.
    #[error(
        "this host has no accelerator that a job could have; `telltale doctor` says what was looked for"
    )]
    NoDevice,
    /// Fewer fit than are wanted.
    #[error(
        "{fit} of {all} devices fit, and {wanted} are wanted; ask for fewer, or for less of each"
    )]
    TooFew {
        /// How many are wanted.
        wanted: usize,
        /// How many fit.
        fit: usize,
        /// How many there are of that vendor.
        all: usize,
    },
}

/// How a runtime learns which devices it may use.
struct Visibility {
    vendor: &'static str,
    variable: &'static str,
    name: fn(&Snapshot, usize) -> Option<String>,
}

const VISIBILITIES: [Visibility; 5] = [
    Visibility { vendor: "tenstorrent", variable: "TT_VISIBLE_DEVICES", name: pci_address },
    Visibility { vendor: "nvidia", variable: "CUDA_VISIBLE_DEVICES", name: uuid_or_index },
    Visibility { vendor: "aws", variable: "NEURON_RT_VISIBLE_CORES", name: index },
    Visibility { vendor: "amd", variable: "HIP_VISIBLE_DEVICES", name: index },
    Visibility { vendor: "intel", variable: "ZE_AFFINITY_MASK", name: index },
];

impl DeviceChoice {
    /// The devices that the job can have: of one vendor, none with a failure, none that is only reached through another.
    ///
    /// # Errors
    /// When fewer fit than are wanted.
    pub fn choose(&self, snapshot: &Snapshot) -> Result<ChosenDevices, DeviceChoiceError> {
        let mut best = None;
        for visibility in &VISIBILITIES {
            let all = of_vendor(snapshot, visibility.vendor);
            let fits =
                |at: &usize| self.fits(snapshot, *at) && (visibility.name)(snapshot, *at).is_some();
            let mut fit: Vec<_> = all.iter().copied().filter(fits).collect();
            if fit.len() < self.count.max(1) {
                if !all.is_empty() && best.is_none_or(|(least, _)| least < fit.len()) {
                    best = Some((fit.len(), all.len()));
                }
                continue;
            }
            fit.sort_by_key(|at| {
                (processes(snapshot, *at), u64::MAX - free(snapshot, *at).unwrap_or(0), *at)
            });
            fit.truncate(self.count);
            let names = fit.iter().filter_map(|at| (visibility.name)(snapshot, *at));
            let value = names.collect::<Vec<_>>().join(",");
            return Ok(ChosenDevices { places: fit, variable: visibility.variable, value });
        }
        let (fit, all) = best.ok_or(DeviceChoiceError::NoDevice)?;
        Err(DeviceChoiceError::TooFew { wanted: self.count, fit, all })
    }

    fn fits(&self, snapshot: &Snapshot, at: usize) -> bool {
        let device = &snapshot.devices[at];
        let has_room =
            self.min_free == 0 || free(snapshot, at).is_some_and(|free| free >= self.min_free);
        device.health().state != HealthState::Failed
            && has_room
            && self.max_processes.is_none_or(|most| processes(snapshot, at) <= most)
            && self.filter.as_ref().is_none_or(|filter| filter.matches_device(device))
    }
}

/// The devices of a vendor that a job can have. Of one that is divided, these are its parts.
fn of_vendor(snapshot: &Snapshot, vendor: &str) -> Vec<usize> {
    let parent = |device: &Device| device.identity.other().and_then(|other| other.parent.clone());
    let divided: Vec<String> = snapshot.devices.iter().filter_map(parent).collect();
    let can_be_had = |device: &Device| {
        let is_computing =
            device.identity.other().is_none_or(|other| other.class != DeviceClass::Host);
        device.identity.vendor() == vendor
            && is_computing
            && !device.identity.is_remote()
            && !divided.contains(&device.identity.display_id())
    };
    let devices = snapshot.devices.iter().enumerate();
    devices.filter(|(_, device)| can_be_had(device)).map(|(at, _)| at).collect()
}

/// The device whose processes a device has: of a part, its whole.
fn whole(snapshot: &Snapshot, at: usize) -> usize {
    let parent = snapshot.devices[at].identity.other().and_then(|other| other.parent.as_deref());
    let is_parent = |device: &Device| Some(&*device.identity.display_id()) == parent;
    snapshot.devices.iter().position(is_parent).unwrap_or(at)
}

/// How many processes have the device open, or memory on it.
fn processes(snapshot: &Snapshot, at: usize) -> u64 {
    let places = [at, whole(snapshot, at)];
    let has = |held: &telltale_schema::snapshot::HeldDevice| places.contains(&held.device);
    let known = snapshot.processes.iter().filter(|process| process.devices.iter().any(has)).count();
    let holders = |at: usize| snapshot.devices[at].holders.value().map_or(0, Vec::len);
    let most = places.into_iter().map(holders).chain([known]).max().unwrap_or_default();
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Its free DRAM, where that is known.
fn free(snapshot: &Snapshot, at: usize) -> Option<u64> {
    let usage = snapshot.devices[at].space(MemorySpace::Dram)?;
    Some(usage.capacity_bytes.value()?.saturating_sub(*usage.used_bytes.value()?))
}

fn pci_address(snapshot: &Snapshot, at: usize) -> Option<String> {
    snapshot.devices[at].identity.pci().map(|pci| pci.to_string())
}

/// Its place among those of its vendor.
fn index(snapshot: &Snapshot, at: usize) -> Option<String> {
    let all = of_vendor(snapshot, snapshot.devices[at].identity.vendor());
    all.iter().position(|other| *other == at).map(|place| place.to_string())
}

fn uuid_or_index(snapshot: &Snapshot, at: usize) -> Option<String> {
    let uuid = snapshot.devices[at].identity.other().and_then(|other| other.uuid.clone());
    uuid.or_else(|| index(snapshot, at))
}
