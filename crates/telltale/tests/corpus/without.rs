//! What the future is like for a version of today: nodes and recordings that lack a field.

use std::fs;
use std::io::Write;

use flate2::{Compression, GzBuilder};
use prost::Message;
use serde_json::{Value, json};
use telltale_schema::snapshot::Snapshot;
use telltale_wire::telemetry::{decode, message};

use crate::corpus::entry::Entry;
use crate::corpus::files::printed;
use crate::corpus::fits::assert_fits;
use crate::corpus::older_node::OlderNode;

/// What stands for the reading that was left out.
fn unreported() -> Value {
    json!({"absent": "unknown", "detail": "not reported by the version that wrote this"})
}

/// A recording of one snapshot, in the form of docs/recordings.md.
fn recording(snapshot: &Value) -> Vec<u8> {
    let field = [b"Tt\x10\x00".as_slice(), &[0; 16]].concat();
    let mut member = GzBuilder::new()
        .extra(field)
        .operating_system(255)
        .write(Vec::new(), Compression::default());
    writeln!(member, "{snapshot}").unwrap();
    let mut member = member.finish().unwrap();
    let length = u64::try_from(member.len()).unwrap();
    member[16..24].copy_from_slice(&length.to_le_bytes());
    member[24..32].copy_from_slice(&snapshot["taken_at"].as_u64().unwrap().to_le_bytes());
    member
}

#[test]
fn a_recording_without_a_reading_is_shown_with_the_rest() {
    for entry in Entry::all() {
        let mut older: Value = entry.json("n300.json");
        let telemetry = older["devices"][0]["telemetry"].as_object_mut().unwrap();
        telemetry.remove("power_watts").unwrap();
        let file = entry.path("older.tt");
        fs::write(&file, recording(&older)).unwrap();
        let replay = |arguments: &[&str]| {
            let mut command = entry.telltale();
            command.args(["smi", "--replay"]).arg(&file).args(arguments);
            command
        };
        let found = printed(&mut replay(&["--json"])).remove(0);
        assert_fits(&older, &found, &entry.name);
        assert_eq!(found["devices"][0]["telemetry"]["power_watts"], unreported());
        let table = replay(&[]).output().unwrap();
        let table = String::from_utf8(table.stdout).unwrap();
        assert!(table.contains("251732099R") && table.contains("n/a"), "{table}");
    }
}

#[test]
fn a_recording_without_what_processes_use_is_not_searched_for_that() {
    for entry in Entry::all() {
        let mut older: Value = entry.json("n300.json");
        older.as_object_mut().unwrap().remove("host");
        let file = entry.path("unused.tt");
        fs::write(&file, recording(&older)).unwrap();
        let by_cpu = ["--filter", "cpu > 1%"];
        for arguments in [&by_cpu[..], &["--filter", "cpu > 1%", "-w"], &["--sort", "rss"]] {
            let mut command = entry.telltale();
            let found = command.args(["smi", "--replay"]).arg(&file).args(arguments).output();
            let found = found.unwrap();
            assert_eq!((found.status.code(), found.stdout.as_slice()), (Some(64), &[][..]));
            let words = String::from_utf8(found.stderr).unwrap();
            assert!(words.contains("does not have what processes use"), "{words}");
        }
    }
}

#[test]
fn a_recording_of_a_newer_version_is_shown_without_faults_that_only_that_knows() {
    for entry in Entry::all() {
        let mut newer: Value = entry.json("n300.json");
        let fault = |kind: &str| json!({"kind": kind, "since": 5, "detail": "why"});
        newer["devices"][0]["faults"] = json!([fault("link_lost"), fault("vanished")]);
        let file = entry.path("newer.tt");
        fs::write(&file, recording(&newer)).unwrap();
        let mut replay = entry.telltale();
        let found = printed(replay.args(["smi", "--json", "--replay"]).arg(&file)).remove(0);
        let faults = found["devices"][0]["faults"].as_array().unwrap();
        assert_eq!(faults.len(), 1, "{}: {faults:?}", entry.name);
        for (key, value) in fault("vanished").as_object().unwrap() {
            assert_eq!(&faults[0][key], value, "{}: {faults:?}", entry.name);
        }
    }
}

#[test]
fn a_node_that_does_not_send_a_reading_is_shown_with_the_rest() {
    for entry in Entry::all() {
        let whole = entry.bytes("grpc/GetSnapshot.bin");
        let mut older = message::GetSnapshotResponse::decode(&whole[..]).unwrap();
        let device = &mut older.snapshot.as_mut().unwrap().devices[0];
        device.telemetry.as_mut().unwrap().power_watts = None;
        device.holders = None;
        let seen = |bytes: Vec<u8>| {
            let node = OlderNode::that_sends(bytes);
            let mut command = entry.telltale();
            command.args(["smi", "--json", "--hosts", &node.address]);
            printed(&mut command).remove(0)["hosts"][0]["snapshot"].clone()
        };
        let mut expected = seen(whole);
        expected["devices"][0]["telemetry"]["power_watts"] = unreported();
        expected["devices"][0]["holders"] = unreported();
        assert_fits(&expected, &seen(older.encode_to_vec()), &entry.name);
    }
}

#[test]
fn an_older_nodes_answers_are_those_of_its_machine() {
    for entry in Entry::all() {
        let known: Snapshot = entry.json("n300.json");
        let answer = decode::snapshot_answer(&entry.bytes("grpc/GetSnapshot.bin")).unwrap();
        let update = decode::watch_message(&entry.bytes("grpc/Watch.bin")).unwrap();
        let devices = decode::devices_answer(&entry.bytes("grpc/ListDevices.bin")).unwrap();
        for (of, found) in [
            ("GetSnapshot", &answer.snapshot.devices),
            ("Watch", &update.snapshot.as_ref().unwrap().devices),
            ("ListDevices", &devices.devices),
        ] {
            let of = format!("{}: {of}", entry.name);
            for (one, device) in known.devices.iter().zip(found) {
                assert_eq!((&one.id, &one.identity), (&device.id, &device.identity), "{of}");
                assert_eq!(one.facts.value(), device.facts.value(), "{of}");
                let (was, is) = (&one.telemetry, &device.telemetry);
                assert_eq!(was.firmware, is.firmware, "{of}");
                assert_eq!(was.power_limit_watts.value(), is.power_limit_watts.value(), "{of}");
                let is_warm = [was, is].map(|one| one.temperature_celsius.value().is_some());
                assert_eq!(is_warm[0], is_warm[1], "{of}");
            }
        }
        let names = |snapshot: &Snapshot| -> Vec<_> {
            let processes = snapshot.processes.iter();
            processes.map(|one| (one.identity, one.name.clone(), one.known_by)).collect()
        };
        assert_eq!(names(&answer.snapshot), names(&known), "{}", entry.name);
        let series = decode::history_answer(&entry.bytes("grpc/QueryHistory.bin")).unwrap().series;
        assert!(
            series.len() >= 4 && series.iter().any(|one| one.whole.is_some()),
            "{}",
            entry.name
        );
        let reports =
            decode::report_answer(&entry.bytes("grpc/ReportProcess.bin")).unwrap().reports;
        assert_eq!(reports.len(), 2, "{}", entry.name);
        let alerts = decode::alerts_answer(&entry.bytes("grpc/ListAlerts.bin")).unwrap();
        assert_eq!(alerts.alerts, [], "{}", entry.name);
    }
}
