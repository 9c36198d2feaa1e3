//! Accelerators on the PCI bus that no driver has.

use std::os::unix::fs::symlink;
use std::path::Path;

use telltale_collector::hardware::{DriverlessBoard, driverless_boards};
use telltale_harness::Scratch;

/// A function of the bus; no driver has it where `driver` is empty.
fn function(root: &Path, address: &str, (vendor, class): (&str, &str), driver: &str) {
    let directory = root.join("sys/bus/pci/devices").join(address);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("vendor"), format!("{vendor}\n")).unwrap();
    std::fs::write(directory.join("class"), format!("{class}\n")).unwrap();
    if !driver.is_empty() {
        symlink(format!("../../drivers/{driver}"), directory.join("driver")).unwrap();
    }
}

#[test]
fn an_accelerator_that_no_driver_has_is_found_and_nothing_else_is() {
    let root = Scratch::new();
    assert_eq!(driverless_boards(root.path()), [], "no bus");
    assert_eq!(driverless_boards(&root.join("nowhere")), [], "no machine");
    let board = |address: &str, kind, driver| function(root.path(), address, kind, driver);
    board("0000:01:00.0", ("0x1e52", "0x120000"), "tenstorrent");
    board("0000:02:00.0", ("0x1e52", "0x120000"), "");
    board("0000:03:00.0", ("0x10de", "0x030200"), "vfio-pci");
    board("0000:03:00.1", ("0x10de", "0x040300"), "");
    board("0000:04:00.0", ("0x1002", "0x030000"), "amdgpu");
    board("0000:05:00.0", ("0x8086", "0x020000"), "");
    board("0000:06:00.0", ("", ""), "");
    board("0000:07:00.0", ("0x1002", "nonsense"), "");
    let found = |pci: &str, vendor, module, held_by: Option<&str>| DriverlessBoard {
        pci: pci.parse().unwrap(),
        vendor,
        module,
        held_by: held_by.map(str::to_owned),
    };
    let expected = [
        found("0000:02:00.0", "Tenstorrent", "tenstorrent", None),
        found("0000:03:00.0", "NVIDIA", "nvidia", Some("vfio-pci")),
    ];
    assert_eq!(driverless_boards(root.path()), expected);
}
