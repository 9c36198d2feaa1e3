//! Who uses the cards, and what the kernel counts for each: `/proc/<pid>/fdinfo`.
//!
//! The keys are those of the kernel's `Documentation/gpu/drm-usage-stats.rst`. A client is an open
//! file; one that is duplicated, inherited or passed on is in several places with one
//! `drm-client-id`, and counts once, for the first process that has it.

use std::collections::{BTreeMap, BTreeSet};

use telltale_schema::chip::PciAddress;
use telltale_schema::memory::MemoryKind;
use telltale_schema::reading::Absence;

use super::super::descriptors::{Walk, Walked};
use super::card::Card;
use crate::report::SourceReport;

/// Clients that are kept.
const MAX_CLIENTS: usize = 16 * 1024;
/// What one descriptor's text may have.
const MAX_FDINFO_BYTES: usize = 16 * 1024;
/// Where the nodes of the two classes are, as links of descriptors name them.
const NODES: [&str; 2] = ["/dev/dri/", "/dev/accel/"];

/// Regions in memory of the device's own, by how their names begin.
const OWN_REGIONS: [&str; 4] = ["vram", "local", "lmem", "stolen-local"];
/// Regions in the host's memory.
const HOST_REGIONS: [&str; 6] = ["gtt", "system", "cpu", "memory", "shmem", "stolen-system"];

/// A check of all processes.
pub(super) struct Scan {
    walk: Walk,
}

/// What a check of all processes found.
pub(super) struct Clients {
    pub(super) walked: Walked,
    clients: Vec<DrmClient>,
    /// Clients beyond those that are kept.
    dropped: usize,
}

/// One open file of a card.
#[derive(Debug, Clone)]
struct DrmClient {
    pid: u32,
    /// The name of the node.
    node: String,
    pci: Option<PciAddress>,
    id: Option<u64>,
    regions: Regions,
}

/// What one process has on a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) pid: u32,
    pub(super) open_descriptors: u32,
    /// The driver counts the process's memory.
    pub(super) counted: bool,
    pub(super) kinds: Vec<(MemoryKind, u64)>,
}

/// Bytes in the device's own memory and the host's; none where the driver counts none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Regions {
    own: Option<u64>,
    host: Option<u64>,
}

// === impl Scan ===

impl Scan {
    pub(super) fn new(walk: Walk) -> Self {
        Self { walk }
    }

    pub(super) fn run(&self) -> Clients {
        let (mut clients, mut dropped) = (Vec::new(), 0);
        let walked = self.walk.run(|opened| {
            if clients.len() >= MAX_CLIENTS {
                dropped += 1;
                return;
            }
            let path = format!("fdinfo/{}", opened.descriptor);
            let text = opened.process.file(&path, MAX_FDINFO_BYTES);
            let text = text.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.as_deref().unwrap_or_default();
            clients.push(DrmClient::parse(opened.pid, opened.node, text));
        });
        Clients { walked, clients, dropped }
    }
}

/// The name of a card's node, of what a descriptor's link leads to.
pub(super) fn node_of(target: &str) -> Option<&str> {
    let node = NODES.iter().find_map(|place| target.strip_prefix(place));
    node.filter(|node| !node.contains('/'))
}

// === impl Clients ===

impl Clients {
    /// Says what the scan left out.
    pub(super) fn complain(&self, report: &mut SourceReport) {
        self.walked.complain("fdinfo", report);
        if self.dropped > 0 {
            let detail = format!("{} more open files than are kept", self.dropped);
            report.error("fdinfo", Absence::Failed, detail);
        }
    }

    /// Who uses a card, by pid.
    pub(super) fn of(&self, card: &Card) -> Vec<Use> {
        let mut users: BTreeMap<u32, Use> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let on_it = |client: &&DrmClient| match (client.pci, card.pci) {
            (Some(one), Some(other)) => one == other,
            _ => card.nodes.contains(&client.node),
        };
        for client in self.clients.iter().filter(on_it) {
            let user = users.entry(client.pid).or_insert_with(|| Use::nothing(client.pid));
            user.open_descriptors = user.open_descriptors.saturating_add(1);
            user.counted |= client.regions != Regions::default();
            // Without a number there is no way to know whether two are one: each counts.
            if client.id.is_none_or(|id| seen.insert(id)) {
                user.add(MemoryKind::Dram, client.regions.own);
                user.add(MemoryKind::SystemMemory, client.regions.host);
            }
        }
        users.into_values().collect()
    }
}

