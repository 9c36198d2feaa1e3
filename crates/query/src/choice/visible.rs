//! Which devices the environment leaves to a job, and how its runtime names them: each vendor's
//! variable lists devices, by numbers or by names, and what it does not list is not there for the
//! program.

use telltale_schema::chip::PciAddress;
use telltale_schema::snapshot::Snapshot;

/// The numbers of the longest range that a list can have.
const MAX_RANGE: usize = 4096;

/// How a vendor's runtime learns which devices it may use.
pub(super) struct Runtime {
    pub(super) vendor: &'static str,
    /// What it reads.
    pub(super) variable: &'static str,
    /// What it reads where the first is not set.
    others: &'static [&'static str],
    /// What a layer below reads: the numbers of `variable` count the devices that this one leaves.
    below: Option<&'static str>,
    /// Whether a list without entries hides all devices.
    is_empty_none: bool,
    naming: Naming,
}

/// What devices are called in the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Pci,
    /// The vendor's id, else the number. Parts of a device have no number.
    Uuid,
    Number,
}

const fn runtime(vendor: &'static str, variable: &'static str, naming: Naming) -> Runtime {
    Runtime { vendor, variable, others: &[], below: None, is_empty_none: false, naming }
}

pub(super) const RUNTIMES: [Runtime; 5] = [
    runtime("tenstorrent", "TT_VISIBLE_DEVICES", Naming::Pci),
    Runtime { is_empty_none: true, ..runtime("nvidia", "CUDA_VISIBLE_DEVICES", Naming::Uuid) },
    runtime("aws", "NEURON_RT_VISIBLE_CORES", Naming::Number),
    Runtime {
        others: &["CUDA_VISIBLE_DEVICES"],
        below: Some("ROCR_VISIBLE_DEVICES"),
        is_empty_none: true,
        ..runtime("amd", "HIP_VISIBLE_DEVICES", Naming::Number)
    },
    runtime("intel", "ZE_AFFINITY_MASK", Naming::Number),
];

/// The devices of a vendor that the environment leaves.
pub(super) struct VisibleDevices {
    /// Their places in the snapshot's devices.
    pub(super) places: Vec<usize>,
    /// The variable that hides others, where one is set.
    pub(super) by: Option<&'static str>,
    /// The devices that the variable's numbers count.
    numbered: Vec<usize>,
    naming: Naming,
}

// === impl VisibleDevices ===

impl VisibleDevices {
    /// Those of `all`, the vendor's devices that a job can have.
    pub(super) fn of(
        runtime: &Runtime,
        snapshot: &Snapshot,
        all: &[usize],
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &'static str| {
            let list = variable(name)?;
            (runtime.is_empty_none || !list.trim().is_empty()).then_some((name, list))
        };
        let mut visible = Self {
            places: all.to_vec(),
            by: None,
            numbered: numbered(runtime, snapshot, all),
            naming: runtime.naming,
        };
        if let Some((name, list)) = runtime.below.and_then(set) {
            visible.numbered = visible.listed(snapshot, &list);
            visible.restrict(snapshot, &visible.numbered.clone(), name);
        }
        let mut own = [runtime.variable].into_iter().chain(runtime.others.iter().copied());
        if let Some((name, list)) = own.find_map(set) {
            let listed = visible.listed(snapshot, &list);
            visible.restrict(snapshot, &listed, name);
        }
        visible
    }

    /// How the job's runtime calls a device; none where it has no name for it.
    pub(super) fn name(&self, snapshot: &Snapshot, at: usize) -> Option<String> {
        let identity = &snapshot.devices[at].identity;
        let number = || self.numbered.iter().position(|other| *other == at);
        match self.naming {
            Naming::Pci => identity.pci().map(|pci| pci.to_string()),
            Naming::Uuid => {
                let uuid = identity.other().and_then(|other| other.uuid.clone());
                uuid.or_else(|| Some(number()?.to_string()))
            }
            Naming::Number => Some(number()?.to_string()),
        }
    }

    /// Leaves these devices and their parts.
    fn restrict(&mut self, snapshot: &Snapshot, to: &[usize], by: &'static str) {
        let is_left = |at: &usize| to.contains(at) || to.contains(&super::whole(snapshot, *at));
        self.places.retain(is_left);
        self.by = Some(by);
    }

    /// The devices that a list names, up to the first entry that names none: so the runtimes read
    /// it.
    fn listed(&self, snapshot: &Snapshot, list: &str) -> Vec<usize> {
        let mut listed = Vec::new();
        for entry in list.split(',').map(str::trim) {
            let named = self.named(snapshot, entry);
            if named.is_empty() {
                break;
            }
            listed.extend(named.into_iter().filter(|at| !listed.contains(at)).collect::<Vec<_>>());
        }
        listed
    }

    /// What one entry names: a number, a range of numbers, a PCI address, or how an id begins.
    fn named(&self, snapshot: &Snapshot, entry: &str) -> Vec<usize> {
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let by_number = |number: usize| self.numbered.get(number).copied();
        if let Some((first, last)) = entry.split_once('-')
            && let (Some(first), Some(last)) = (number(first), number(last))
        {
            return (first..=last).take(MAX_RANGE).map_while(by_number).collect();
        }
        if let Ok(pci) = entry.parse::<PciAddress>() {
            let is_there = |at: &usize| snapshot.devices[*at].identity.pci() == Some(pci);
            return self.numbered.iter().copied().filter(is_there).collect();
        }
        // `1.0` is a part of device 1 for Level Zero, which is taken for all of it.
        let whole = entry.split('.').next().unwrap_or_default();
        if let Some(number) = number(whole) {
            return by_number(number).into_iter().collect();
        }
        let is_called = |at: &usize| {
            let other = snapshot.devices[*at].identity.other();
            other.and_then(|other| other.uuid.as_deref()).is_some_and(|it| it.starts_with(entry))
        };
        let mut known: Vec<usize> = self.numbered.iter().chain(&self.places).copied().collect();
        known.sort_unstable();
        known.dedup();
        known.into_iter().filter(|at| !entry.is_empty() && is_called(at)).collect()
    }
}

/// The devices that the numbers of a runtime's variable count, in that order.
fn numbered(runtime: &Runtime, snapshot: &Snapshot, all: &[usize]) -> Vec<usize> {
    let other = |at: usize| snapshot.devices[at].identity.other();
    match runtime.naming {
        // Those of CUDA are of whole GPUs: a divided one counts once, its parts do not.
        Naming::Uuid => {
            let is_whole = |at: &usize| {
                snapshot.devices[*at].identity.vendor() == runtime.vendor
                    && other(*at).is_some_and(|other| other.parent.is_none())
            };
            (0..snapshot.devices.len()).filter(is_whole).collect()
        }
        Naming::Pci | Naming::Number => all.to_vec(),
    }
}
