//! What GPUs count and may be set to: errors, energy, limits of power, video engines, NVLink. Two
//! kinds of GPU, which report different parts of it, and a library that knows none of it.

use std::fs;

use telltale_collector::source::{DeviceReading, HardwareSource};
use telltale_schema::reading::Absence;
use telltale_schema::sensor::SENSORS;

use super::{LIBRARY, compile, furnished, names, reasons, source};
use crate::hardware::tree::Machine;

/// As an A100-SXM4-80GB reports it: with remapped rows and 12 links, and no fan.
const A100: [(&str, &str); 23] = [
    ("name", "NVIDIA A100-SXM4-80GB\n"),
    ("corrected_lifetime", "31\n"),
    ("uncorrected_lifetime", "2\n"),
    ("sram_uncorrected", "0\n"),
    ("sram_uncorrected_lifetime", "1\n"),
    ("energy", "1234567890\n"),
    ("power_limit", "400000\n"),
    ("power_default", "400000\n"),
    ("power_range", "100000 400000\n"),
    ("encoder", "!NOT_SUPPORTED"),
    ("decoder", "7\n"),
    ("pstate", "0\n"),
    ("remapped_rows", "3 1 1 0\n"),
    ("pcie_replays", "5\n"),
    ("nvlink_links", "12 1\n"),
    ("nvlink_up", "11\n"),
    ("nvlink_rx", "4096\n"),
    ("nvlink_tx", "8192\n"),
    ("nvlink_crc", "6\n"),
    ("nvlink_replays", "4\n"),
    ("nvlink_recoveries", "2\n"),
    ("fan", "!NOT_SUPPORTED"),
    ("process_use", "71 40 900000\n"),
];

/// As a GPU of a GB200 reports it: 18 links, of whose errors the driver counts recoveries alone, each
/// link's.
const GB200: [(&str, &str); 15] = [
    ("name", "NVIDIA GB200\n"),
    ("energy", "98765432101\n"),
    ("power_limit", "1200000\n"),
    ("power_default", "1000000\n"),
    ("power_range", "400000 1200000\n"),
    ("encoder", "12\n"),
    ("decoder", "0\n"),
    ("pstate", "8\n"),
    ("remapped_rows", "0 0 0 0\n"),
    ("nvlink_links", "18 1\n"),
    ("nvlink_up", "18\n"),
    ("nvlink_rx", "1\n"),
    ("nvlink_tx", "2\n"),
    ("nvlink_recoveries_of_each", "3\n"),
    ("fan", "!INVALID_ARGUMENT"),
];

/// Makes the first GPU an A100, and the second one of a GB200.
pub(super) fn furnish_both(machine: &Machine) {
    furnish(machine, 0, &A100);
    furnish(machine, 1, &GB200);
}

fn furnish(machine: &Machine, gpu: u32, files: &[(&str, &str)]) {
    for (file, text) in files {
        machine.write(&format!("nvml/gpu{gpu}/{file}"), text);
    }
}

/// What a sensor says of a device, by its name in JSON.
fn value(device: &DeviceReading, field: &str) -> Result<f64, Option<Absence>> {
    let sensor = SENSORS.iter().find(|sensor| sensor.field == field).unwrap();
    let reading = sensor.read(&device.telemetry).ok_or(None)?;
    let absence = reading.absence().map(|(reason, _)| reason);
    reading.value().map(|value| value.as_f64()).ok_or(absence)
}

fn check(device: &DeviceReading, expected: &[(&str, Result<f64, Option<Absence>>)]) {
    for (field, expected) in expected {
        assert_eq!(value(device, field), *expected, "{field}");
    }
}

const NOT_THERE: Result<f64, Option<Absence>> = Err(Some(Absence::Unsupported));

