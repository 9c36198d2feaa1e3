//! Round trips, exact bytes, and what hostile input gets.

#![expect(clippy::unwrap_used, reason = "the shared pieces of these tests fail by panicking")]

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::{Strategy, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};
use telltale_trace::limits::{MAX_DURATION_NS, MAX_TEXT_BYTES};
use telltale_trace::{
    Description, Reader, Record, Trace, TraceError, TraceEvent, TraceSummary, Violation,
    WriteError, Writer,
};

fn description() -> Description {
    Description {
        made_with: "by hand".into(),
        command: "a b".into(),
        page_bytes: 4096,
        threshold_bytes: 8192,
    }
}

/// Two threads, one reused id, one block left over.
fn small_trace() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), description()).unwrap();
    assert_eq!(writer.allocate(0, 0, 10_000).unwrap(), 0);
    assert_eq!(writer.allocate(5, 1, 300).unwrap(), 1);
    writer.free(300, 1, 0).unwrap();
    assert_eq!(writer.allocate(1, 0, 7).unwrap(), 0);
    writer.finish().unwrap().0
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

const SMALL: &[u8] = b"ttltrace\x01\x07by hand\x03a b\x80\x20\x80\x40\xb2\x02\x04\x03\xbc\x50\
    \x00\x00\x90\x4e\x02\x01\x05\xac\x02\x01\xac\x02\x00\x02\x00\x01\x07";

/// Length of [`SMALL`] up to its first record.
const SMALL_HEADER: usize = SMALL.len() - 17;

#[test]
fn the_bytes_are_the_documented_ones() {
    assert_eq!(gunzip(&small_trace()), SMALL);
}

#[test]
fn a_trace_reads_back_as_written() {
    let trace = Trace::read(small_trace().as_slice()).unwrap();
    assert_eq!(trace.header().description, description());
    assert_eq!(trace.header().records, 4);
    let step = |since_previous_ns, thread, event| Record { since_previous_ns, thread, event };
    assert_eq!(
        trace.records(),
        [
            step(0, 0, TraceEvent::Allocate { id: 0, size_bytes: 10_000 }),
            step(5, 1, TraceEvent::Allocate { id: 1, size_bytes: 300 }),
            step(300, 1, TraceEvent::Free { id: 0 }),
            step(1, 0, TraceEvent::Allocate { id: 0, size_bytes: 7 }),
        ]
    );
    let expected = TraceSummary {
        records: 4,
        allocations: 3,
        frees: 1,
        allocated_bytes: 10_307,
        peak_live_bytes: 10_300,
        peak_live_allocations: 2,
        live_bytes_at_end: 307,
        live_allocations_at_end: 2,
        duration_ns: 306,
        threads: 2,
    };
    assert_eq!(trace.summary(), expected);
    assert_eq!(Reader::new(small_trace().as_slice()).unwrap().summarize().unwrap(), expected);
}

#[test]
fn an_empty_trace_is_one() {
    let (bytes, header) = Writer::new(Vec::new(), description()).unwrap().finish().unwrap();
    assert_eq!(header.records, 0);
    assert!(Trace::read(bytes.as_slice()).unwrap().records().is_empty());
}

/// What reading `SMALL` with the byte at `offset` from the header's end replaced gives.
fn patched(offset: isize, value: u8) -> TraceError {
    let mut plain = SMALL.to_vec();
    plain[SMALL_HEADER.checked_add_signed(offset).unwrap()] = value;
    Trace::read(gzip(&plain).as_slice()).expect_err("the patch must be noticed")
}

#[test]
fn each_lie_gets_its_own_answer() {
    let names = [
        (format!("{:?}", patched(-(SMALL_HEADER as isize), b'T')), "Magic"),
        (format!("{:?}", patched(8 - (SMALL_HEADER as isize), 2)), "Version { found: 2 }"),
        (
            format!("{:?}", patched(10 - (SMALL_HEADER as isize), 0xff)),
            "HeaderText { field: \"made_with\" }",
        ),
        (format!("{:?}", patched(-4, 5)), "Input { byte: 48, record: 4"),
        (format!("{:?}", patched(-3, 2)), "Total { field: \"allocations\", header: 2, counted: 3"),
        (format!("{:?}", patched(-1, 0x4f)), "Total { field: \"peak_live_bytes\", header: 10172"),
        (format!("{:?}", patched(-1, 0x51)), "Total { field: \"peak_live_bytes\", header: 10428"),
        (
            format!("{:?}", patched(-5, 1)),
            "Total { field: \"duration_ns\", header: 178, counted: 305, record: 3 }",
        ),
        (format!("{:?}", patched(0, 4)), "Tag { record: 0, byte: 31, tag: 4 }"),
        (format!("{:?}", patched(1, 1)), "Record { record: 0, byte: 31, source: LateStart"),
        (
            format!("{:?}", patched(5, 2)),
            "Record { record: 1, byte: 35, source: ThreadSkipped { thread: 2, known: 1 } }",
        ),
        (
            format!("{:?}", patched(12, 2)),
            "Record { record: 2, byte: 40, source: NotLive { id: 2 } }",
        ),
        (
            format!("{:?}", patched(16, 0)),
            "Record { record: 3, byte: 44, source: Size { size_bytes: 0 } }",
        ),
    ];
    for (found, expected) in names {
        assert!(found.starts_with(expected), "{found} instead of {expected}");
    }
}

#[test]
fn what_follows_the_trace_is_refused() {
    let after_gzip = [small_trace(), vec![0]].concat();
    let after_records = gzip(&[SMALL, &[0]].concat());
    for bytes in [after_gzip, after_records] {
        let error = Trace::read(bytes.as_slice()).unwrap_err();
        assert!(matches!(error, TraceError::Trailing { byte: 48 }), "{error:?}");
    }
}

