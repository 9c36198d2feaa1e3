//! What `nvidia-smi` said of GPUs of five kinds that are well (`tests/data/nvidia-captures.csv`), said
//! by the library: each reading is the same here, what is not available there is absent with its
//! reason, and nothing is found wrong.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use telltale_collector::{CollectOptions, Collector, NvmlUse};
use telltale_schema::clock::{ManualClock, Timestamp};
use telltale_schema::health::HealthState;
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::Device;

use super::{DEADLINE, LIBRARY, compiled};
use crate::hardware::tree::Machine;

const NOT_AVAILABLE: &str = "N/A";
const SECOND: u64 = 1_000_000_000;

/// What was said of a GPU, by the names of its elements.
struct Capture(BTreeMap<String, String>);

fn captures() -> Vec<Capture> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nvidia-captures.csv");
    let text = fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let rows = rows.as_slice();
    let of = |gpu: usize| rows.iter().map(move |row| (row[0].to_owned(), row[gpu].to_owned()));
    (1..rows[0].len()).map(|gpu| Capture(of(gpu).collect())).collect()
}

impl Capture {
    fn text(&self, element: &str) -> &str {
        self.0.get(element).unwrap_or_else(|| panic!("no {element}"))
    }

    /// A number without its unit; none where it is not available.
    fn number(&self, element: &str) -> Option<f64> {
        let text = self.text(element);
        let digits = text.trim_start_matches('P').split([' ', 'x']).next().unwrap();
        (text != NOT_AVAILABLE).then(|| digits.parse().unwrap())
    }

    /// The numbers of these elements in a line, so many times as much; none where one is not
    /// available.
    fn line(&self, elements: &[&str], times: f64) -> Option<String> {
        let one = |element: &&str| match self.text(element) {
            "Yes" => Some(String::from("1")),
            "No" => Some(String::from("0")),
            _ => self.number(element).map(|number| format!("{:.0}", number * times)),
        };
        let numbers: Option<Vec<String>> = elements.iter().map(one).collect();
        numbers.map(|numbers| numbers.join(" "))
    }

    /// A machine whose library says the same.
    fn machine(&self) -> Machine {
        let machine = Machine::new();
        machine.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX\n");
        machine.write("nvml/count", "1\n");
        machine.write("nvml/driver_version", self.text("driver_version"));
        fs::copy(compiled(), machine.path().join(LIBRARY)).unwrap();
        let texts = [("pci", "pci_bus_id"), ("name", "product_name"), ("vbios", "vbios_version")];
        machine.write("nvml/gpu0/handle", "1\n");
        for (file, element) in texts {
            machine.write(&format!("nvml/gpu0/{file}"), self.text(element));
        }
        let limits = ["min_power_limit", "max_power_limit"];
        let rows = [
            "remapped_row_corr",
            "remapped_row_unc",
            "remapped_row_pending",
            "remapped_row_failure",
        ];
        let mib = f64::from(1 << 20);
        for (file, elements, times) in [
            ("memory", &["fb_used", "fb_total"][..], mib),
            ("temperature", &["gpu_temp"], 1.0),
            ("slowdown", &["gpu_temp_slow_threshold"], 1.0),
            ("power", &["instant_power_draw"], 1000.0),
            ("power_limit", &["current_power_limit"], 1000.0),
            ("power_default", &["default_power_limit"], 1000.0),
            ("power_range", &limits, 1000.0),
            ("sm_clock", &["sm_clock"], 1.0),
            ("memory_clock", &["mem_clock"], 1.0),
            ("utilization", &["gpu_util", "gpu_util"], 1.0),
            ("encoder", &["encoder_util"], 1.0),
            ("decoder", &["decoder_util"], 1.0),
            ("pstate", &["performance_state"], 1.0),
            ("fan", &["fan_speed"], 1.0),
            ("pcie_replays", &["replay_counter"], 1.0),
            ("corrected", &["volatile_correctable"], 1.0),
            ("uncorrected", &["volatile_uncorrectable"], 1.0),
            ("corrected_lifetime", &["aggregate_correctable"], 1.0),
            ("uncorrected_lifetime", &["aggregate_uncorrectable"], 1.0),
            ("retired_corrected", &["retired_single_bit"], 1.0),
            ("retired_uncorrected", &["retired_double_bit"], 1.0),
            ("remapped_rows", &rows, 1.0),
        ] {
            let Some(line) = self.line(elements, times) else { continue };
            machine.write(&format!("nvml/gpu0/{file}"), line);
        }
        assert_eq!(self.text("clocks_event_reason_gpu_idle"), "Active");
        // `nvmlClocksEventReasonGpuIdle`.
        machine.write("nvml/gpu0/throttled_by", "1\n");
        self.furnish_link(&machine);
        machine
    }

