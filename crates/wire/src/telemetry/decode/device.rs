//! Devices.

use telltale_schema::chip::{
    AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, FactSource, GalaxyPosition,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceIdentity, OtherIdentity};
use telltale_schema::health::{Evidence, Fault, FaultKind};
use telltale_schema::snapshot::{
    Device, DeviceErrors, Holder, KindMemory, Load, MemoryCounts, NvLinks, PcieLink, PcieTraffic,
    Power, SpaceUsage, Telemetry,
};

use super::{AnswerError, Code, checked, known, message, narrow, reading, short};

pub(super) fn device(from: message::Device) -> Result<Device, AnswerError> {
    let holders = checked(from.holders, |list| {
        let one = |holder: message::Holder| Holder {
            pid: holder.pid,
            open_descriptors: holder.open_descriptors,
            memory_known: holder.memory_known,
        };
        Ok(list.holders.into_iter().map(one).collect())
    })?;
    let sensors = from.telemetry.ok_or(AnswerError::Missing("telemetry"))?;
    let identity = match (from.other_identity, from.identity) {
        (Some(one), _) => DeviceIdentity::from(other(one)?),
        (None, Some(chip)) => DeviceIdentity::Chip(identity(chip)?),
        (None, None) => return Err(AnswerError::Missing("identity of a device")),
    };
    Ok(Device {
        id: from.id,
        identity,
        facts: checked(from.facts, facts)?,
        telemetry: telemetry(sensors)?,
        spaces: from.spaces.into_iter().map(space).collect::<Result<_, _>>()?,
        kinds: from.kinds.into_iter().map(kind).collect::<Result<_, _>>()?,
        holders,
        faults: from.faults.into_iter().filter_map(fault).collect(),
        health_not_kept: from.health_not_kept == Some(true),
    })
}

/// None for one of a kind that a newer node knows.
pub(super) fn fault(from: message::Fault) -> Option<Fault> {
    let evidence = |one: message::Evidence| Evidence {
        reading: one.reading,
        value: one.value,
        at: Timestamp(one.at_unix_ns),
    };
    Some(Fault {
        kind: FaultKind::of_code(from.kind)?,
        part: from.part,
        since: Timestamp(from.since_unix_ns),
        detail: from.detail,
        evidence: from.evidence.into_iter().map(evidence).collect(),
    })
}

fn other(from: message::OtherIdentity) -> Result<OtherIdentity, AnswerError> {
    let pci = from.pci_address.map(|text| text.parse());
    Ok(OtherIdentity {
        name: from.name,
        vendor: from.vendor,
        class: known(from.class, "class of a device")?,
        model: from.model,
        driver: from.driver,
        driver_ordinal: from.driver_ordinal,
        pci: pci.transpose().map_err(|_| AnswerError::Impossible("PCI address"))?,
        uuid: from.uuid,
        serial: from.serial,
        parent: from.parent,
    })
}

fn identity(from: message::ChipIdentity) -> Result<ChipIdentity, AnswerError> {
    let pci = from.pci_address.map(|text| text.parse());
    let position = |galaxy: message::GalaxyPosition| -> Result<GalaxyPosition, AnswerError> {
        Ok(GalaxyPosition {
            tray: narrow(galaxy.tray, "tray")?,
            nibble: narrow(galaxy.nibble, "nibble")?,
        })
    };
    Ok(ChipIdentity {
        driver_ordinal: from.driver_ordinal,
        pci: pci.transpose().map_err(|_| AnswerError::Impossible("PCI address"))?,
        asic_id: from.asic_id.map(AsicId),
        board_id: from.board_id.map(BoardId),
        board_type: BoardType::of_code(from.board_type).unwrap_or_default(),
        location: narrow(from.location, "location")?,
        galaxy: from.galaxy.map(position).transpose()?,
        remote: from.remote,
    })
}

