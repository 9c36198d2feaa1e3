//! `telltale smi --hosts`: several machines in one table, whichever answer.

pub(crate) mod host_services;
mod many;
mod shells;
mod tls;

use std::fs;

use serde_json::Value;
use telltale_harness::{Scratch, wait_until};
use telltale_schema::fleet::{Fleet, HostState};

use crate::cli::command::{Running, Said, TIMEOUT, said, telltale};
use crate::cli::json;
use crate::cli::terminal::Terminal;
use host_services::{HostServices, refused, silent};

fn hosts(list: &str, arguments: &[&str]) -> Said {
    said(telltale().args(["smi", "--hosts", list]).args(arguments))
}

fn fleet(said: &Said) -> Fleet {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn the_tables_of_all_are_one_and_who_is_silent_has_a_line() {
    let host_services = HostServices::of(2);
    let [one, two] = [&host_services.addresses[0], &host_services.addresses[1]];
    let (_listener, still) = silent();
    let gone = refused();
    let list = format!("{one},{two},{still},{gone}");
    let table = hosts(&list, &["--timeout", "0.5"]);
    assert_eq!((table.status, table.err.as_str()), (Some(1), ""), "{table:?}");
    for words in [
        format!("\n{one}  251732099R"),
        format!("\n{two}  251732099R"),
        String::from("\n2 of 4 hosts answer\n"),
        format!("\n{still}: unreachable: it did not answer within 0.5 s\n"),
        format!("\n{gone}: unreachable: no service answers at {gone}"),
    ] {
        assert!(table.out.contains(&words), "{words:?} is missing in {}", table.out);
    }
    assert!(table.out.starts_with("HOST "), "{}", table.out);
    let json = hosts(&list, &["--json", "--timeout", "0.5"]);
    let fleet = fleet(&json);
    let states: Vec<_> = fleet.hosts.iter().map(|host| host.state).collect();
    assert_eq!(states[..2], [HostState::Answering; 2]);
    assert_eq!(states[2..], [HostState::Unreachable; 2]);
    assert!(fleet.hosts[2].snapshot.is_none() && fleet.hosts[2].reason.is_some());
    let test = "the_tables_of_all_are_one_and_who_is_silent_has_a_line";
    if let Some(wrong) = json::complaints(test, "fleet.schema.json", &json.out) {
        assert!(wrong.iter().all(Vec::is_empty), "{wrong:?}");
    }
    let csv = hosts(&list, &["--csv", "--timeout", "0.5"]);
    let rows: Vec<&str> = csv.out.lines().collect();
    assert!(rows[0].starts_with("host,taken_at_unix_ns,id,"), "{csv:?}");
    assert!(rows[1..].iter().all(|row| row.starts_with(one) || row.starts_with(two)), "{csv:?}");
    assert_eq!((rows.len(), csv.err.lines().count()), (5, 2), "{csv:?}");
    let chosen = hosts(one, &["--query-device", "device", "--format=csv,noheader"]);
    assert_eq!(chosen.out, format!("{one},251732099\r\n{one},251732099R\r\n"));
    let filtered = hosts(&list, &["--filter", "device ~ /R$/", "--timeout", "0.5"]);
    assert!(filtered.out.contains("2 of 4 devices and 0 of 0 processes match"), "{filtered:?}");
}

#[test]
fn when_nobody_answers_the_reasons_are_said() {
    let (one, two) = (refused(), refused());
    let table = hosts(&format!("{one},{two}"), &[]);
    assert_eq!(table.status, Some(2), "{table:?}");
    assert!(table.out.contains("0 of 2 hosts answer"), "{table:?}");
    assert!(table.out.contains(&format!("{two}: unreachable: ")), "{table:?}");
}

#[test]
fn who_falls_silent_keeps_its_rows_and_comes_back() {
    let mut host_services = HostServices::of(1);
    let address = host_services.addresses[0].clone();
    let mut command = telltale();
    command.args(["smi", "--hosts", &address, "--json", "-w", "0.2", "--timeout", "0.5"]);
    let mut watching = Running::start(&mut command);
    let mut expect = |state: HostState, has_reason: bool| {
        wait_until("its state", TIMEOUT, || {
            let fleet: Fleet = serde_json::from_str(&watching.line()).unwrap();
            let host = &fleet.hosts[0];
            let devices = host.snapshot.as_ref().map_or(0, |snapshot| snapshot.devices.len());
            host.state == state && host.reason.is_some() == has_reason && devices == 2
        });
    };
    expect(HostState::Answering, false);
    host_services.stop();
    expect(HostState::Unreachable, true);
    let _again = HostServices::at(&[address.parse().unwrap()]);
    expect(HostState::Answering, false);
}

#[test]
fn names_that_make_no_sense_are_refused_before_anyone_is_asked() {
    let place = Scratch::new();
    let list = place.join("list");
    fs::write(&list, "node1\nnode 2\n").unwrap();
    let listed = format!("@{}", list.display());
    hosts(&listed, &[]).complains(2, &["line 2 of", "names no machine"]);
    hosts("@/nonexistent", &[]).complains(2, &["cannot read the hosts in /nonexistent"]);
    let refused = hosts("a b", &[]);
    assert_eq!(refused.status, Some(64), "{refused:?}");
    let token = place.join("token");
    fs::write(&token, "a-token-of-the-tests-that-is-long-enough\n").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let token = token.to_str().unwrap();
    hosts("node7", &["--token-file", token]).complains(64, &["for anyone on the network to read"]);
    for pair in [["--clean", ""], ["--at", "3m ago"], ["--root", "/"]] {
        let pair: Vec<&str> = pair.into_iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(hosts("node7", &pair).status, Some(64), "{pair:?}");
    }
}

#[test]
fn the_full_screen_view_has_all_of_them() {
    let test = "the_full_screen_view_has_all_of_them";
    let host_services = HostServices::of(2);
    let gone = refused();
    let place = Scratch::new();
    let program = env!("CARGO_BIN_EXE_telltale");
    let list = format!("{},{},{gone}", host_services.addresses[0], host_services.addresses[1]);
    let line = format!(
        "env LC_ALL=C XDG_CONFIG_HOME={}/c {program} top --hosts {list} -w 0.2",
        place.path().display()
    );
    let Some(mut terminal) = Terminal::start(test, (120, 30), &line, &place) else { return };
    for words in ["2 of 3 hosts answer", "1 error (e)", &host_services.addresses[1]] {
        wait_until(words, TIMEOUT, || terminal.text().contains(words));
    }
    terminal.type_in(b"e");
    // One word: cells that were blank before are not sent again.
    wait_until("the reason", TIMEOUT, || terminal.text().contains("listens"));
    terminal.type_in(b"qq");
    let (status, text) = terminal.end();
    assert_eq!(status, Some(0), "{text}");
}

#[test]
fn frames_are_objects_of_the_published_shape_from_the_first_on() {
    let (_listener, still) = silent();
    let mut command = telltale();
    command.args(["smi", "--hosts", &still, "--json", "-w", "0.2", "--timeout", "30"]);
    let mut watching = Running::start(&mut command);
    let line = watching.line();
    let first: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&first["fleet_version"], &first["hosts"][0]["state"]),
        (&1.into(), &"waiting".into())
    );
    let test = "frames_are_objects_of_the_published_shape_from_the_first_on";
    if let Some(wrong) = json::complaints(test, "fleet.schema.json", &(line + "\n")) {
        assert!(wrong.iter().all(Vec::is_empty), "{wrong:?}");
    }
}
