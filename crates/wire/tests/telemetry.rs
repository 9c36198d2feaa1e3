//! The node service's answers: what goes in comes out, and what must not be trusted is refused.

mod arbitrary;
mod older;

use arbitrary::Drawn;
use proptest::prelude::{ProptestConfig, any, proptest};
use prost::Message;
use prost::bytes::Bytes;
use telltale_schema::metric::DEFINITIONS;
use telltale_schema::snapshot::{
    HeldDevice, HeldKind, HeldSpace, MAX_PROCESSES, MetricSample, Process, SCHEMA_VERSION, Snapshot,
};
use telltale_wire::telemetry::decode::{
    AnswerError, alerts_answer, devices_answer, snapshot_answer, watch_message,
};
use telltale_wire::telemetry::{MAX_ANSWER_BYTES, Payload, encode, message};

fn joined(payload: &Payload) -> Vec<u8> {
    [&payload.shared[..], &payload.own[..]].concat()
}

fn answer(snapshot: &Snapshot) -> Vec<u8> {
    joined(&encode::snapshot_answer(encode::snapshot(snapshot), Some(7)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_snapshot_comes_back_as_it_went(seed in any::<u64>()) {
        let snapshot = Drawn(seed).snapshot();
        let bytes = answer(&snapshot);
        let found = snapshot_answer(&bytes).unwrap();
        assert_eq!((found.sequence, found.resolution_ms), (Some(7), None));
        assert_eq!(found.snapshot, snapshot);
        // Every field that was written is one of the .proto file: none is lost in its messages.
        let message = message::GetSnapshotResponse::decode(&bytes[..]).unwrap();
        assert_eq!(message.encoded_len(), bytes.len());
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error(bytes in any::<Vec<u8>>()) {
        let _ = snapshot_answer(&bytes);
        let _ = watch_message(&bytes);
        let _ = alerts_answer(&bytes);
        let _ = devices_answer(&bytes);
    }

    #[test]
    fn damaged_answers_end_in_an_error_or_another_answer(
        seed in any::<u64>(),
        place in any::<usize>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = answer(&Drawn(seed).snapshot());
        let place = place % bytes.len();
        let _ = snapshot_answer(&bytes[..place]);
        bytes[place] = byte;
        let _ = snapshot_answer(&bytes);
    }

    #[test]
    fn lists_have_the_same_devices_and_processes(seed in any::<u64>()) {
        let snapshot = Drawn(seed).snapshot();
        let whole = message::GetSnapshotResponse::decode(&answer(&snapshot)[..]).unwrap();
        let whole = whole.snapshot.unwrap();
        let bytes = joined(&encode::devices(&snapshot, 9));
        let devices = message::ListDevicesResponse::decode(&bytes[..]).unwrap();
        assert_eq!(devices.devices, whole.devices);
        assert_eq!((devices.taken_at_unix_ns, devices.sequence), (snapshot.taken_at.0, 9));
        let bytes = joined(&encode::processes(&snapshot, 9, |_| true));
        let processes = message::ListProcessesResponse::decode(&bytes[..]).unwrap();
        assert_eq!(processes.processes, whole.processes);
        assert_eq!(processes.metric_descriptions, whole.metric_descriptions);
        let ids = snapshot.devices.iter().map(|device| device.id.clone());
        assert_eq!(processes.device_ids, ids.collect::<Vec<String>>());
        let bytes = joined(&encode::processes(&snapshot, 9, |_| false));
        assert_eq!(message::ListProcessesResponse::decode(&bytes[..]).unwrap().processes, []);
    }
}

#[test]
fn a_message_of_a_watch_has_its_numbers_with_or_without_a_snapshot() {
    let snapshot = Drawn(5).snapshot();
    let shared = encode::snapshot(&snapshot);
    let update = watch_message(&joined(&encode::watch_message(shared, 12, 3))).unwrap();
    assert_eq!((update.snapshot, update.sequence, update.skipped), (Some(snapshot), 12, 3));
    let update = watch_message(&joined(&encode::watch_message(Bytes::new(), 12, 0))).unwrap();
    assert_eq!((update.snapshot, update.sequence, update.skipped), (None, 12, 0));
}

#[test]
fn a_past_moment_has_no_number_and_reports_its_resolution() {
    let past = Drawn(8).snapshot();
    let answer = snapshot_answer(&joined(&encode::past_answer(&past, 0))).unwrap();
    assert_eq!((answer.sequence, answer.resolution_ms), (None, Some(0)));
    assert_eq!(answer.snapshot, past);
}

#[test]
fn metrics_of_one_description_carry_it_once() {
    let has_metrics =
        |snapshot: &Snapshot| snapshot.processes.iter().any(|process| !process.metrics.is_empty());
    let snapshot = (0..).map(|seed| Drawn(seed).snapshot()).find(has_metrics).unwrap();
    let mut alike = snapshot.clone();
    let process = snapshot.processes.iter().find(|one| !one.metrics.is_empty()).unwrap();
    alike.processes = vec![process.clone(); 20];
    let bytes = answer(&alike);
    let message = message::GetSnapshotResponse::decode(&bytes[..]).unwrap().snapshot.unwrap();
    assert!(message.metric_descriptions.len() <= process.metrics.len() / 2);
    assert_eq!(snapshot_answer(&bytes).unwrap().snapshot, alike);
}

#[test]
fn every_metric_is_listed_with_its_unit_and_meaning() {
    let bytes = joined(&encode::metrics(DEFINITIONS));
    let list = message::ListMetricsResponse::decode(&bytes[..]).unwrap().metrics;
    assert_eq!(list.len(), DEFINITIONS.len());
    for (one, definition) in list.iter().zip(DEFINITIONS) {
        assert_eq!((one.name.as_str(), one.help.as_str()), (definition.name, definition.help));
        assert!(one.kind != 0 && one.scope != 0, "{one:?}");
    }
}

/// An answer around a snapshot that `change` makes wrong.
fn changed(change: impl FnOnce(&mut message::Snapshot)) -> Vec<u8> {
    let fits =
        |one: &Snapshot| !one.processes.is_empty() && one.devices[0].identity.chip().is_some();
    let snapshot = (0..).map(|seed| Drawn(seed).snapshot()).find(fits).expect("one of many");
    let bytes = answer(&snapshot);
    let mut answer = message::GetSnapshotResponse::decode(&bytes[..]).expect("an answer");
    change(answer.snapshot.as_mut().expect("it has one"));
    answer.encode_to_vec()
}

#[test]
fn what_cannot_be_is_refused() {
    type Change = fn(&mut message::Snapshot);
    let cases: [(Change, &str); 9] = [
        (|one| one.devices[0].identity = None, "identity of a device is missing"),
        (|one| one.devices[0].telemetry = None, "telemetry is missing"),
        (
            |one| one.devices[0].identity.as_mut().unwrap().pci_address = Some("x".to_owned()),
            "PCI address has a value that is not known here",
        ),
        (
            |one| one.devices[0].identity.as_mut().unwrap().location = 256,
            "location has a value that is not known here",
        ),
        (
            |one| {
                let identity = message::OtherIdentity { class: 99, ..Default::default() };
                one.devices[0].other_identity = Some(identity);
            },
            "class of a device has a value that is not known here",
        ),
        (
            |one| one.devices[0].kinds.push(message::KindMemory::default()),
            "memory kind has a value that is not known here",
        ),
        (
            |one| {
                one.processes[0].devices.push(message::HeldDevice {
                    device: 1_000_000,
                    ..message::HeldDevice::default()
                })
            },
            "device of a process has a value that is not known here",
        ),
        (
            |one| {
                one.processes[0].metrics.push(message::MetricSample {
                    description: 1_000_000,
                    ..message::MetricSample::default()
                })
            },
            "description of a metric has a value that is not known here",
        ),
        (
            |one| one.processes[0].state = 99,
            "state of a process has a value that is not known here",
        ),
    ];
    for (change, expected) in cases {
        let error = snapshot_answer(&changed(change)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_reason_of_a_newer_version_is_still_a_reason() {
    let bytes = changed(|one| {
        let absence = message::Absence { reason: 999, detail: "new".to_owned() };
        one.devices[0].facts = Some(message::FactsReading {
            reading: Some(message::facts_reading::Reading::Absence(absence)),
            at_unix_ns: 0,
        });
    });
    let answer = snapshot_answer(&bytes).unwrap();
    let absence = answer.snapshot.devices[0].facts.absence();
    assert_eq!(absence, Some((telltale_schema::reading::Absence::NotUnderstood, "new")));
}

#[test]
fn few_bytes_cannot_ask_for_much_memory() {
    let too_many = |change: fn(&mut message::Snapshot)| snapshot_answer(&changed(change));
    let refused = [
        too_many(|one| one.processes = vec![message::Process::default(); MAX_PROCESSES + 1]),
        too_many(|one| one.devices = vec![message::Device::default(); 1025]),
        too_many(|one| {
            one.processes[0].devices = vec![message::HeldDevice::default(); 1024];
            one.processes = vec![one.processes[0].clone(); 520];
        }),
        too_many(|one| {
            let help = "x".repeat(513);
            let long = message::MetricDescription { help, ..message::MetricDescription::default() };
            one.metric_descriptions.push(long);
        }),
        snapshot_answer(&vec![0; MAX_ANSWER_BYTES + 1]),
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert!(matches!(error, AnswerError::Limit(_) | AnswerError::TooLong(_)), "{error}");
    }
}

#[test]
fn a_hundred_thousand_processes_are_passed_on_and_the_most_hostile_answer_is_bounded() {
    let bytes = changed(|one| {
        one.schema_version = SCHEMA_VERSION;
        let mut process = one.processes[0].clone();
        (process.container, process.metrics) = (None, Vec::new());
        // What is drawn may be a long text.
        (process.command, process.user) = (None, None);
        (process.uid, process.uptime_seconds, process.usage) = (None, None, None);
        process.name.truncate(0);
        process.devices.truncate(1);
        for held in &mut process.devices {
            (held.kinds, held.spaces, held.refused) = (Vec::new(), Vec::new(), None);
        }
        one.processes = vec![process; 100_000];
    });
    let answer = snapshot_answer(&bytes).unwrap();
    assert_eq!(answer.snapshot.processes.len(), 100_000);
    answer.snapshot.check().unwrap();
    // Parts of the greatest size, as they are in the message and as they are after it, beside texts.
    let process = size_of::<message::Process>() + size_of::<Process>();
    let part = [
        size_of::<message::HeldDevice>() + size_of::<HeldDevice>(),
        size_of::<message::MetricSample>() + size_of::<MetricSample>(),
        size_of::<message::HeldKind>() + size_of::<HeldKind>(),
        size_of::<message::HeldSpace>() + size_of::<HeldSpace>(),
    ];
    let parts = ((1 << 19) - MAX_PROCESSES) * part.into_iter().max().unwrap();
    assert!(MAX_PROCESSES * process + parts <= 256 << 20, "{process} {part:?}");
}

#[test]
fn more_alerts_than_a_service_has_are_refused_before_they_take_memory() {
    let empty = |count: usize| [0x0a, 0].repeat(count);
    assert_eq!(alerts_answer(&empty(4096)).unwrap().alerts.len(), 4096);
    assert!(matches!(alerts_answer(&empty(4097)), Err(AnswerError::Limit(_))));
}
