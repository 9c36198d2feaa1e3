//! Accelerators on the PCI bus that no driver has, so that no source can report them.
//!
//! From `vendor`, `class`, `device` and `driver` of `/sys/bus/pci/devices`, which the kernel has of
//! every function without asking the device (the kernel's `Documentation/PCI/sysfs-pci.rst`). Nothing
//! is bound, loaded or woken up here.

use std::path::Path;

use telltale_schema::chip::PciAddress;

use crate::tree::{Directory, Tree};

/// Where the kernel lists PCI functions.
pub(super) const FUNCTIONS: &str = "sys/bus/pci/devices";

/// Functions that are checked.
const MAX_FUNCTIONS: usize = 4096;

/// Classes of PCI functions that compute: displays and processing accelerators (the upper byte).
const COMPUTING: [u32; 2] = [0x03, 0x12];

/// Drivers that hand a function to a virtual machine, or keep it from everyone.
const HELD_BACK: [&str; 2] = ["vfio-pci", "pci-stub"];

/// Vendors by their PCI id: what they are called, the kernel module of their driver, and whether
/// each of their functions is an accelerator.
const VENDORS: [(&str, &str, &str, bool); 4] = [
    ("0x1e52", "Tenstorrent", "tenstorrent", true),
    ("0x10de", "NVIDIA", "nvidia", false),
    ("0x1002", "AMD", "amdgpu", false),
    ("0x1da3", "Habana", "habanalabs", true),
];

/// An accelerator that no driver for it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverlessBoard {
    /// Where it sits.
    pub pci: PciAddress,
    /// Whose it is, for a person.
    pub vendor: &'static str,
    /// The kernel module that would drive it.
    pub module: &'static str,
    /// Who has it instead, for a virtual machine say.
    pub held_by: Option<String>,
}

/// The accelerators of the machine below `root` that no driver has, by address; none where the
/// kernel shows no PCI bus.
pub fn driverless_boards(root: &Path) -> Vec<DriverlessBoard> {
    let Ok(tree) = Tree::open(root) else { return Vec::new() };
    let Ok(functions) = tree.root().directory(FUNCTIONS) else { return Vec::new() };
    let names = functions.names().unwrap_or_default();
    let mut addresses: Vec<PciAddress> =
        names.iter().take(MAX_FUNCTIONS).filter_map(|name| name.parse().ok()).collect();
    addresses.sort_unstable();
    addresses.into_iter().filter_map(|pci| read_board(&functions, pci)).collect()
}

/// The driver that has the PCI function at this address; none where no driver has it, or the kernel
/// does not say.
pub(crate) fn driver_at(tree: &Tree, pci: PciAddress) -> Option<String> {
    driver_of(&tree.root().directory(&format!("{FUNCTIONS}/{pci}")).ok()?)
}

fn driver_of(function: &Directory) -> Option<String> {
    Some(function.link("driver").ok()?.file_name()?.to_str()?.to_owned())
}

fn read_board(functions: &Directory, pci: PciAddress) -> Option<DriverlessBoard> {
    let function = functions.directory(&pci.to_string()).ok()?;
    let text = |name: &str| String::from_utf8(function.attribute(name).ok()?).ok();
    let vendor = text("vendor")?;
    let (_, vendor, module, all) = VENDORS.into_iter().find(|(id, ..)| *id == vendor.trim())?;
    let class = class_of(&function)?;
    let driver = driver_of(&function);
    let is_free = driver.as_deref().is_none_or(|driver| HELD_BACK.contains(&driver));
    let computes = all || COMPUTING.contains(&class);
    (is_free && computes).then_some(DriverlessBoard { pci, vendor, module, held_by: driver })
}

/// Whether a device is a PCI function that computes, by its vendor or its class.
pub(super) fn is_accelerator(device: &Directory) -> bool {
    let vendor = device.attribute("vendor").unwrap_or_default();
    let by_vendor =
        |(id, _, _, all): (&str, _, _, bool)| all && id.as_bytes() == vendor.trim_ascii();
    VENDORS.into_iter().any(by_vendor) || class_of(device).is_some_and(|it| COMPUTING.contains(&it))
}

/// The upper byte of a function's class.
fn class_of(function: &Directory) -> Option<u32> {
    let class = String::from_utf8(function.attribute("class").ok()?).ok()?;
    Some(u32::from_str_radix(class.trim().trim_start_matches("0x"), 16).ok()? >> 16)
}
