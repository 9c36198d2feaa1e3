//! Turns the bytes of a region file into a plain [`Region`].
//!
//! Pure: bytes and the time come in, nothing is opened and no clock is read. No input panics. A
//! counter that cannot be true is absent from the result and named in its findings.
#![forbid(unsafe_code)]

use telltale_schema::text::steers;
use thiserror::Error;

use super::findings::{CounterPlace, MAX_COUNTER_BYTES, RegionFinding, find_in_table};
use super::layout::{
    CHIP_ROWS, INIT_STATE_READY, Layout, LayoutVariant, PROCESS_NAME_BYTES, PROCESS_ROWS,
    RegionKind, UNUSED_CHIP,
};

/// Stamps from this value on are Unix time: 2000-01-01, and 30 years of uptime.
const EPOCH_STAMPS_FROM_NS: u64 = 946_684_800_000_000_000;

/// How far ahead of now a stamp may be and still count as now: clocks are read at different
/// moments, and coarse ones lag a tick.
const CLOCK_SLACK_NS: u64 = 1_000_000_000;

/// The present in both clocks that region writers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub epoch_ns: u64,
}

/// Why the bytes are not a region that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// No layout with this version has this size.
    #[error(
        "no known layout has {} and {size_bytes} bytes; a newer Telltale may know it, and a file \
         that no program uses can be removed",
        said(*.version)
    )]
    Unsupported {
        /// The version field, absent in a file too short to have one.
        version: Option<u32>,
        /// The file's size.
        size_bytes: u64,
    },
    /// The file was created and nothing was written to it.
    #[error("the region was created but never initialised; its writer died or is just starting")]
    NeverInitialised,
    /// A version 4 region that no writer has declared ready.
    #[error("the region is not ready (init_state {init_state:#x}); its writer died or is starting")]
    NotReady {
        /// 0 uninitialised, 1 in progress, anything else undefined.
        init_state: u32,
    },
}

/// What a file's version field says, in words.
fn said(version: Option<u32>) -> String {
    version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"))
}

/// Bytes held, by kind. A kind is absent where the layout has no counter for it, or where the
/// counter cannot be true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    bytes: [Option<u64>; RegionKind::ALL.len()],
}

impl Counters {
    /// The bytes of `kind`.
    #[must_use]
    pub fn get(&self, kind: RegionKind) -> Option<u64> {
        self.bytes[kind.index()]
    }

    /// The kinds that are present, with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (RegionKind, u64)> + '_ {
        RegionKind::ALL.into_iter().filter_map(|kind| Some((kind, self.get(kind)?)))
    }

    /// The sum over all present kinds.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.iter().map(|(_, bytes)| u128::from(bytes)).sum()
    }
}

/// The clock of a stamp, recognized by its magnitude: a file's writers may have used both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateClock {
    /// Time since boot.
    Monotonic,
    /// Time since the Unix epoch.
    Epoch,
}

/// When something was last written, as its writer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastUpdate {
    /// The stamp is 0.
    Never,
    /// Written this long ago.
    Ago {
        /// The clock of the stamp.
        clock: UpdateClock,
        /// The stamp itself, in nanoseconds of that clock.
        stamp_ns: u64,
        /// Its age, in nanoseconds.
        age_ns: u64,
    },
    /// The stamp lies in the future of its clock, so the age is not known.
    Unknown {
        /// The stamp itself, in nanoseconds of an unknown clock.
        stamp_ns: u64,
    },
}

impl LastUpdate {
    fn new(stamp_ns: u64, now: Now) -> Self {
        let (clock, now_ns) = if stamp_ns >= EPOCH_STAMPS_FROM_NS {
            (UpdateClock::Epoch, now.epoch_ns)
        } else {
            (UpdateClock::Monotonic, now.monotonic_ns)
        };
        match stamp_ns {
            0 => Self::Never,
            _ if stamp_ns > now_ns.saturating_add(CLOCK_SLACK_NS) => Self::Unknown { stamp_ns },
            _ => Self::Ago { clock, stamp_ns, age_ns: now_ns.saturating_sub(stamp_ns) },
        }
    }
}