    /// Its function in sysfs, below no port, as a virtual machine has it.
    fn furnish_link(&self, machine: &Machine) {
        let speeds = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"];
        let speed = |element: &str| {
            let generation = self.text(element).parse::<usize>().unwrap();
            format!("{} GT/s PCIe\n", speeds[generation - 1])
        };
        let address = self.text("pci_bus_id").trim_start_matches("0000").to_lowercase();
        let function = format!("sys/devices/pci0000:00/0000{address}");
        machine.link(
            &format!("sys/bus/pci/devices/0000{address}"),
            &format!("../../../../{function}"),
        );
        for (file, text) in [
            ("vendor", String::from("0x10de\n")),
            ("current_link_speed", speed("current_link_gen")),
            ("max_link_speed", speed("max_device_link_gen")),
            (
                "current_link_width",
                self.text("current_link_width").trim_end_matches('x').to_owned(),
            ),
            ("max_link_width", self.text("max_link_width").trim_end_matches('x').to_owned()),
        ] {
            machine.write(&format!("{function}/{file}"), text);
        }
    }

    /// Each reading beside the element that it is.
    fn readings(&self, device: &Device) -> Vec<(&'static str, Option<f64>)> {
        fn whole(reading: &Reading<u64>, per: u32) -> Option<f64> {
            reading.value().map(|value| f64::from(u32::try_from(value / u64::from(per)).unwrap()))
        }
        let float = |reading: &Reading<f64>| reading.value().copied();
        let percent = |reading: &Reading<f64>| float(reading).map(|ratio| ratio * 100.0);
        let telemetry = &device.telemetry;
        let (load, power) = (telemetry.load.as_ref().unwrap(), telemetry.power.as_ref().unwrap());
        let (counts, link) =
            (telemetry.memory_counts.as_ref().unwrap(), telemetry.link.as_ref().unwrap());
        let errors = telemetry.errors.as_ref().unwrap();
        let space = &device.spaces[0];
        vec![
            ("gpu_temp", float(&telemetry.temperature_celsius)),
            ("gpu_temp_slow_threshold", float(&telemetry.temperature_limit_celsius)),
            ("instant_power_draw", float(&telemetry.power_watts)),
            ("current_power_limit", float(&telemetry.power_limit_watts)),
            ("default_power_limit", float(&power.power_limit_default_watts)),
            ("min_power_limit", float(&power.power_limit_min_watts)),
            ("max_power_limit", float(&power.power_limit_max_watts)),
            ("sm_clock", whole(&telemetry.aiclk_hertz, 1_000_000)),
            ("mem_clock", whole(&load.memory_clock_hertz, 1_000_000)),
            ("gpu_util", percent(&load.busy_ratio)),
            ("encoder_util", percent(&load.encoder_busy_ratio)),
            ("decoder_util", percent(&load.decoder_busy_ratio)),
            ("performance_state", whole(&load.performance_state, 1)),
            ("fan_speed", whole(&telemetry.fan_revolutions_per_minute, 1)),
            ("fb_used", whole(&space.used_bytes, 1 << 20)),
            ("fb_total", whole(&space.capacity_bytes, 1 << 20)),
            ("volatile_correctable", whole(&counts.corrected_errors_total, 1)),
            ("volatile_uncorrectable", whole(&counts.uncorrected_errors_total, 1)),
            ("aggregate_correctable", whole(&counts.corrected_errors_lifetime_total, 1)),
            ("aggregate_uncorrectable", whole(&counts.uncorrected_errors_lifetime_total, 1)),
            ("remapped_row_corr", whole(&errors.remapped_rows_corrected, 1)),
            ("remapped_row_unc", whole(&errors.remapped_rows_uncorrected, 1)),
            ("retired_single_bit", whole(&errors.retired_pages_corrected, 1)),
            ("retired_double_bit", whole(&errors.retired_pages_uncorrected, 1)),
            ("replay_counter", whole(&errors.pcie_replays_total, 1)),
            ("current_link_gen", whole(&link.pcie_generation, 1)),
            ("current_link_width", whole(&link.pcie_width, 1)),
        ]
    }
}

#[test]
fn what_is_said_of_real_gpus_that_are_well_is_shown_and_nothing_is_found() {
    for capture in captures() {
        let machine = capture.machine();
        let clock = Arc::new(ManualClock::starting_at(Timestamp(1_700_000_000 * SECOND)));
        let options = CollectOptions {
            root: machine.path().to_owned(),
            nvml: NvmlUse::At(machine.path().join(LIBRARY)),
            timeout: Duration::from_secs(1),
            deadline: DEADLINE,
            ..CollectOptions::default()
        };
        let mut collector = Collector::with_clock(options, Arc::clone(&clock) as _).unwrap();
        let gpu = capture.text("product_name");
        for _ in 0..70 {
            clock.advance_ns(SECOND);
            let snapshot = collector.collect();
            let wrong: Vec<_> = snapshot.wrong().collect();
            assert!(wrong.is_empty(), "{gpu}: {wrong:?}");
        }
        let device = collector.collect().devices.remove(0);
        assert_eq!(device.health().state, HealthState::Ok, "{gpu}");
        for (element, ours) in capture.readings(&device) {
            let theirs = capture.number(element);
            let is_same = match (ours, theirs) {
                (Some(ours), Some(theirs)) => (ours - theirs).abs() < 0.005,
                (ours, theirs) => ours.is_none() && theirs.is_none(),
            };
            assert!(is_same, "{gpu}: {element} is {ours:?} here and {theirs:?} there");
        }
    }
}