fn facts(from: message::ChipFacts) -> Result<ChipFacts, AnswerError> {
    Ok(ChipFacts {
        architecture: known(from.architecture, "architecture")?,
        dram_capacity_bytes: from.dram_capacity_bytes,
        dram_channels: from.dram_channels,
        l1_per_core_bytes: from.l1_per_core_bytes,
        worker_cores: from.worker_cores,
        grid: (from.grid_columns, from.grid_rows),
        source: known(from.source, "source of facts")?,
    })
}

fn telemetry(from: message::Sensors) -> Result<Telemetry, AnswerError> {
    let firmware = from.firmware.into_iter().map(|one| (one.name, one.version));
    Ok(Telemetry {
        // From sensors.toml: decoding of telemetry.
        temperature_celsius: reading(from.temperature_celsius),
        temperature_limit_celsius: reading(from.temperature_limit_celsius),
        power_watts: reading(from.power_watts),
        power_limit_watts: reading(from.power_limit_watts),
        current_amperes: reading(from.current_amperes),
        current_limit_amperes: reading(from.current_limit_amperes),
        voltage_volts: reading(from.voltage_volts),
        voltage_limit_volts: reading(from.voltage_limit_volts),
        aiclk_hertz: reading(from.aiclk_hertz),
        axiclk_hertz: reading(from.axiclk_hertz),
        arcclk_hertz: reading(from.arcclk_hertz),
        fan_revolutions_per_minute: reading(from.fan_revolutions_per_minute),
        fan_ratio: reading(from.fan_ratio),
        heartbeat_total: reading(from.heartbeat_total),
        thermal_trips_total: reading(from.thermal_trips_total),
        // End of these.
        firmware: firmware.collect(),
        pcie: from.pcie.into_iter().map(traffic).collect::<Result<_, _>>()?,
        load: from.load.map(load).transpose()?,
        memory_counts: from.memory_counts.map(memory_counts),
        link: from.link.map(link),
        power: from.power.map(power),
        errors: from.errors.map(errors),
        nvlink: from.nvlink.map(nvlink),
    })
}

fn load(from: message::Load) -> Result<Box<Load>, AnswerError> {
    Ok(Box::new(Load {
        // From sensors.toml: decoding of load.
        busy_ratio: reading(from.busy_ratio),
        memory_busy_ratio: reading(from.memory_busy_ratio),
        memory_clock_hertz: reading(from.memory_clock_hertz),
        encoder_busy_ratio: reading(from.encoder_busy_ratio),
        decoder_busy_ratio: reading(from.decoder_busy_ratio),
        performance_state: reading(from.performance_state),
        // End of these.
        throttled_by: checked(from.throttled_by, |list| Ok(list.names))?,
    }))
}

fn memory_counts(from: message::MemoryCounts) -> Box<MemoryCounts> {
    let categories = from.categories.into_iter().map(|one| (one.name, one.bytes));
    Box::new(MemoryCounts {
        category_bytes: categories.collect(),
        // From sensors.toml: decoding of memory_counts.
        corrected_errors_total: reading(from.corrected_errors_total),
        uncorrected_errors_total: reading(from.uncorrected_errors_total),
        corrected_errors_lifetime_total: reading(from.corrected_errors_lifetime_total),
        uncorrected_errors_lifetime_total: reading(from.uncorrected_errors_lifetime_total),
        sram_uncorrected_errors_total: reading(from.sram_uncorrected_errors_total),
        sram_uncorrected_lifetime_total: reading(from.sram_uncorrected_lifetime_total),
        // End of these.
    })
}