/// One used chip row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipRow {
    /// The row's place in the table; row 0 is the chip that the region is about.
    pub row: usize,
    /// The chip's logical id in the process that claimed the row.
    pub chip_id: u32,
    /// Whether the chip is reached through another.
    pub is_remote: bool,
    /// Bytes booked to the chip. Its writers do not take back what a dead process held.
    pub bytes: Counters,
}

/// One process row with a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    /// The row's place in the table.
    pub row: usize,
    /// What the process calls itself: a pid of *its* PID namespace.
    pub pid: u32,
    /// The process name, control characters escaped.
    pub name: String,
    /// Bytes held.
    pub bytes: Counters,
    /// When the process last changed its row.
    pub last_update: LastUpdate,
}

/// What a region says, and what is wrong with that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The layout it has.
    pub variant: LayoutVariant,
    /// The version in the file.
    pub version: u32,
    /// `num_active_processes`, as its writers left it.
    pub process_count: u32,
    /// `reference_count`, as its writers left it; a killed process stays counted before version 4.
    pub reference_count: u32,
    /// The board part of the name's id in version 1; absent later, where the field is reserved.
    pub board_serial: Option<u64>,
    /// The location part of the name's id in version 1, the whole id later.
    pub asic_id: u64,
    /// The logical device id of the process that attached last; absent if negative.
    pub device_id: Option<u32>,
    /// When any process last changed the region.
    pub last_update: LastUpdate,
    /// The totals, which the writers keep beside the rows: the two can disagree.
    pub totals: Counters,
    /// The used chip rows.
    pub chips: Vec<ChipRow>,
    /// The process rows with a pid above 0.
    pub processes: Vec<ProcessRow>,
    /// What is wrong, as far as the bytes alone show.
    pub findings: Vec<RegionFinding>,
}

impl Region {
    /// The bytes that process rows give for `kind`; absent if the layout or a row has no value.
    #[must_use]
    pub fn rows_bytes(&self, kind: RegionKind) -> Option<u128> {
        if !Layout::of(self.variant).counts(kind) {
            return None;
        }
        self.processes.iter().map(|row| row.bytes.get(kind).map(u128::from)).sum()
    }

    /// The bytes that chip rows give for `kind`; absent if the layout or a row has no value.
    #[must_use]
    pub fn chips_bytes(&self, kind: RegionKind) -> Option<u128> {
        if !Layout::of(self.variant).counts(kind) {
            return None;
        }
        self.chips.iter().map(|row| row.bytes.get(kind).map(u128::from)).sum()
    }

    /// How many totals are absent although the layout has them.
    pub(super) fn wrapped_totals(&self) -> usize {
        let layout = Layout::of(self.variant);
        let absent = |kind: &RegionKind| layout.counts(*kind) && self.totals.get(*kind).is_none();
        RegionKind::ALL.iter().filter(|kind| absent(kind)).count()
    }
}

/// Decodes the whole content of a region file.
///
/// # Errors
/// When (version, size) is not in [`super::LAYOUTS`], or the region was not initialised.
pub fn decode(bytes: &[u8], now: Now) -> Result<Region, DecodeError> {
    let size_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if bytes.is_empty() {
        return Err(DecodeError::NeverInitialised);
    }
    let version = bytes.first_chunk::<4>().map(|first| u32::from_le_bytes(*first));
    let known_size = super::LAYOUTS.iter().any(|known| known.size_bytes == bytes.len());
    let layout = match version {
        Some(0) if known_size => return Err(DecodeError::NeverInitialised),
        Some(number) => Layout::find(number, bytes.len()),
        None => None,
    };
    let layout = layout.ok_or(DecodeError::Unsupported { version, size_bytes })?;
    let table = RegionBytes { bytes, layout, now, findings: Vec::new() };
    if let Some(offset) = layout.init_state_offset {
        let init_state = table.u32(offset);
        if init_state != INIT_STATE_READY {
            return Err(DecodeError::NotReady { init_state });
        }
    }
    Ok(table.region())
}

