//! What the files of the host's parts say: paths below `sys/devices`, and texts without the newline at
//! their end.

use super::super::aer::{AerCounts, AerSeverity};
use super::super::fault::PartFailure;
use super::super::link::{Link, LinkSpeed, LinkWidth};
use super::Failing;
use super::layout::{
    Adapter, FANS, MEMORY, NICS, PORTS, SENSOR_CHIP, SUPPLY_DRIVER, VOLTAGES,
    VOLTAGES_WITHOUT_LIMITS, hwmons,
};
use super::model::PartsModel;

const FAN_MIN: u32 = 1_500;
/// What a slow fan turns at.
const FAN_SLOW: u32 = 1_180;
const NIC_MEGABITS: u32 = 200_000;
/// The link of every adapter and its slot.
const SLOT: Link = Link { speed: LinkSpeed::Gen4, width: LinkWidth::X16 };
/// Mellanox, and its ConnectX-6.
const ADAPTER_IDS: (&str, &str) = ("0x15b3", "0x101b");
const GID_ENTRIES: usize = 8;
const NO_GID: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

/// The files, as they are collected.
struct Files<'a> {
    failing: &'a [Failing],
    texts: Vec<(String, String)>,
}

/// Every file that there is under these failures, in one order.
pub(crate) fn files(
    model: &PartsModel,
    failing: &[Failing],
    first_hwmon: u32,
) -> Vec<(String, String)> {
    let mut files = Files { failing, texts: Vec::new() };
    let [sensors, supplies @ ..] = &hwmons(first_hwmon);
    files.fans_and_voltages(&sensors.path, model);
    for (place, supply) in supplies.iter().enumerate() {
        files.supply(&supply.path, place, model);
    }
    for (place, nic) in NICS.iter().enumerate() {
        files.nic(nic, place, model);
    }
    for (place, port) in PORTS.iter().enumerate() {
        files.port(port, place, model);
    }
    files.add(MEMORY, "mc_name", "EPYC");
    files.add(MEMORY, "ce_count", 0);
    files.add(MEMORY, "ue_count", model.uncorrected_errors);
    files.texts
}

// === impl Files ===

