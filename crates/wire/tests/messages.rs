//! Queries and answers survive the wire; bytes from strangers cost one error.

use proptest::prelude::{any, prop, proptest};
use telltale_schema::chip::{AsicId, BoardId, BoardType, ChipFacts, ChipIdentity, GalaxyPosition};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::snapshot::{KindUsage, MetricSample, MetricValue, RecordingFaults};
use telltale_wire::limits::{MAX_DEVICES, MAX_FRAME_BYTES, MAX_METRICS, MAX_NAME_BYTES};
use telltale_wire::{
    DeviceReport, DeviceSelector, EncodeError, KernelCache, Programs, Query, QueryError, QueryKind,
    Quota, Refusal, RefusalReason, Reply, ReplyError, Report, RingBuffer, Throttling, Traffic,
};

fn device() -> DeviceReport {
    DeviceReport {
        chip: ChipIdentity {
            driver_ordinal: Some(3),
            pci: Some("0000:c1:00.0".parse().expect("an address")),
            asic_id: Some(AsicId(0x2_5173_2099)),
            board_id: Some(BoardId(0x0100_0351_1190_302b)),
            board_type: BoardType::GalaxyWormhole,
            location: 0x11,
            galaxy: GalaxyPosition::from_bus(BoardType::GalaxyWormhole, 0xC1),
            remote: false,
        },
        logical_id: Some(0),
        facts: ChipFacts::of_board(BoardType::GalaxyWormhole)
            .map(|facts| ChipFacts { source: telltale_schema::chip::FactSource::Ledger, ..facts }),
        kinds: vec![KindUsage {
            kind: MemoryKind::L1Small,
            usage: MemoryUsage {
                live_bytes: 1,
                live_buffers: 2,
                peak_bytes: 3,
                allocations: 4,
                allocated_bytes: u64::MAX,
                failed_allocations: 5,
            },
        }],
        unknown_kinds: 0,
        ring_buffer: Some(RingBuffer { total_bytes: 69_000, used_bytes: 100, programs: 2 }),
        operations: Some(77),
        traffic: Some(Traffic { host_to_device_bytes: 1, device_to_host_bytes: 2 }),
        quotas: vec![Quota { space: MemorySpace::Dram, limit_bytes: 1 << 30 }],
        throttling: Some(Throttling { active: true, events: 3 }),
        mirrored: true,
        mirrored_row: false,
    }
}

fn metric(name: &str, value: MetricValue) -> MetricSample {
    MetricSample {
        name: name.to_owned(),
        help: "What it means.".to_owned(),
        unit: "bytes".to_owned(),
        labels: vec![("queue".to_owned(), "0".to_owned())],
        value,
    }
}

fn report() -> Report {
    Report {
        identity: ProcessIdentity {
            boot_id: [7; 16],
            pid_namespace: 4_026_531_836,
            pid: 12,
            start_time_ticks: 99,
        },
        name: "python3".to_owned(),
        runtime: "tt-metal 0.60".to_owned(),
        started_at: Some(Timestamp(1)),
        uptime_ns: Some(0),
        devices: vec![device(), DeviceReport::default()],
        faults: RecordingFaults { double_frees: 1, unknown_frees: 2, ..Default::default() },
        programs: Some(Programs {
            cached: 9,
            loaded: vec!["matmul".to_owned(), "softmax".to_owned()],
            loaded_omitted: 1,
            hits: Some(0),
            misses: None,
        }),
        kernel_cache: Some(KernelCache { bytes: 5, evictions: Some(1) }),
        metrics: vec![
            metric("steps", MetricValue::Counter(3)),
            metric("loss", MetricValue::Gauge(-0.5)),
            metric(
                "latency",
                MetricValue::Histogram { bounds: vec![0.1, 1.0], counts: vec![1, 0, 2], sum: 4.5 },
            ),
        ],
        metrics_omitted: 0,
        ledger_follows: true,
    }
}

fn reply(report: Report) -> Reply {
    Reply::Report(Box::new(report))
}

#[test]
fn queries_survive_the_wire() {
    for kind in QueryKind::ALL {
        for device in [DeviceSelector::All, DeviceSelector::One(0), DeviceSelector::One(7)] {
            let is_memory = kind == QueryKind::Memory;
            for knows_memory in [false, true] {
                let (want_ledger, is_last) = (is_memory, !is_memory);
                let query = Query { kind, device, want_ledger, is_last, knows_memory };
                assert_eq!(Query::decode(&query.encode()), Ok(query));
            }
        }
    }
}