#[test]
fn every_cut_is_noticed() {
    let bytes = small_trace();
    for length in 0..bytes.len() {
        let error = Trace::read(&bytes[..length]).expect_err("a cut trace is not whole");
        assert!(matches!(error, TraceError::Input { .. }), "{length}: {error:?}");
    }
}

#[test]
fn a_bomb_of_allocations_ends_at_the_live_limit() {
    // 4 million allocations that nothing frees, as a header may claim: 20 KiB compressed.
    let mut plain = b"ttltrace\x01\x00\x00\x00\x00\x00\x80\x80\x80\x02\x80\x80\x80\x02\x80\x80\x80\x80\x80\x80\x20"
        .to_vec();
    plain.extend(std::iter::repeat_n([0, 0, 1], 1 << 21).flatten());
    let mut reader = Reader::new(std::io::Cursor::new(gzip(&plain))).unwrap();
    let error = reader.find_map(Result::err).expect("the limit must be met");
    assert!(
        matches!(
            error,
            TraceError::Record { record: 1_048_576, source: Violation::TooManyLive, .. }
        ),
        "{error:?}"
    );
    assert!(reader.next().is_none(), "nothing follows an error");
}

#[test]
fn the_writer_refuses_what_a_reader_would() {
    let long = Description { made_with: "x".repeat(4097), ..description() };
    assert!(matches!(
        Writer::new(Vec::new(), long).err(),
        Some(WriteError::Text { field: "made_with", bytes }) if bytes as u64 == MAX_TEXT_BYTES + 1
    ));
    let mut writer = Writer::new(Vec::new(), description()).unwrap();
    let refused = |result: Result<u32, WriteError>| match result {
        Err(WriteError::Record { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(writer.allocate(0, 0, 0)), Violation::Size { size_bytes: 0 });
    assert_eq!(refused(writer.allocate(0, 1, 9)), Violation::ThreadSkipped { thread: 1, known: 0 });
    assert_eq!(refused(writer.allocate(9, 0, 9)), Violation::LateStart { since_previous_ns: 9 });
    writer.allocate(0, 0, 9).unwrap();
    assert_eq!(refused(writer.allocate(MAX_DURATION_NS + 1, 0, 9)), Violation::TooLong);
    assert_eq!(refused(writer.free(0, 0, 1).map(|()| 0)), Violation::NotLive { id: 1 });
    let (bytes, _) = writer.finish().unwrap();
    assert_eq!(Trace::read(bytes.as_slice()).unwrap().summary().records, 1);
}

/// Steps as (gap, thread choice, size, which live id to free if any).
fn steps() -> impl Strategy<Value = Vec<(u64, u8, u64, Option<prop::sample::Index>)>> {
    let step = (
        0u64..1_000_000_000,
        any::<u8>(),
        1u64..1 << 40,
        prop::option::of(any::<prop::sample::Index>()),
    );
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn any_program_survives_the_round_trip(steps in steps()) {
        let mut writer = Writer::new(Vec::new(), description()).unwrap();
        let mut expected = Vec::new();
        let mut live = BTreeMap::new();
        let mut threads = 0u16;
        for (gap, thread, size_bytes, free) in steps {
            let since_previous_ns = if expected.is_empty() { 0 } else { gap };
            let thread = u16::from(thread) % (threads + 1);
            threads = threads.max(thread + 1);
            let event = match free.filter(|_| !live.is_empty()) {
                Some(index) => {
                    let id = *live.keys().nth(index.index(live.len())).unwrap();
                    writer.free(since_previous_ns, thread, id).unwrap();
                    live.remove(&id);
                    TraceEvent::Free { id }
                }
                None => {
                    let id = writer.allocate(since_previous_ns, thread, size_bytes).unwrap();
                    let lowest = (0..).find(|id| !live.contains_key(id)).unwrap();
                    prop_assert_eq!(id, lowest);
                    live.insert(id, size_bytes);
                    TraceEvent::Allocate { id, size_bytes }
                }
            };
            expected.push(Record { since_previous_ns, thread, event });
        }
        let (bytes, header) = writer.finish().unwrap();
        let trace = Trace::read(bytes.as_slice()).unwrap();
        prop_assert_eq!(trace.records(), expected);
        prop_assert_eq!(trace.header(), &header);
        prop_assert_eq!(trace.summary().live_bytes_at_end, live.values().sum::<u64>());
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        prop_assert!(Trace::read(bytes.as_slice()).is_err());
        prop_assert!(Trace::read(gzip(&bytes).as_slice()).is_err());
    }

    #[test]
    fn random_records_never_panic(bytes in prop::collection::vec(0u8..6, 0..500)) {
        // A plausible header, then noise dense in meaning: small tags, ids and threads.
        let mut plain = SMALL[..SMALL_HEADER].to_vec();
        plain[SMALL_HEADER - 4] = 100;
        plain.extend(&bytes);
        prop_assert!(Trace::read(gzip(&plain).as_slice()).is_err());
    }

    #[test]
    fn a_flipped_bit_is_noticed(byte in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = small_trace();
        let index = byte.index(bytes.len());
        bytes[index] ^= 1 << bit;
        // A few bits of gzip mean nothing (time, system, padding); the rest is checksummed.
        if let Ok(trace) = Trace::read(bytes.as_slice()) {
            prop_assert_eq!(trace, Trace::read(small_trace().as_slice()).unwrap());
        }
    }
}