fn link(from: message::PcieLink) -> Box<PcieLink> {
    Box::new(PcieLink {
        // From sensors.toml: decoding of link.
        pcie_generation: reading(from.pcie_generation),
        pcie_generation_max: reading(from.pcie_generation_max),
        pcie_width: reading(from.pcie_width),
        pcie_width_max: reading(from.pcie_width_max),
        pcie_received_bytes_per_second: reading(from.pcie_received_bytes_per_second),
        pcie_sent_bytes_per_second: reading(from.pcie_sent_bytes_per_second),
        numa_node: reading(from.numa_node),
        pcie_correctable_errors_total: reading(from.pcie_correctable_errors_total),
        pcie_nonfatal_errors_total: reading(from.pcie_nonfatal_errors_total),
        pcie_fatal_errors_total: reading(from.pcie_fatal_errors_total),
        // End of these.
    })
}

fn power(from: message::Power) -> Box<Power> {
    Box::new(Power {
        // From sensors.toml: decoding of power.
        energy_joules_total: reading(from.energy_joules_total),
        power_limit_default_watts: reading(from.power_limit_default_watts),
        power_limit_min_watts: reading(from.power_limit_min_watts),
        power_limit_max_watts: reading(from.power_limit_max_watts),
        // End of these.
    })
}

fn errors(from: message::DeviceErrors) -> Box<DeviceErrors> {
    Box::new(DeviceErrors {
        // From sensors.toml: decoding of errors.
        xid_errors_total: reading(from.xid_errors_total),
        xid_last: reading(from.xid_last),
        xid_hardware_errors_total: reading(from.xid_hardware_errors_total),
        xid_hardware_last: reading(from.xid_hardware_last),
        pcie_replays_total: reading(from.pcie_replays_total),
        remapped_rows_corrected: reading(from.remapped_rows_corrected),
        remapped_rows_uncorrected: reading(from.remapped_rows_uncorrected),
        row_remap_pending: reading(from.row_remap_pending),
        row_remap_failed: reading(from.row_remap_failed),
        retired_pages_corrected: reading(from.retired_pages_corrected),
        retired_pages_uncorrected: reading(from.retired_pages_uncorrected),
        page_retirement_pending: reading(from.page_retirement_pending),
        // End of these.
    })
}

fn nvlink(from: message::NvLinks) -> Box<NvLinks> {
    Box::new(NvLinks {
        // From sensors.toml: decoding of nvlink.
        nvlink_links: reading(from.nvlink_links),
        nvlink_links_up: reading(from.nvlink_links_up),
        nvlink_received_bytes_total: reading(from.nvlink_received_bytes_total),
        nvlink_sent_bytes_total: reading(from.nvlink_sent_bytes_total),
        nvlink_received_bytes_per_second: reading(from.nvlink_received_bytes_per_second),
        nvlink_sent_bytes_per_second: reading(from.nvlink_sent_bytes_per_second),
        nvlink_crc_errors_total: reading(from.nvlink_crc_errors_total),
        nvlink_replays_total: reading(from.nvlink_replays_total),
        nvlink_recoveries_total: reading(from.nvlink_recoveries_total),
        // End of these.
    })
}

fn traffic(from: message::PcieTraffic) -> Result<PcieTraffic, AnswerError> {
    Ok(PcieTraffic {
        counter: from.counter,
        noc: narrow(from.noc, "noc")?,
        direction: known(from.direction, "direction")?,
        bytes_total: reading(from.bytes_total),
        raw_flits: short(from.raw_flits, "flits of a counter")?,
    })
}

fn space(from: message::SpaceUsage) -> Result<SpaceUsage, AnswerError> {
    Ok(SpaceUsage {
        space: known(from.space, "memory space")?,
        used_bytes: reading(from.used_bytes),
        capacity_bytes: reading(from.capacity_bytes),
        capacity_source: FactSource::of_code(from.capacity_source),
    })
}

fn kind(from: message::KindMemory) -> Result<KindMemory, AnswerError> {
    Ok(KindMemory {
        kind: known(from.kind, "memory kind")?,
        total_bytes: from.total_bytes,
        processes_bytes: from.processes_bytes,
        unattributed_bytes: from.unattributed_bytes,
        ghost_bytes: from.ghost_bytes,
        live_buffers: from.live_buffers,
    })
}