#[test]
fn a_query_that_makes_no_sense_is_named() {
    // Field 1 is the version, 2 the type, 3 the device in zigzag form.
    let cases: [(&[u8], QueryError); 4] = [
        (&[], QueryError::Version(0)),
        (&[0x08, 2], QueryError::Version(2)),
        (&[0x08, 1, 0x10, 9], QueryError::UnknownKind(9)),
        (&[0x08, 1, 0x10, 1, 0x18, 3], QueryError::ImpossibleDevice(-2)),
    ];
    for (bytes, expected) in cases {
        assert_eq!(Query::decode(bytes), Err(expected), "{bytes:?}");
    }
    assert_eq!(Query::decode(&[0; 5000]), Err(QueryError::TooLong(5000)));
    assert!(matches!(Query::decode(&[0x08]), Err(QueryError::Malformed(_))));
}

#[test]
fn answers_survive_the_wire() {
    for sent in [
        reply(report()),
        Reply::Refused(Refusal {
            reason: RefusalReason::NoSuchDevice,
            text: "device 9 is not open".to_owned(),
        }),
    ] {
        assert_eq!(Reply::decode(&sent.encode().unwrap()), Ok(sent));
    }
}

#[test]
fn fields_of_a_newer_version_are_skipped() {
    let mut bytes = reply(report()).encode().unwrap();
    // Field 100 as text and field 101 as a number.
    bytes.extend_from_slice(&[0xa2, 0x06, 2, b'h', b'i', 0xa8, 0x06, 5]);
    assert_eq!(Reply::decode(&bytes), Ok(reply(report())));
}

#[test]
fn metrics_beyond_a_message_are_counted() {
    let mut large = report();
    large.metrics = (0..MAX_METRICS + 10)
        .map(|index| MetricSample {
            help: "x".repeat(300),
            ..metric(&format!("metric_{index}"), MetricValue::Counter(1))
        })
        .collect();
    let bytes = reply(large).encode().unwrap();
    assert!(bytes.len() <= MAX_FRAME_BYTES && bytes.len() > MAX_FRAME_BYTES - 1000);
    let Ok(Reply::Report(received)) = Reply::decode(&bytes) else { panic!("not a report") };
    let kept = u64::try_from(received.metrics.len()).unwrap();
    let made = u64::try_from(MAX_METRICS + 10).unwrap();
    assert_eq!(kept + received.metrics_omitted, made);
}

#[test]
fn what_breaks_a_limit_is_not_sent() {
    let mut crowded = report();
    crowded.devices = vec![DeviceReport::default(); MAX_DEVICES + 1];
    let mut wordy = report();
    wordy.name = "n".repeat(MAX_NAME_BYTES + 1);
    for broken in [crowded, wordy] {
        assert!(matches!(reply(broken).encode(), Err(EncodeError::Limit(_))));
    }
}

#[test]
fn a_flood_of_empty_submessages_is_refused_before_it_takes_memory() {
    // Field 8 (devices), field 12 (metrics), and field 4 (labels) inside one metric.
    let version = [0x08, 1];
    let flood = |tag: u8, count: usize| [tag, 0].repeat(count);
    let labels = flood(0x22, 60);
    let mut metric = vec![0x62, u8::try_from(labels.len()).unwrap()];
    metric.extend_from_slice(&labels);
    for body in [flood(0x42, MAX_DEVICES + 1), flood(0x62, MAX_METRICS + 1), metric] {
        let bytes = [&version[..], &body].concat();
        assert!(matches!(Reply::decode(&bytes), Err(ReplyError::Limit(_))));
    }
}

#[test]
fn every_truncation_is_an_error_or_a_shorter_answer() {
    let bytes = reply(report()).encode().unwrap();
    for length in 0..bytes.len() {
        assert_ne!(Reply::decode(&bytes[..length]).ok(), Some(reply(report())));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Query::decode(&bytes);
        let _ = Reply::decode(&bytes);
    }

    #[test]
    fn a_changed_answer_decodes_to_something_that_can_be_sent_or_fails(
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = reply(report()).encode().unwrap();
        let index = place.index(bytes.len());
        bytes[index] = value;
        if let Ok(decoded) = Reply::decode(&bytes) {
            assert!(decoded.encode().is_ok());
        }
    }
}