/// The bytes of a file whose size the layout has, and what was found so far.
struct RegionBytes<'a> {
    bytes: &'a [u8],
    layout: &'static Layout,
    now: Now,
    findings: Vec<RegionFinding>,
}

impl RegionBytes<'_> {
    fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        let field = self.bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>());
        *field.expect("the layout was found by the file's size, so its fields are inside")
    }

    fn u32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.array(offset))
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    fn region(mut self) -> Region {
        let layout = self.layout;
        let totals = self.counters(CounterPlace::Total, |kind| layout.total(kind));
        let chips = self.chips();
        let processes = self.processes();
        let board_serial = self.u64(Layout::BOARD_SERIAL);
        let mut region = Region {
            variant: layout.variant,
            version: layout.version,
            process_count: self.u32(Layout::PROCESS_COUNT),
            reference_count: self.u32(Layout::REFERENCE_COUNT),
            board_serial: (layout.version == 1 || board_serial != 0).then_some(board_serial),
            asic_id: self.u64(Layout::ASIC_ID),
            device_id: Some(self.u32(Layout::DEVICE_ID)).filter(|id| i32::try_from(*id).is_ok()),
            last_update: LastUpdate::new(self.u64(Layout::LAST_UPDATE), self.now),
            totals,
            chips,
            processes,
            findings: self.findings,
        };
        let more = find_in_table(&region);
        region.findings.extend(more);
        region
    }

    fn counters(
        &mut self,
        place: CounterPlace,
        offset: impl Fn(RegionKind) -> Option<usize>,
    ) -> Counters {
        let mut counters = Counters::default();
        for kind in RegionKind::ALL {
            let Some(raw) = offset(kind).map(|at| self.u64(at)) else { continue };
            if raw <= MAX_COUNTER_BYTES {
                counters.bytes[kind.index()] = Some(raw);
            } else {
                self.findings.push(RegionFinding::WrappedCounter { place, kind, raw });
            }
        }
        counters
    }

    /// Early writers mark an unused row with chip id 0, later ones with [`UNUSED_CHIP`]. Chip 0 is
    /// real, so a row of chip 0 is unused only if it is empty and no row has the later mark.
    fn chips(&mut self) -> Vec<ChipRow> {
        let layout = self.layout;
        let has_later_mark = (0..CHIP_ROWS).any(|row| self.u32(layout.chip(row)) == UNUSED_CHIP);
        let mut chips = Vec::new();
        for row in 0..CHIP_ROWS {
            let chip_id = self.u32(layout.chip(row));
            if chip_id == UNUSED_CHIP {
                continue;
            }
            let offset = |kind| layout.chip_counter(row, kind);
            let is_empty =
                RegionKind::ALL.into_iter().filter_map(offset).all(|at| self.u64(at) == 0);
            if chip_id == 0 && is_empty && !has_later_mark {
                continue;
            }
            let is_remote = self.u32(layout.chip_is_remote(row)) != 0;
            let bytes = self.counters(CounterPlace::Chip { row }, offset);
            chips.push(ChipRow { row, chip_id, is_remote, bytes });
        }
        chips
    }

    fn processes(&mut self) -> Vec<ProcessRow> {
        let layout = self.layout;
        let mut processes = Vec::new();
        for row in 0..PROCESS_ROWS {
            let pid = i32::from_le_bytes(self.array(layout.process(row)));
            match u32::try_from(pid) {
                Ok(0) => {}
                Ok(pid) => {
                    let name: [u8; PROCESS_NAME_BYTES] = self.array(layout.process_name(row));
                    let bytes = self.counters(CounterPlace::Process { row }, |kind| {
                        layout.process_counter(row, kind)
                    });
                    let stamp_ns = self.u64(layout.process_last_update(row));
                    let last_update = LastUpdate::new(stamp_ns, self.now);
                    let name = printable_name(&name);
                    processes.push(ProcessRow { row, pid, name, bytes, last_update });
                }
                Err(_) if pid == -1 && layout.version >= 4 => {
                    self.findings.push(RegionFinding::SlotReleasing { row });
                }
                Err(_) => self.findings.push(RegionFinding::InvalidPid { row, pid }),
            }
        }
        processes
    }
}