// === impl Use ===

impl Use {
    fn nothing(pid: u32) -> Self {
        Self { pid, open_descriptors: 0, counted: false, kinds: Vec::new() }
    }

    fn add(&mut self, kind: MemoryKind, bytes: Option<u64>) {
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { return };
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => self.kinds.push((kind, bytes)),
        }
    }
}

// === impl DrmClient ===

impl DrmClient {
    fn parse(pid: u32, node: &str, text: &str) -> Self {
        let mut client =
            Self { pid, node: node.to_owned(), pci: None, id: None, regions: Regions::default() };
        // What is resident, else what older drivers call memory, else all that was allocated.
        let mut regions: BTreeMap<&str, [Option<u64>; 3]> = BTreeMap::new();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.strip_prefix("drm-") {
                Some("pdev") => client.pci = value.parse().ok(),
                Some("client-id") => client.id = value.parse().ok(),
                Some(key) => {
                    let prefixes = ["resident-", "memory-", "total-"];
                    for (place, prefix) in prefixes.into_iter().enumerate() {
                        if let Some(region) = key.strip_prefix(prefix) {
                            regions.entry(region).or_default()[place] = bytes(value);
                        }
                    }
                }
                None => {}
            }
        }
        for (region, [resident, memory, total]) in regions {
            let Some(bytes) = resident.or(memory).or(total) else { continue };
            client.regions.add(region, bytes);
        }
        client
    }
}

// === impl Regions ===

impl Regions {
    /// Adds a region's bytes; what is neither memory nor known (AMD's `gds`, `oa`) is left out.
    fn add(&mut self, region: &str, bytes: u64) {
        let sum = if OWN_REGIONS.iter().any(|name| region.starts_with(name)) {
            &mut self.own
        } else if HOST_REGIONS
            .contains(&region.trim_end_matches(|digit: char| digit.is_ascii_digit()))
        {
            &mut self.host
        } else {
            return;
        };
        *sum = Some(sum.unwrap_or(0).saturating_add(bytes));
    }
}

/// An amount: bytes, or with a unit KiB or MiB.
fn bytes(value: &str) -> Option<u64> {
    let mut words = value.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some(_) => return None,
    };
    words.next().is_none().then_some(())?;
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{DrmClient, Regions, bytes};

    fn regions(text: &str) -> Regions {
        DrmClient::parse(7, "renderD128", text).regions
    }

    #[test]
    fn what_is_resident_counts_before_what_was_allocated() {
        let text = "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\n\
                    drm-memory-vram:\t3 KiB\ndrm-total-vram:\t9 KiB\ndrm-memory-gtt:\t2 KiB\n\
                    drm-total-gtt:\t5 MiB\ndrm-memory-gds:\t7 KiB\npasid:\t32769\n";
        assert_eq!(regions(text), Regions { own: Some(3 << 10), host: Some(2 << 10) });
        let client = DrmClient::parse(7, "renderD128", text);
        assert_eq!((client.id, client.pci.unwrap().to_string()), (Some(42), "0000:03:00.0".into()));
        let text = "drm-total-local0: 8 MiB\ndrm-resident-local0: 0\ndrm-total-system0: 1 KiB\n";
        assert_eq!(regions(text), Regions { own: Some(0), host: Some(1 << 10) });
        assert_eq!(
            regions("drm-total-memory: 12 KiB"),
            Regions { own: None, host: Some(12 << 10) }
        );
        assert_eq!(regions("pos:\t0\nflags:\t02100002\n"), Regions::default());
    }

    #[test]
    fn amounts_have_the_units_of_the_document() {
        assert_eq!(
            (bytes("5"), bytes("5 KiB"), bytes("5 MiB")),
            (Some(5), Some(5120), Some(5 << 20))
        );
        for bad in ["", "KiB", "-1 KiB", "5 GiB", "5 KiB x", "18446744073709551615 KiB", "5.0 KiB"]
        {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
