//! Devices that a job can have, and the variable by which its runtime gets them.

mod visible;

#[cfg(test)]
mod tests;

use telltale_schema::device::DeviceClass;
use telltale_schema::health::HealthState;
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::{Device, Snapshot};

use crate::Query;
use visible::{RUNTIMES, VisibleDevices};

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
    /// Their places in the snapshot's devices: those with the fewest processes first, and of these
    /// those with the most free memory.
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
        /// How many there are of that vendor, of those that the environment leaves.
        all: usize,
    },
    /// It cannot be known whether enough have the memory.
    #[error(
        "free memory is not known of {unknown} of {all} devices, and {wanted} with so much are \
         wanted; ask without a minimum of free memory"
    )]
    FreeUnknown {
        /// How many are wanted.
        wanted: usize,
        /// How many fit but for that.
        unknown: usize,
        /// How many there are of that vendor, of those that the environment leaves.
        all: usize,
    },
    /// The environment leaves none.
    #[error(
        "{variable} leaves none of the {all} devices of this host; unset it, or name devices in it"
    )]
    Hidden {
        /// The variable.
        variable: &'static str,
        /// How many there are.
        all: usize,
    },
}

impl DeviceChoice {
    /// The devices that the job can have: of one vendor, none with a failure, none that is only
    /// reached through another, and none that the environment hides. `variable` is that
    /// environment.
    ///
    /// # Errors
    /// When fewer fit than are wanted.
    pub fn choose(
        &self,
        snapshot: &Snapshot,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ChosenDevices, DeviceChoiceError> {
        let mut refused: Option<(usize, DeviceChoiceError)> = None;
        for runtime in &RUNTIMES {
            let all = of_vendor(snapshot, runtime.vendor);
            if all.is_empty() {
                continue;
            }
            let visible = VisibleDevices::of(runtime, snapshot, &all, &variable);
            match self.among(snapshot, &visible, all.len()) {
                Ok(mut places) => {
                    places.truncate(self.count);
                    let names = places.iter().filter_map(|at| visible.name(snapshot, *at));
                    let value = names.collect::<Vec<_>>().join(",");
                    return Ok(ChosenDevices { places, variable: runtime.variable, value });
                }
                Err((fit, error)) if refused.as_ref().is_none_or(|(most, _)| *most < fit) => {
                    refused = Some((fit, error));
                }
                Err(_) => {}
            }
        }
        Err(refused.map_or(DeviceChoiceError::NoDevice, |(_, error)| error))
    }

    /// Those of the visible devices that fit, the best first; else how many do, and why they are
    /// too few.
    fn among(
        &self,
        snapshot: &Snapshot,
        visible: &VisibleDevices,
        of_host: usize,
    ) -> Result<Vec<usize>, (usize, DeviceChoiceError)> {
        let all = visible.places.len();
        if let (0, Some(variable)) = (all, visible.by) {
            return Err((0, DeviceChoiceError::Hidden { variable, all: of_host }));
        }
        let can_be_named = |at: &usize| visible.name(snapshot, *at).is_some();
        let named = visible.places.iter().copied().filter(can_be_named);
        let fit: Vec<_> = named.filter(|at| self.fits_but_for_room(snapshot, *at)).collect();
        let (mut roomy, small): (Vec<_>, Vec<_>) =
            fit.into_iter().partition(|at| self.has_room(snapshot, *at));
        let wanted = self.count.max(1);
        if roomy.len() < wanted {
            let unknown = small.iter().filter(|at| free(snapshot, **at).is_none()).count();
            let fit = roomy.len();
            return Err((
                fit,
                if unknown > 0 && fit + unknown >= wanted {
                    DeviceChoiceError::FreeUnknown { wanted, unknown, all }
                } else {
                    DeviceChoiceError::TooFew { wanted, fit, all }
                },
            ));
        }
        roomy.sort_by_key(|at| {
            (processes(snapshot, *at), u64::MAX - free(snapshot, *at).unwrap_or(0), *at)
        });
        Ok(roomy)
    }

    fn has_room(&self, snapshot: &Snapshot, at: usize) -> bool {
        self.min_free == 0 || free(snapshot, at).is_some_and(|free| free >= self.min_free)
    }

    fn fits_but_for_room(&self, snapshot: &Snapshot, at: usize) -> bool {
        let device = &snapshot.devices[at];
        device.health().state != HealthState::Failed
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