impl Files<'_> {
    fn add(&mut self, directory: &str, name: &str, text: impl ToString) {
        self.texts.push((format!("{directory}/{name}"), text.to_string()));
    }

    fn fails(&self, failure: PartFailure, place: usize) -> bool {
        self.failing.contains(&(failure, place))
    }

    fn fans_and_voltages(&mut self, path: &str, model: &PartsModel) {
        self.add(path, "name", SENSOR_CHIP.0);
        for (place, speed) in model.fans_revolutions_per_minute.into_iter().enumerate() {
            let stopped = self.fails(PartFailure::FanStopped, place);
            let slow = self.fails(PartFailure::FanSlow, place);
            let speed = match (stopped, slow) {
                (true, _) => 0,
                (false, true) => FAN_SLOW,
                (false, false) => speed,
            };
            let fan = place + 1;
            self.add(path, &format!("fan{fan}_input"), speed);
            self.add(path, &format!("fan{fan}_min"), FAN_MIN);
            self.add(path, &format!("fan{fan}_alarm"), u8::from(stopped || slow));
        }
        for (place, (normal, least, most)) in VOLTAGES.into_iter().enumerate() {
            let low = self.fails(PartFailure::VoltageAlarm, place);
            let millivolts = if low { least / 10 * 9 } else { normal };
            self.add(path, &format!("in{place}_input"), millivolts);
            self.add(path, &format!("in{place}_min"), least);
            self.add(path, &format!("in{place}_max"), most);
            self.add(path, &format!("in{place}_alarm"), u8::from(low));
        }
        self.unused(path);
    }

    /// What a board does not use: a header without a fan, and voltages of which no limits are set.
    fn unused(&mut self, path: &str) {
        for file in ["input", "min"] {
            self.add(path, &format!("fan{}_{file}", FANS + 1), 0);
        }
        self.add(path, &format!("fan{}_alarm", FANS + 1), 1);
        for (place, millivolts) in (VOLTAGES.len()..).zip(VOLTAGES_WITHOUT_LIMITS) {
            self.add(path, &format!("in{place}_input"), millivolts);
            self.add(path, &format!("in{place}_min"), 0);
            self.add(path, &format!("in{place}_max"), 0);
            self.add(path, &format!("in{place}_alarm"), 1);
        }
    }

    fn supply(&mut self, path: &str, place: usize, model: &PartsModel) {
        let failed = self.fails(PartFailure::SupplyFailed, place);
        let microwatts = if failed { 0 } else { model.supplies_microwatts[place] };
        let alarm = u8::from(failed);
        self.add(path, "name", SUPPLY_DRIVER);
        self.add(path, "in1_label", "vin");
        self.add(path, "in1_input", if failed { 0 } else { 230_000 });
        self.add(path, "in1_lcrit_alarm", alarm);
        self.add(path, "power1_label", "pin");
        self.add(path, "power1_input", microwatts);
        self.add(path, "power1_alarm", alarm);
    }

    fn nic(&mut self, nic: &Adapter, place: usize, model: &PartsModel) {
        if self.fails(PartFailure::NicGone, place) {
            return;
        }
        let narrow = self.fails(PartFailure::NicNarrow, place);
        let width = if narrow { LinkWidth::X4 } else { LinkWidth::X16 };
        self.function(nic, "0x020000", Link { width, ..SLOT });
        let path = format!("{}/net/{}", nic.path(), nic.name);
        let down = self.fails(PartFailure::NicDown, place);
        let slow = self.fails(PartFailure::NicSlow, place);
        let speed = if slow { NIC_MEGABITS / 2 } else { NIC_MEGABITS };
        self.add(&path, "type", 1);
        self.add(&path, "flags", "0x1003");
        self.add(&path, "carrier", u8::from(!down));
        self.add(&path, "operstate", if down { "down" } else { "up" });
        // A link that is down has no speed.
        self.add(&path, "speed", if down { "-1".to_owned() } else { speed.to_string() });
        let counters = model.nics[place];
        self.add(&path, "carrier_up_count", counters.carrier_ups);
        self.add(&path, "carrier_down_count", counters.carrier_downs);
    }

    fn port(&mut self, port: &Adapter, place: usize, model: &PartsModel) {
        self.function(port, "0x020700", SLOT);
        let path = format!("{}/infiniband/{}/ports/1", port.path(), port.name);
        let down = self.fails(PartFailure::PortDown, place);
        self.add(&path, "link_layer", "InfiniBand");
        self.add(&path, "state", if down { "1: DOWN" } else { "4: ACTIVE" });
        self.add(&path, "phys_state", if down { "2: Polling" } else { "5: LinkUp" });
        let rate = if down { "10 Gb/sec (4X SDR)" } else { "200 Gb/sec (4X HDR)" };
        self.add(&path, "rate", rate);
        let counters = model.ports[place];
        for (name, value) in [
            ("link_downed", counters.link_downs),
            ("link_error_recovery", counters.recoveries),
            ("symbol_error", 0),
            ("port_rcv_errors", 0),
        ] {
            self.add(&path, &format!("counters/{name}"), value);
        }
        let has_routable = !self.fails(PartFailure::PortWithoutGid, place);
        for entry in 0..GID_ENTRIES {
            let gid = match entry {
                0 => format!("fe80:0000:0000:0000:b8ce:f603:00{place:02x}:0000"),
                1 if has_routable => format!("fd00:0000:0000:0000:b8ce:f603:00{place:02x}:0001"),
                _ => NO_GID.to_owned(),
            };
            self.add(&path, &format!("gids/{entry}"), gid);
        }
    }

    /// A PCI function and the port above it.
    fn function(&mut self, adapter: &Adapter, class: &str, link: Link) {
        let path = adapter.path();
        let (vendor, device) = ADAPTER_IDS;
        self.add(&path, "vendor", vendor);
        self.add(&path, "device", device);
        self.add(&path, "class", class);
        self.add(&path, "numa_node", 1);
        let none = AerCounts::default();
        self.add(&path, "aer_dev_correctable", none.text(AerSeverity::Correctable));
        self.add(&path, "aer_dev_nonfatal", none.text(AerSeverity::Nonfatal));
        self.add(&path, "aer_dev_fatal", none.text(AerSeverity::Fatal));
        let port = adapter.port_path();
        // A root port of a processor of AMD's, as those above chips.
        self.add(&port, "vendor", "0x1022");
        self.add(&port, "device", "0x1483");
        self.add(&port, "class", "0x060400");
        for at in [path, port] {
            self.add(&at, "current_link_speed", link.speed_text());
            self.add(&at, "current_link_width", link.width_text());
            self.add(&at, "max_link_speed", SLOT.speed_text());
            self.add(&at, "max_link_width", SLOT.width_text());
        }
    }
}
