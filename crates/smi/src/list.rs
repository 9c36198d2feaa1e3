//! The devices, one a line, as `nvidia-smi -L` has them.

use telltale_schema::snapshot::{Device, Snapshot};
use telltale_schema::text::printable;

/// Each device's index, id and kind, then what identifies it.
pub fn list(snapshot: &Snapshot) -> String {
    snapshot.devices.iter().enumerate().map(|(place, device)| line(place, device)).collect()
}

fn line(place: usize, device: &Device) -> String {
    let identity = &device.identity;
    let mut facts = Vec::new();
    if let Some(pci) = identity.pci() {
        let whose = if identity.is_remote() { "PCI of its gateway" } else { "PCI" };
        facts.push(format!("{whose}: {pci}"));
    }
    if let Some(chip) = identity.chip() {
        facts.extend(chip.board_id.map(|board| format!("board: {board}")));
        facts.extend(chip.driver_ordinal.map(|number| format!("driver: {number}")));
    }
    let facts = match facts.is_empty() {
        true => String::new(),
        false => format!(" ({})", facts.join(", ")),
    };
    let id = printable(&device.id);
    format!("Device {place}: {id}: {}{}\n", kind(device), printable(&facts))
}

/// The board and the architecture, or the product.
fn kind(device: &Device) -> String {
    let product = printable(device.identity.product());
    match device.architecture() {
        Some(architecture) => format!("{product} {}", architecture.name()),
        None => product,
    }
}