/// The bytes up to the first NUL as text that is safe to print: invalid UTF-8 replaced, characters
/// that could steer a terminal escaped.
fn printable_name(raw: &[u8]) -> String {
    let end = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
    let mut name = String::new();
    for character in String::from_utf8_lossy(&raw[..end]).chars() {
        if steers(character) {
            name.extend(character.escape_default());
        } else {
            name.push(character);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { monotonic_ns: 5_000_000_000, epoch_ns: 1_800_000_000_000_000_000 };

    #[test]
    fn the_clock_of_a_stamp_is_reported_by_its_magnitude() {
        let check = |stamp_ns, expected| assert_eq!(LastUpdate::new(stamp_ns, NOW), expected);
        let ago = |clock, stamp_ns, age_ns| LastUpdate::Ago { clock, stamp_ns, age_ns };
        check(0, LastUpdate::Never);
        check(4_000_000_000, ago(UpdateClock::Monotonic, 4_000_000_000, 1_000_000_000));
        check(5_500_000_000, ago(UpdateClock::Monotonic, 5_500_000_000, 0));
        check(7_000_000_000, LastUpdate::Unknown { stamp_ns: 7_000_000_000 });
        let stamp = NOW.epoch_ns - 3;
        check(stamp, ago(UpdateClock::Epoch, stamp, 3));
        check(u64::MAX, LastUpdate::Unknown { stamp_ns: u64::MAX });
    }

    #[test]
    fn names_are_cut_at_nul_and_escaped() {
        let check = |raw: &[u8], expected: &str| assert_eq!(printable_name(raw), expected);
        check(b"python3\0garbage", "python3");
        check(b"a\x1b[31m\nb\0", "a\\u{1b}[31m\\nb");
        check(b"\xff\xfe\0", "\u{fffd}\u{fffd}");
        check("x\u{202e}y".as_bytes(), "x\\u{202e}y");
        check(&[b'z'; PROCESS_NAME_BYTES], &"z".repeat(PROCESS_NAME_BYTES));
    }

    #[test]
    fn what_is_not_a_region_is_called_what_it_is() {
        let check = |bytes: &[u8], expected| assert_eq!(decode(bytes, NOW), Err(expected));
        let unsupported = |version, size_bytes| DecodeError::Unsupported { version, size_bytes };
        check(&[], DecodeError::NeverInitialised);
        check(&[1, 0], unsupported(None, 2));
        check(&[0; 100], unsupported(Some(0), 100));
        let words = |version| unsupported(version, 100).to_string();
        assert!(words(Some(7)).starts_with("no known layout has version 7 and 100 bytes; "));
        assert!(words(None).starts_with("no known layout has no version and 100 bytes; "));
        for known in &super::super::LAYOUTS {
            check(&vec![0; known.size_bytes], DecodeError::NeverInitialised);
        }
        let mut bytes = vec![0; 8576];
        bytes[0] = 9;
        check(&bytes, unsupported(Some(9), 8576));
        bytes[0] = 1;
        check(&bytes, unsupported(Some(1), 8576));
        bytes[0] = 4;
        check(&bytes, DecodeError::NotReady { init_state: 0 });
        bytes[8536] = 1;
        check(&bytes, DecodeError::NotReady { init_state: 1 });
        bytes[8536..8540].copy_from_slice(&INIT_STATE_READY.to_le_bytes());
        assert!(decode(&bytes, NOW).is_ok());
    }
}
