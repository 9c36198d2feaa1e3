//! What queries find.

use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::LeftOut;

use crate::query::machine::snapshot;

/// The pids with their devices and the devices that a query leaves.
fn found(text: &str) -> (Vec<(u32, Vec<String>)>, Vec<String>) {
    let query = Query::parse(text).unwrap_or_else(|error| panic!("{}", error.pointed(text)));
    let selected = query.select(&snapshot());
    let name = |device: usize| selected.devices[device].id.clone();
    let processes = selected.processes.iter().map(|process| {
        let on = process.devices.iter().map(|held| name(held.device)).collect();
        (process.pid.expect("each process of this machine has a pid"), on)
    });
    (processes.collect(), selected.devices.iter().map(|device| device.id.clone()).collect())
}

#[test]
fn each_row_is_asked_and_what_is_not_known_never_matches() {
    type Rows<'a> = &'a [(u32, &'a [&'a str])];
    let everyone: Rows<'_> =
        &[(100, &["cool", "hot"]), (200, &["hot"]), (300, &["hot"]), (400, &[])];
    let cases: [(&str, Rows<'_>, &[&str]); 33] = [
        ("", everyone, &["cool", "hot", "mute"]),
        ("pid == 200", &[(200, &["hot"])], &["hot"]),
        ("dram > 2GiB", &[(100, &["cool"]), (200, &["hot"])], &["cool", "hot"]),
        ("dram > 2 GiB", &[(100, &["cool"]), (200, &["hot"])], &["cool", "hot"]),
        ("dram >= 3g and user == ada", &[(100, &["cool"])], &["cool"]),
        (
            "dram > 2GiB and user == root or name ~ /train/",
            &[(100, &["cool", "hot"]), (200, &["hot"])],
            &["cool", "hot"],
        ),
        ("user == ADA", &[(100, &["cool", "hot"]), (400, &[])], &["cool", "hot"]),
        ("user != ada", &[(200, &["hot"]), (300, &["hot"])], &["hot"]),
        ("not user == ada", &[(200, &["hot"]), (300, &["hot"])], &["hot"]),
        // The stranger's command cannot be read: neither the question nor its opposite holds.
        (
            "command ~ /--x/",
            &[(100, &["cool", "hot"]), (200, &["hot"]), (400, &[])],
            &["cool", "hot"],
        ),
        ("not command ~ /--x/", &[], &[]),
        ("command is absent", &[(300, &["hot"])], &["cool", "hot", "mute"]),
        ("pid is known and command is not known or pid == 1", &[(300, &["hot"])], &["hot"]),
        ("dram is absent and state == alive", &[(300, &["hot"])], &["hot"]),
        ("peak > 1B", &[(100, &["cool", "hot"])], &["cool", "hot"]),
        ("buffers == 6", &[(100, &["cool", "hot"])], &["cool", "hot"]),
        ("l1 == 4KiB && !(device == hot)", &[(100, &["cool"])], &["cool"]),
        ("temperature > 80C", &[(100, &["hot"]), (200, &["hot"]), (300, &["hot"])], &["hot"]),
        ("temperature <= 80", &[(100, &["cool"])], &["cool"]),
        ("temperature is absent", &[(400, &[])], &["mute"]),
        ("device.dram_share > 90%", &[(100, &["hot"]), (200, &["hot"]), (300, &["hot"])], &["hot"]),
        ("busy > 80%", &[(100, &["hot"]), (200, &["hot"]), (300, &["hot"])], &["hot"]),
        (
            "busy is absent and memory_busy is absent",
            &[(100, &["cool"]), (400, &[])],
            &["cool", "mute"],
        ),
        (
            "vendor == Tenstorrent and model is absent and pid == 100",
            &[(100, &["cool", "hot"])],
            &["cool", "hot"],
        ),
        ("device.dram_free >= 9GiB", &[(100, &["cool"])], &["cool"]),
        ("clock == 1GHz and pid in (100, 400)", &[(100, &["cool", "hot"])], &["cool", "hot"]),
        ("uptime > 90m", &[(100, &["cool", "hot"]), (300, &["hot"]), (400, &[])], &["cool", "hot"]),
        ("source in (region, legacy)", &[(200, &["hot"])], &["hot"]),
        ("namespace == ml and pod ~ '^llm'", &[(200, &["hot"])], &["hot"]),
        ("state == dead", &[(400, &[])], &[]),
        ("'TRAIN'", &[(100, &["cool", "hot"])], &["cool", "hot"]),
        ("/^sleepy$/ or \"mute\"", &[(400, &[])], &["mute"]),
        ("name ~ /(?-i)sleepy/", &[], &[]),
    ];
    for (text, processes, devices) in cases {
        let expected: Vec<(u32, Vec<String>)> = processes
            .iter()
            .map(|(pid, on)| (*pid, on.iter().map(ToString::to_string).collect()))
            .collect();
        let (processes, found_devices) = found(text);
        assert_eq!(processes, expected, "{text}");
        assert_eq!(found_devices, devices, "{text}");
    }
}

