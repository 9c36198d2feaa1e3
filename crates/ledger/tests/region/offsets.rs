//! The table of offsets and the decoder against the C compiler's structs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use telltale_harness::Scratch;
use telltale_ledger::region::{
    CHIP_ROWS, DecodeError, LAYOUTS, LastUpdate, Layout, LayoutVariant, PROCESS_ROWS, RegionKind,
    RegionReadError, UpdateClock, read,
};

use crate::region::samples::{ID, NOW, layouts, make, reading, sample, word};

fn kind_word(kind: RegionKind) -> &'static str {
    match kind {
        RegionKind::Dram => "dram",
        RegionKind::L1 => "l1",
        RegionKind::L1Small => "l1_small",
        RegionKind::Trace => "trace",
        RegionKind::Cb => "cb",
        RegionKind::Kernel => "kernel",
    }
}

/// Every field of a layout by the C program's name, from the Rust table.
fn table(layout: &Layout) -> BTreeMap<String, usize> {
    let mut fields: BTreeMap<String, usize> = [
        ("size", layout.size_bytes),
        ("version", Layout::VERSION),
        ("num_active_processes", Layout::PROCESS_COUNT),
        ("last_update", Layout::LAST_UPDATE),
        ("reference_count", Layout::REFERENCE_COUNT),
        ("board_serial", Layout::BOARD_SERIAL),
        ("asic_id", Layout::ASIC_ID),
        ("device_id", Layout::DEVICE_ID),
    ]
    .map(|(name, offset)| (name.to_owned(), offset))
    .into();
    fields.extend(layout.init_state_offset.map(|at| ("init_state".to_owned(), at)));
    let mut put = |name: String, offset| {
        assert!(fields.insert(name, offset).is_none(), "each field is listed once");
    };
    for kind in RegionKind::ALL.into_iter().filter(|kind| layout.counts(*kind)) {
        let name = kind_word(kind);
        let known = "the layout counts this kind";
        put(format!("total.{name}"), layout.total(kind).expect(known));
        for row in 0..CHIP_ROWS {
            put(format!("chip.{row}.{name}"), layout.chip_counter(row, kind).expect(known));
        }
        for row in 0..PROCESS_ROWS {
            put(format!("process.{row}.{name}"), layout.process_counter(row, kind).expect(known));
        }
    }
    for row in 0..CHIP_ROWS {
        put(format!("chip.{row}.chip_id"), layout.chip(row));
        put(format!("chip.{row}.is_remote"), layout.chip_is_remote(row));
    }
    for row in 0..PROCESS_ROWS {
        put(format!("process.{row}.pid"), layout.process(row));
        put(format!("process.{row}.last_update"), layout.process_last_update(row));
        put(format!("process.{row}.name"), layout.process_name(row));
    }
    fields
}

#[test]
fn the_table_has_the_offsets_of_the_c_structs() {
    for layout in &LAYOUTS {
        let output = layouts(&["offsets", word(layout.variant)]);
        let text = String::from_utf8(output.stdout).expect("the C program prints text");
        let compiled: BTreeMap<String, usize> = text
            .lines()
            .map(|line| {
                let mut words = line.split(' ');
                let name = words.next().expect("a line has a name").to_owned();
                let offset = words.next().and_then(|word| word.parse().ok());
                (name, offset.expect("a line has an offset"))
            })
            .collect();
        assert_eq!(table(layout), compiled, "{:?}", layout.variant);
    }
}