#[test]
fn an_a100_and_a_gb200_report_what_each_of_them_counts() {
    let machine = furnished();
    furnish_both(&machine);
    let reading = source(&machine).read();
    assert_eq!(reading.status.errors, []);
    let [a100, gb200] = [0, 1].map(|index| &reading.devices[index]);
    let of_a100 = [
        ("corrected_errors_total", Ok(12.0)),
        ("corrected_errors_lifetime_total", Ok(31.0)),
        ("uncorrected_errors_lifetime_total", Ok(2.0)),
        ("sram_uncorrected_errors_total", Ok(0.0)),
        ("sram_uncorrected_lifetime_total", Ok(1.0)),
        ("energy_joules_total", Ok(1_234_567.89)),
        ("power_limit_watts", Ok(400.0)),
        ("power_limit_default_watts", Ok(400.0)),
        ("power_limit_min_watts", Ok(100.0)),
        ("power_limit_max_watts", Ok(400.0)),
        ("encoder_busy_ratio", NOT_THERE),
        ("decoder_busy_ratio", Ok(0.07)),
        ("performance_state", Ok(0.0)),
        ("remapped_rows_corrected", Ok(3.0)),
        ("remapped_rows_uncorrected", Ok(1.0)),
        ("row_remap_pending", Ok(1.0)),
        ("row_remap_failed", Ok(0.0)),
        ("retired_pages_corrected", NOT_THERE),
        ("pcie_replays_total", Ok(5.0)),
        ("nvlink_links", Ok(12.0)),
        ("nvlink_links_up", Ok(11.0)),
        ("nvlink_received_bytes_total", Ok(4_194_304.0)),
        ("nvlink_sent_bytes_total", Ok(8_388_608.0)),
        ("nvlink_received_bytes_per_second", Err(Some(Absence::NotYet))),
        ("nvlink_crc_errors_total", Ok(6.0)),
        ("nvlink_replays_total", Ok(4.0)),
        ("nvlink_recoveries_total", Ok(2.0)),
        ("fan_ratio", Ok(0.57)),
        ("fan_revolutions_per_minute", NOT_THERE),
    ];
    check(a100, &of_a100);
    let of_gb200 = [
        ("sram_uncorrected_errors_total", NOT_THERE),
        ("sram_uncorrected_lifetime_total", NOT_THERE),
        ("power_limit_max_watts", Ok(1200.0)),
        ("encoder_busy_ratio", Ok(0.12)),
        ("performance_state", Ok(8.0)),
        ("pcie_replays_total", NOT_THERE),
        ("nvlink_links_up", Ok(18.0)),
        ("nvlink_crc_errors_total", NOT_THERE),
        ("nvlink_replays_total", NOT_THERE),
        ("nvlink_recoveries_total", Ok(54.0)),
        ("fan_revolutions_per_minute", NOT_THERE),
    ];
    check(gb200, &of_gb200);
}

#[test]
fn an_old_card_has_retired_pages_and_no_link_and_a_hopper_errors_of_each() {
    let machine = furnished();
    let pages = [("retired_corrected", "4\n"), ("retired_uncorrected", "1 1\n")];
    furnish(&machine, 0, &pages);
    furnish(&machine, 0, &[("retired_pending", "1\n")]);
    let mut source = source(&machine);
    let reading = source.read();
    assert_eq!(reading.status.errors, []);
    let expected = [
        ("retired_pages_corrected", Ok(4.0)),
        ("retired_pages_uncorrected", Ok(1.0)),
        ("page_retirement_pending", Ok(1.0)),
        ("remapped_rows_corrected", NOT_THERE),
    ];
    check(&reading.devices[0], &expected);
    assert!(reading.devices[0].telemetry.nvlink.is_none());
    // A Hopper counts errors of each link, and no sum.
    let links = [("nvlink_links", "18\n"), ("nvlink_up", "18\n")];
    let of_each = [
        ("nvlink_crc_of_each", "2\n"),
        ("nvlink_replays_of_each", "1\n"),
        ("nvlink_relinks_of_each", "3\n"),
    ];
    furnish(&machine, 1, &links);
    furnish(&machine, 1, &of_each);
    let expected = [
        ("nvlink_crc_errors_total", Ok(36.0)),
        ("nvlink_replays_total", Ok(18.0)),
        ("nvlink_recoveries_total", Ok(54.0)),
    ];
    check(&source.read().devices[1], &expected);
    // A bridge that is there but leads nowhere is no link that is up.
    furnish(&machine, 0, &[("nvlink_links", "12\n"), ("nvlink_rx", "0\n"), ("nvlink_tx", "0\n")]);
    let reading = source.read();
    check(&reading.devices[0], &[("nvlink_links", Ok(12.0)), ("nvlink_links_up", Ok(0.0))]);
    machine.write("nvml/gpu0/nvlink_links", "0\n");
    assert!(source.read().devices[0].telemetry.nvlink.is_none());
}

