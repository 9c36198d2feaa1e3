//! Any snapshot at all, from one number: each field is drawn, none left at its default.

use telltale_schema::chip::{
    Architecture, AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, FactSource, GalaxyPosition,
    PciAddress,
};
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, DeviceIdentity, OtherIdentity};
use telltale_schema::health::{Evidence, Fault, FaultKind};
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::sensor::{SENSORS, SensorValue};
use telltale_schema::snapshot::{
    Accounting, AllocatedDevices, Container, Device, DeviceErrors, HeldDevice, HeldKind, HeldSpace,
    HeldUsage, Holder, HostUsage, KindMemory, LeftOut, Load, MemoryCounts, MetricSample,
    MetricValue, NvLinks, PcieLink, PcieTraffic, Pod, Power, Process, ProcessSource, ProcessState,
    ProcessUsage, RecordingFaults, Snapshot, SourceError, SourceNote, SourceStatus, SpaceUsage,
    Telemetry, TrafficDirection,
};

/// Draws numbers (splitmix64), and everything else from them.
pub(crate) struct Drawn(pub(crate) u64);

impl Drawn {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number of any size: 0, 1 and the largest come often.
    fn whole(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            _ => self.next() >> self.below(64),
        }
    }

    fn short(&mut self) -> u32 {
        u32::try_from(self.whole() & u64::from(u32::MAX)).expect("it fits")
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).expect("it fits")
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn number(&mut self) -> f64 {
        let any = f64::from_bits(self.next());
        if any.is_nan() { 0.0 } else { any }
    }

    fn text(&mut self) -> String {
        let characters = ['a', '0', ' ', '\n', '\0', 'é', '訓', '\u{10ffff}'];
        (0..self.below(12)).map(|_| self.of(&characters)).collect()
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.next()).expect("it fits") % list.len()]
    }

    fn maybe<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    fn some<T>(&mut self, draw: impl Fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }

    fn time(&mut self) -> Timestamp {
        Timestamp(self.whole())
    }

    fn reading<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Reading<T> {
        if self.flag() {
            let value = draw(self);
            Reading::new(value, self.time())
        } else {
            let reason = self.of(&Absence::ALL);
            Reading::absent(reason, self.text())
        }
    }

    fn boards(&mut self) -> BoardType {
        self.of(&[
            BoardType::N150,
            BoardType::N300,
            BoardType::GalaxyWormhole,
            BoardType::P100,
            BoardType::P150,
            BoardType::P300,
            BoardType::GalaxyBlackhole,
            BoardType::Unknown,
        ])
    }

    fn pod(&mut self) -> Pod {
        Pod {
            namespace: self.text(),
            name: self.text(),
            container: self.maybe(Self::text),
            allocated: self.some(|draw| AllocatedDevices {
                resource: draw.text(),
                ids: draw.some(Self::text),
            }),
        }
    }

    fn facts(&mut self) -> ChipFacts {
        ChipFacts {
            architecture: self.of(&[
                Architecture::Grayskull,
                Architecture::WormholeB0,
                Architecture::Blackhole,
            ]),
            dram_capacity_bytes: self.whole(),
            dram_channels: self.short(),
            l1_per_core_bytes: self.whole(),
            worker_cores: self.short(),
            grid: (self.short(), self.short()),
            source: self.of(&[FactSource::BoardTable, FactSource::Ledger, FactSource::Driver]),
        }
    }

    fn chip(&mut self) -> ChipIdentity {
        ChipIdentity {
            driver_ordinal: self.maybe(Self::short),
            pci: self.maybe(|draw| PciAddress {
                domain: draw.short(),
                bus: draw.byte(),
                device: draw.byte() % 32,
                function: draw.byte() % 8,
            }),
            asic_id: self.maybe(|draw| AsicId(draw.whole())),
            board_id: self.maybe(|draw| BoardId(draw.whole())),
            board_type: self.boards(),
            location: self.byte(),
            galaxy: self.maybe(|draw| GalaxyPosition { tray: draw.byte(), nibble: draw.byte() }),
            remote: self.flag(),
        }
    }

    fn identity(&mut self) -> DeviceIdentity {
        if self.flag() {
            return self.chip().into();
        }
        let chip = self.chip();
        OtherIdentity {
            name: self.text(),
            vendor: self.text(),
            class: self.of(&DeviceClass::ALL),
            model: self.maybe(Self::text),
            driver: self.maybe(Self::text),
            driver_ordinal: chip.driver_ordinal,
            pci: chip.pci,
            uuid: self.maybe(Self::text),
            serial: self.maybe(Self::text),
            parent: self.maybe(Self::text),
        }
        .into()
    }

    fn telemetry(&mut self) -> Telemetry {
        let mut telemetry = Telemetry::absent(self.of(&Absence::ALL), "");
        telemetry.firmware = self.some(|draw| (draw.text(), draw.text())).into_iter().collect();
        telemetry.pcie = self.some(|draw| PcieTraffic {
            counter: draw.text(),
            noc: draw.byte(),
            direction: draw.of(&[TrafficDirection::HostToDevice, TrafficDirection::DeviceToHost]),
            bytes_total: draw.reading(Self::whole),
            raw_flits: draw.reading(Self::short),
        });
        telemetry.load = self.maybe(|draw| {
            let mut load = Load::absent(Absence::NotKept, "");
            load.throttled_by = draw.reading(|draw| draw.some(Self::text));
            Box::new(load)
        });
        telemetry.memory_counts = self.maybe(|draw| {
            let mut counts = MemoryCounts::absent(Absence::NotKept, "");
            counts.category_bytes =
                draw.some(|draw| (draw.text(), draw.whole())).into_iter().collect();
            Box::new(counts)
        });
        telemetry.link = self.maybe(|_| Box::new(PcieLink::absent(Absence::NotKept, "")));
        telemetry.power = self.maybe(|_| Box::new(Power::absent(Absence::NotKept, "")));
        telemetry.errors = self.maybe(|_| Box::new(DeviceErrors::absent(Absence::NotKept, "")));
        telemetry.nvlink = self.maybe(|_| Box::new(NvLinks::absent(Absence::NotKept, "")));
        for sensor in SENSORS {
            if sensor.reading(&telemetry).is_some() {
                let reading = match sensor.is_whole() {
                    true => self.reading(Self::whole).map(SensorValue::Whole),
                    false => self.reading(Self::number).map(SensorValue::Float),
                };
                sensor.put(&mut telemetry, reading);
            }
        }
        telemetry
    }

    fn device(&mut self) -> Device {
        Device {
            id: self.text(),
            identity: self.identity(),
            facts: self.reading(Self::facts),
            telemetry: self.telemetry(),
            spaces: self.some(|draw| SpaceUsage {
                space: draw.of(&MemorySpace::ALL),
                used_bytes: draw.reading(Self::whole),
                capacity_bytes: draw.reading(Self::whole),
                capacity_source: draw
                    .maybe(|draw| draw.of(&[FactSource::BoardTable, FactSource::Driver])),
            }),
            kinds: self.some(|draw| KindMemory {
                kind: draw.of(&MemoryKind::ALL),
                total_bytes: draw.whole(),
                processes_bytes: draw.whole(),
                unattributed_bytes: draw.whole(),
                ghost_bytes: draw.whole(),
                live_buffers: draw.maybe(Self::whole),
            }),
            holders: self.reading(|draw| {
                draw.some(|draw| Holder {
                    pid: draw.maybe(Self::short),
                    open_descriptors: draw.short(),
                    memory_known: draw.flag(),
                })
            }),
            faults: self.some(Self::fault),
            health_not_kept: self.flag(),
        }
    }

    fn fault(&mut self) -> Fault {
        Fault {
            kind: self.of(&FaultKind::ALL),
            part: self.text(),
            since: self.time(),
            detail: self.text(),
            evidence: self.some(|draw| Evidence {
                reading: draw.text(),
                value: draw.number(),
                at: draw.time(),
            }),
        }
    }

    fn usage(&mut self) -> HeldUsage {
        if self.flag() {
            return HeldUsage::BytesOnly { live_bytes: self.whole() };
        }
        HeldUsage::Recorded(MemoryUsage {
            live_bytes: self.whole(),
            live_buffers: self.whole(),
            peak_bytes: self.whole(),
            allocations: self.whole(),
            allocated_bytes: self.whole(),
            failed_allocations: self.whole(),
        })
    }

    fn held(&mut self, devices: usize) -> HeldDevice {
        HeldDevice {
            device: usize::try_from(self.next()).expect("it fits") % devices,
            open_descriptors: self.short(),
            accounting: self.of(&[
                Accounting::Recorded,
                Accounting::BytesOnly,
                Accounting::OpenOnly,
                Accounting::Unknown,
            ]),
            kinds: self
                .some(|draw| HeldKind { kind: draw.of(&MemoryKind::ALL), usage: draw.usage() }),
            spaces: self.some(|draw| HeldSpace {
                space: draw.of(&MemorySpace::ALL),
                live_bytes: draw.whole(),
                live_buffers: draw.maybe(Self::whole),
            }),
            live_buffers: self.maybe(Self::whole),
            refused: self.maybe(Self::text),
            busy_ratio: self.maybe(|draw| draw.of(&[0.0, 0.25, 1.0])),
        }
    }

    fn metric(&mut self) -> MetricSample {
        let value = match self.below(3) {
            0 => MetricValue::Counter(self.whole()),
            1 => MetricValue::Gauge(self.number()),
            _ => {
                let bounds = self.some(Self::number);
                let counts = (0..=bounds.len()).map(|_| self.whole()).collect();
                MetricValue::Histogram { bounds, counts, sum: self.number() }
            }
        };
        MetricSample {
            name: self.text(),
            help: self.text(),
            unit: self.text(),
            labels: self.some(|draw| (draw.text(), draw.text())),
            value,
        }
    }

    fn process(&mut self, devices: usize) -> Process {
        let mut metrics = self.some(Self::metric);
        // The same ones again, as other samples of the same metrics.
        metrics.extend(metrics.clone());
        Process {
            identity: self.maybe(|draw| ProcessIdentity {
                boot_id: std::array::from_fn(|_| draw.byte()),
                pid_namespace: draw.whole(),
                pid: draw.short(),
                start_time_ticks: draw.whole(),
            }),
            pid: self.maybe(Self::short),
            namespace_pid: self.maybe(Self::short),
            name: self.text(),
            command: self.reading(Self::text),
            uid: self.reading(Self::short),
            user: self.reading(Self::text),
            container: self.maybe(|draw| Container {
                id: draw.text(),
                engine: draw.text(),
                pod_uid: draw.maybe(Self::text),
                pod: draw.maybe(Self::pod),
            }),
            state: self.of(&[ProcessState::Alive, ProcessState::Dead, ProcessState::Hidden]),
            known_by: self.maybe(|draw| {
                draw.of(&[
                    ProcessSource::Ledger,
                    ProcessSource::Endpoint,
                    ProcessSource::Region,
                    ProcessSource::Legacy,
                    ProcessSource::Driver,
                ])
            }),
            started_at: self.maybe(Self::time),
            uptime_seconds: self.reading(Self::number),
            usage: self.maybe(|draw| {
                Box::new(ProcessUsage {
                    cpu_ratio: draw.reading(Self::number),
                    resident_bytes: draw.reading(Self::whole),
                    threads: draw.reading(Self::whole),
                    read_bytes_per_second: draw.reading(Self::whole),
                    written_bytes_per_second: draw.reading(Self::whole),
                })
            }),
            devices: self.some(|draw| draw.held(devices)),
            faults: RecordingFaults {
                double_frees: self.whole(),
                unknown_frees: self.whole(),
                reused_live_addresses: self.whole(),
                unrecorded_events: self.whole(),
            },
            metrics: metrics.into(),
        }
    }

    fn host(&mut self) -> HostUsage {
        HostUsage {
            cpu_ratio: self.reading(Self::number),
            processors: self.reading(Self::whole),
            used_bytes: self.reading(Self::whole),
            memory_bytes: self.reading(Self::whole),
            load_1: self.reading(Self::number),
            load_5: self.reading(Self::number),
            load_15: self.reading(Self::number),
        }
    }

    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let mut devices = self.some(Self::device);
        devices.push(self.device());
        let count = devices.len();
        Snapshot {
            schema_version: self.short(),
            taken_at: self.time(),
            collected_in_ns: self.whole(),
            devices,
            processes: self.some(|draw| draw.process(count)),
            host: self.maybe(|draw| Box::new(draw.host())),
            faults: self.some(Self::fault),
            closed_processes: self.whole(),
            withheld_processes: self.whole(),
            left_out: self.maybe(|draw| LeftOut { devices: draw.whole(), processes: draw.whole() }),
            sources: self.some(|draw| SourceStatus {
                name: draw.text(),
                duration_ns: draw.whole(),
                errors: draw.some(|draw| SourceError {
                    subject: draw.text(),
                    reason: draw.of(&Absence::ALL),
                    detail: draw.text(),
                }),
                errors_dropped: draw.whole(),
                notes: draw.some(|draw| SourceNote {
                    subject: draw.text(),
                    count: draw.whole(),
                    detail: draw.text(),
                }),
            }),
        }
    }
}