#[test]
fn what_a_query_leaves_out_stays_in_the_values_of_the_rest() {
    let all = snapshot();
    let one = Query::parse("pid == 200").unwrap().select(&all);
    assert_eq!(one.devices[0], all.devices[1]);
    assert_eq!((one.closed_processes, one.withheld_processes), (1, 2));
    assert_eq!(one.left_out, Some(LeftOut { devices: 2, processes: 3 }));
    let again = Query::parse("device == cool").unwrap().select(&one);
    assert_eq!(again.left_out, Some(LeftOut { devices: 3, processes: 4 }));
    let same = Query::parse("pid == 200").unwrap();
    assert_eq!(same.select(&one), one, "asked twice, a query leaves out no more");
    assert_eq!(Query::parse("  ").unwrap().select(&all), all);
}

#[test]
fn a_device_of_another_vendor_is_found_by_vendor_and_model() {
    let mut machine = snapshot();
    let identity = OtherIdentity {
        model: Some(String::from("NVIDIA H200")),
        ..OtherIdentity::new("hot", "nvidia", DeviceClass::Gpu)
    };
    machine.devices[1].identity = identity.into();
    for text in ["vendor == nvidia", "model ~ /h200/", "model is known", "vendor != tenstorrent"] {
        let selected = Query::parse(text).unwrap().select(&machine);
        let ids: Vec<&str> = selected.devices.iter().map(|device| device.id.as_str()).collect();
        assert_eq!(ids, ["hot"], "{text}");
    }
}

#[test]
fn choosing_ends_when_it_is_reported_to() {
    let all = snapshot();
    let query = Query::parse("pid > 0").unwrap();
    let rows = all.devices.len() + all.processes.len();
    for most in 0..=rows {
        let mut left = most;
        let found = query.select_while(&all, |_| {
            left = left.saturating_sub(1);
            left > 0
        });
        assert_eq!(found.is_some(), most > rows, "{most}");
    }
    assert_eq!(query.select_while(&all, |_| true), Some(query.select(&all)));
}

#[test]
fn a_row_with_many_patterns_is_left_between_them() {
    let all = snapshot();
    let query = Query::parse("not (name ~ /x1y/ or command ~ /x2y/ or user ~ /x3y/)").unwrap();
    let asked_until = |most: usize| {
        let mut asked = 0;
        let found = query.select_while(&all, |_| {
            asked += 1;
            asked < most
        });
        (asked, found.is_some())
    };
    let (all_of_them, found) = asked_until(usize::MAX);
    let rows = all.devices.len() + all.processes.len();
    assert!(found && all_of_them >= rows * 4, "{all_of_them} for {rows} rows of three patterns");
    for most in 1..=all_of_them {
        assert_eq!(asked_until(most), (most, false), "nothing is searched once it is stopped");
    }
}

#[test]
fn a_search_is_reported_before_it_begins_and_never_begun_beyond_a_budget() {
    let mut hostile = snapshot();
    let text = |command: &str| Reading::new(String::from(command), Timestamp(1));
    hostile.processes[0].command = text(&"a".repeat(4096));
    hostile.processes[1].command = text("train");
    let spent_on = |text: &str, budget: u64| {
        let (mut spent, mut longest) = (0, 0);
        let query = Query::parse(text).unwrap();
        let found = query.select_while(&hostile, |steps| {
            let goes_on = spent + steps <= budget;
            if goes_on {
                (spent, longest) = (spent + steps, longest.max(steps));
            }
            goes_on
        });
        (spent, longest, found)
    };
    // Each letter of the text may be that of each of many parts: the text's length times theirs.
    let evil = "command ~ /(a?){40}b/";
    let (spent, longest, found) = spent_on(evil, u64::MAX);
    assert_eq!((longest, found), (8192 * 4097, Some(Query::parse(evil).unwrap().select(&hostile))));
    for budget in [0, longest / 2, longest - 1] {
        let (spent, _, found) = spent_on(evil, budget);
        assert!(spent <= budget && found.is_none(), "{spent} of {budget}");
    }
    assert!(spent_on(evil, spent).2.is_some() && spent_on(evil, spent - 1).2.is_none());
    // What people search for takes a small part of that.
    let (all_of_it, _, found) = spent_on("command ~ /train/", longest / 4);
    assert!(found.is_some(), "{all_of_it} of {longest}");
}

#[test]
fn texts_are_the_same_whatever_their_case() {
    let mut machine = snapshot();
    for (name, text, expected) in [
        ("ΟΔΟΣ", "οδος", true),
        ("οδοσ", "ΟΔΟΣ", true),
        ("İstanbul", "i̇stanbul", true),
        ("train", "TRAINS", false),
        ("train", "", false),
        ("straße", "STRASSE", false),
    ] {
        machine.processes.truncate(1);
        machine.processes[0].name = String::from(name);
        let found = Query::parse(&format!("name == '{text}'")).unwrap().select(&machine);
        assert_eq!(!found.processes.is_empty(), expected, "{name} {text}");
    }
}