#[test]
fn a_library_without_these_functions_reports_the_rest() {
    let machine = furnished();
    furnish(&machine, 0, &A100);
    machine.remove(LIBRARY);
    fs::copy(compile("nvml-old", &["-DOLD"]), machine.path().join(LIBRARY)).unwrap();
    let mut source = source(&machine);
    source.read();
    let reading = source.read();
    assert_eq!(reading.status.errors, []);
    let first = &reading.devices[0];
    let lacking = [
        "sram_uncorrected_errors_total",
        "sram_uncorrected_lifetime_total",
        "energy_joules_total",
        "power_limit_default_watts",
        "power_limit_max_watts",
        "encoder_busy_ratio",
        "decoder_busy_ratio",
        "performance_state",
        "remapped_rows_corrected",
        "row_remap_failed",
        "pcie_replays_total",
    ];
    check(first, &lacking.map(|field| (field, NOT_THERE)));
    check(first, &[("power_watts", Ok(119.5)), ("corrected_errors_total", Ok(12.0))]);
}

#[test]
fn absurd_counts_are_refused_and_failures_are_reported() {
    let machine = furnished();
    furnish(&machine, 0, &A100);
    let absurd = [
        ("encoder", "101\n"),
        ("decoder", "4294967295\n"),
        ("pstate", "16\n"),
        ("power_range", "400000 100000\n"),
        ("power_default", "4294967295\n"),
        ("remapped_rows", "4294967295 1 2 7\n"),
        ("retired_pending", "2\n"),
        ("nvlink_up", "11\n"),
        ("nvlink_links", "4000000000\n"),
        ("nvlink_rx", "18446744073709551615\n"),
        ("nvlink_crc", "6 0\n"),
    ];
    furnish(&machine, 0, &absurd);
    let mut source = source(&machine);
    let first = &source.read().devices[0];
    let refused = [
        "encoder_busy_ratio",
        "decoder_busy_ratio",
        "power_limit_min_watts",
        "power_limit_max_watts",
        "power_limit_default_watts",
        "remapped_rows_corrected",
        "row_remap_pending",
        "row_remap_failed",
        "page_retirement_pending",
        "nvlink_links",
        "nvlink_received_bytes_total",
        "nvlink_received_bytes_per_second",
    ];
    check(first, &refused.map(|field| (field, Err(Some(Absence::Implausible)))));
    check(first, &[("nvlink_crc_errors_total", Err(Some(Absence::NotUnderstood)))]);
    check(first, &[("remapped_rows_uncorrected", Ok(1.0))]);
    // Each refuses in its own way, and the reasons are reported once.
    furnish(&machine, 0, &A100);
    let failing = [
        ("energy", "!GPU_IS_LOST"),
        ("remapped_rows", "!RESET_REQUIRED"),
        ("pstate", "!NO_PERMISSION"),
        ("fields", "!GPU_IS_LOST"),
        ("retired_pending", "1\n"),
    ];
    furnish(&machine, 0, &failing);
    let reading = source.read();
    assert_eq!(names(&reading), ["0000:41:00.0", "0000:c1:00.0"]);
    let expected = [("0000:41:00.0", Absence::Gone), ("0000:41:00.0", Absence::Resetting)];
    assert_eq!(reasons(&reading), expected);
    let expected = [
        ("energy_joules_total", Err(Some(Absence::Gone))),
        ("remapped_rows_corrected", Err(Some(Absence::Resetting))),
        ("performance_state", Err(Some(Absence::Permission))),
        ("nvlink_links_up", Err(Some(Absence::Gone))),
        ("nvlink_sent_bytes_per_second", Err(Some(Absence::Gone))),
    ];
    check(&reading.devices[0], &expected);
}
