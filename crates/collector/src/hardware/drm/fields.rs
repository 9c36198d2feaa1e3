//! Which files a card's values are in, as data: path, divisor, plausible range.
//!
//! Facts: the comments of `drivers/gpu/drm/amd/pm/amdgpu_pm.c` and `amdgpu_vram_mgr.c` (AMD), the
//! kernel's `Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon` and `…-intel-xe-hwmon`,
//! `drivers/gpu/drm/i915/gt/intel_gt_sysfs_pm.c` and `drivers/gpu/drm/xe/xe_gt_freq.c` (Intel), and
//! `drivers/accel/ivpu/ivpu_sysfs.c` (Intel's NPU). The first file of a value that is there is read.

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SensorLocation {
    /// The device's directory, that of its PCI function where it has one.
    Device,
    /// The class directory, `/sys/class/drm/cardN`.
    Class,
    /// The device's first hwmon directory.
    Hwmon,
}

/// A number: the file's divided by `divisor` is in the unit of the range.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) place: SensorLocation,
    pub(super) path: &'static str,
    pub(super) divisor: f64,
}

/// A value: the files that may have it, and what is plausible.
#[derive(Debug, Clone, Copy)]
pub(super) struct SensorFiles {
    pub(super) files: &'static [File],
    pub(super) least: f64,
    pub(super) most: f64,
}

const fn device(path: &'static str, divisor: f64) -> File {
    File { place: SensorLocation::Device, path, divisor }
}

const fn class(path: &'static str, divisor: f64) -> File {
    File { place: SensorLocation::Class, path, divisor }
}

const fn hwmon(path: &'static str, divisor: f64) -> File {
    File { place: SensorLocation::Hwmon, path, divisor }
}

const fn field(files: &'static [File], least: f64, most: f64) -> SensorFiles {
    SensorFiles { files, least, most }
}

const MILLI: f64 = 1e3;
const MICRO: f64 = 1e6;
const PERCENT: f64 = 1e2;
/// Divides megahertz to hertz.
const FROM_MEGA: f64 = 1e-6;
const MOST_BYTES: f64 = (1u64 << 48) as f64;

/// The indices of values in [`FIELDS`].
pub(super) const VRAM_TOTAL: usize = 0;
pub(super) const VRAM_USED: usize = 1;
pub(super) const BUSY: usize = 2;
pub(super) const MEMORY_BUSY: usize = 3;
pub(super) const TEMPERATURE: usize = 4;
pub(super) const TEMPERATURE_LIMIT: usize = 5;
pub(super) const POWER: usize = 6;
pub(super) const POWER_LIMIT: usize = 7;
pub(super) const VOLTAGE: usize = 8;
pub(super) const CLOCK: usize = 9;
pub(super) const MEMORY_CLOCK: usize = 10;
pub(super) const FAN: usize = 11;
/// Energy since the boot, in joules: power where the driver has none.
pub(super) const ENERGY: usize = 12;
/// Time spent computing, in seconds: a share where the driver has none.
pub(super) const BUSY_TIME: usize = 13;

/// The values, by the indices above.
pub(super) static FIELDS: [SensorFiles; 14] = [
    field(&[device("mem_info_vram_total", 1.0)], 0.0, MOST_BYTES),
    field(&[device("mem_info_vram_used", 1.0)], 0.0, MOST_BYTES),
    field(&[device("gpu_busy_percent", PERCENT)], 0.0, 1.0),
    field(&[device("mem_busy_percent", PERCENT)], 0.0, 1.0),
    // Xe numbers its sensors from 2: the package.
    field(&[hwmon("temp1_input", MILLI), hwmon("temp2_input", MILLI)], -40.0, 150.0),
    field(&[hwmon("temp1_crit", MILLI), hwmon("temp2_crit", MILLI)], 1.0, 150.0),
    field(&[hwmon("power1_average", MICRO), hwmon("power1_input", MICRO)], 0.0, 3000.0),
    field(&[hwmon("power1_cap", MICRO), hwmon("power1_max", MICRO)], 1.0, 3000.0),
    field(&[hwmon("in0_input", MILLI)], 0.0, 3.0),
    field(
        &[
            hwmon("freq1_input", 1.0),
            class("gt/gt0/rps_act_freq_mhz", FROM_MEGA),
            class("gt_act_freq_mhz", FROM_MEGA),
            device("tile0/gt0/freq0/act_freq", FROM_MEGA),
            device("npu_current_frequency_mhz", FROM_MEGA),
        ],
        0.0,
        10e9,
    ),
    field(&[hwmon("freq2_input", 1.0)], 0.0, 30e9),
    field(&[hwmon("fan1_input", 1.0)], 0.0, 30_000.0),
    field(&[hwmon("energy1_input", MICRO)], 0.0, 1e13),
    field(&[device("npu_busy_time_us", MICRO)], 0.0, 1e13),
];

/// Texts of the device's directory.
pub(super) const VENDOR: &str = "vendor";
pub(super) const DEVICE: &str = "device";
pub(super) const PRODUCT: &str = "product_name";
pub(super) const UNIQUE_ID: &str = "unique_id";
pub(super) const SERIAL: &str = "serial_number";
pub(super) const VBIOS: &str = "vbios_version";
/// Whether the device sleeps (`Documentation/ABI/testing/sysfs-devices-power`).
pub(super) const RUNTIME_STATUS: &str = "power/runtime_status";

/// Drivers of devices that are no hardware of their own, and those that other sources read.
pub(super) const LEFT_OUT: [&str; 8] =
    ["vgem", "vkms", "virtio-pci", "virtio_gpu", "vmwgfx", "qxl", "bochs-drm", "tenstorrent"];

/// Vendors by PCI id.
pub(super) const PCI_VENDORS: [(&str, &str); 5] = [
    ("0x1002", "amd"),
    ("0x1022", "amd"),
    ("0x8086", "intel"),
    ("0x10de", "nvidia"),
    ("0x1da3", "habana"),
];

/// Vendors of devices that are on no PCI bus, by their driver.
pub(super) const DRIVER_VENDORS: [(&str, &str); 8] = [
    ("panfrost", "arm"),
    ("panthor", "arm"),
    ("lima", "arm"),
    ("v3d", "broadcom"),
    ("msm", "qualcomm"),
    ("msm_dpu", "qualcomm"),
    ("asahi", "apple"),
    ("etnaviv", "vivante"),
];