#[test]
fn every_field_of_every_layout_is_read() {
    for layout in &LAYOUTS {
        let kinds = || RegionKind::ALL.into_iter().filter(|kind| layout.counts(*kind));
        let mut fields = String::from(
            "num_active_processes=2 last_update=999000000000 reference_count=3 board_serial=1834 \
             asic_id=7 device_id=5 chip.0.chip_id=5 chip.15.chip_id=9 chip.15.is_remote=1 \
             process.0.pid=100 process.0.name=python3 process.63.pid=2147483647 \
             process.63.last_update=1799999999000000000 process.63.name=vllm",
        );
        // Totals 11, 12, …; each split over two chips and two processes.
        for (kind, total) in kinds().zip(11..) {
            let name = kind_word(kind);
            let rest = total - 10;
            fields.push_str(&format!(
                " total.{name}={total} chip.0.{name}=10 chip.15.{name}={rest} \
                 process.0.{name}=10 process.63.{name}={rest}"
            ));
        }
        let region = sample(layout.variant, &fields);
        assert_eq!((region.variant, region.version), (layout.variant, layout.version));
        assert_eq!((region.process_count, region.reference_count), (2, 3));
        assert_eq!((region.board_serial, region.asic_id), (Some(1834), 7));
        assert_eq!(region.device_id, Some(5));
        let ago = |clock, stamp_ns| LastUpdate::Ago { clock, stamp_ns, age_ns: 1_000_000_000 };
        assert_eq!(region.last_update, ago(UpdateClock::Monotonic, 999_000_000_000));
        let chips: Vec<_> =
            region.chips.iter().map(|row| (row.row, row.chip_id, row.is_remote)).collect();
        assert_eq!(chips, [(0, 5, false), (15, 9, true)]);
        let rows: Vec<_> =
            region.processes.iter().map(|row| (row.row, row.pid, row.name.as_str())).collect();
        assert_eq!(rows, [(0, 100, "python3"), (63, 2_147_483_647, "vllm")]);
        assert_eq!(region.processes[0].last_update, LastUpdate::Never);
        let epoch = ago(UpdateClock::Epoch, 1_799_999_999_000_000_000);
        assert_eq!(region.processes[1].last_update, epoch);
        let counters = [
            (region.totals, 0),
            (region.chips[0].bytes, 10),
            (region.chips[1].bytes, -10),
            (region.processes[0].bytes, 10),
            (region.processes[1].bytes, -10),
        ];
        for (counters, offset) in counters {
            let expected = kinds().zip(11_u64..).map(|(kind, total)| match offset {
                10 => (kind, 10),
                offset => (kind, total.saturating_add_signed(offset)),
            });
            assert_eq!(counters.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
        assert_eq!(region.totals.get(RegionKind::Kernel).is_some(), layout.kind_count == 6);
        assert_eq!(region.findings, []);
    }
}

#[test]
fn unused_chip_rows_are_known_by_either_mark() {
    let check = |variant, fields: &str, expected: &[(usize, u32)]| {
        let region = sample(variant, fields);
        let rows: Vec<_> = region.chips.iter().map(|row| (row.row, row.chip_id)).collect();
        assert_eq!(rows, expected, "{variant:?} {fields}");
    };
    let later_marks: String =
        (2..CHIP_ROWS).map(|row| format!(" chip.{row}.chip_id=4294967295")).collect();
    for variant in [LayoutVariant::V1, LayoutVariant::V2] {
        check(variant, "", &[]);
        check(variant, "chip.1.chip_id=3", &[(1, 3)]);
        check(variant, "chip.0.dram=4096 total.dram=4096", &[(0, 0)]);
    }
    check(LayoutVariant::V2, &later_marks, &[(0, 0), (1, 0)]);
    check(LayoutVariant::V3, &format!("chip.1.chip_id=1{later_marks}"), &[(0, 0), (1, 1)]);
}

#[test]
fn the_file_is_identified_by_inode_and_owner() {
    let scratch = Scratch::new();
    let path = make(scratch.path(), ID, LayoutVariant::V3, "");
    let metadata = std::fs::metadata(&path).expect("the sample exists");
    let reading = read(scratch.path(), ID, NOW).expect("the sample is a region");
    assert_eq!(reading.name_id, ID);
    assert_eq!((reading.file.device, reading.file.inode), (metadata.dev(), metadata.ino()));
    assert_eq!((reading.owner_uid, reading.mode), (metadata.uid(), metadata.mode() & 0o7777));
}

#[test]
fn fields_that_say_nothing_are_absent() {
    let region = sample(LayoutVariant::V1, "device_id=-1");
    assert_eq!((region.device_id, region.board_serial), (None, Some(0)));
    let region = sample(LayoutVariant::V3, "device_id=0");
    assert_eq!((region.device_id, region.board_serial), (Some(0), None));
    assert_eq!(region.last_update, LastUpdate::Never);
    let future = sample(LayoutVariant::V3, "last_update=2000000000000000000");
    let stamp_ns = 2_000_000_000_000_000_000;
    assert_eq!(future.last_update, LastUpdate::Unknown { stamp_ns });
}

#[test]
fn a_version_4_region_that_is_not_ready_is_not_read() {
    for (state, number) in [("0", 0), ("1", 1), ("7", 7)] {
        let result = reading(LayoutVariant::V4, &format!("init_state={state} total.dram=4096"));
        let Err(RegionReadError::Decode { source, .. }) = result else {
            panic!("{state}: {result:?}");
        };
        assert_eq!(source, DecodeError::NotReady { init_state: number });
    }
}

#[test]
fn the_document_has_the_same_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/regions.md");
    let document = std::fs::read_to_string(path).expect("docs/regions.md exists");
    let lines = LAYOUTS.map(|known| {
        let (version, size_bytes, kinds) = (known.version, known.size_bytes, known.kind_count);
        let (chips, chip) = (known.chips_offset, known.chip_stride());
        let (processes, process) = (known.processes_offset, known.process_stride());
        format!(
            "| {version} | {size_bytes} | {kinds} | {chips} | {chip} | {processes} | {process} |"
        )
    });
    assert!(document.contains(&lines.join("\n")), "{lines:#?}");
}
