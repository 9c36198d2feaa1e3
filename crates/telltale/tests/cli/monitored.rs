//! `telltale smi dmon` and `pmon`: lines that scroll, on emulated machines.

use std::io::BufReader;
use std::path::Path;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, Said, TIMEOUT, emulate, replaying, said, snapshot, telltale};
use crate::cli::terminal::Terminal;

/// What one of them says of the machine below `root`.
#[track_caller]
fn monitor(root: &Path, arguments: &[&str]) -> Said {
    let said = said(telltale().arg("smi").args(arguments).arg("--root").arg(root));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
    said
}

/// The words of each line.
fn words(said: &Said) -> Vec<Vec<&str>> {
    said.out.lines().map(|line| line.split_whitespace().collect()).collect()
}

/// A machine that does not change.
fn frozen(root: &Path, kind: MachineKind) -> Machine {
    Machine::create(root, kind, &MachineOptions::default()).unwrap()
}

#[test]
fn a_busy_galaxy_is_a_line_for_each_chip_and_sample() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("galaxy-wormhole", &root, &[]);
    let mut command = telltale();
    command.args(["replay", "train", "--loop", "--device", "3", "--root"]).arg(&root);
    let replay = Running::start(&mut command);
    let pid = replay.child.id().to_string();
    wait_until("a record", TIMEOUT, || {
        snapshot(&root).processes.iter().any(|one| one.known_by.is_some())
    });
    let devices = monitor(&root, &["dmon", "-c", "3", "-d", "0.1", "-s", "pmt"]);
    let rows = words(&devices);
    let names = "# device temperature power dram dram_capacity l1 l1_capacity pcie_rx pcie_tx \
                 nvlink_rx nvlink_tx";
    assert_eq!(rows[0].join(" "), names);
    assert_eq!(rows[1].join(" "), "# id C W MiB MiB MiB MiB MiB/s MiB/s MiB/s MiB/s");
    assert_eq!(rows.len(), 2 + 3 * 32, "{devices:?}");
    let chips: Vec<&str> = rows[2..].iter().map(|row| row[0]).collect();
    assert_eq!((chips[0], chips[9], chips[31], chips[32]), ("T1:N0", "T2:N1", "T4:N7", "T1:N0"));
    let rates = |row: &Vec<&str>| row[7].parse::<f64>().is_ok() && row[8].parse::<f64>().is_ok();
    assert!(rows[2..].iter().all(|row| row.len() == 11 && rates(row)), "{devices:?}");
    let processes = monitor(&root, &["pmon", "-c", "2", "-d", "0.1"]);
    let rows = words(&processes);
    assert_eq!(rows[0].join(" "), "# device pid busy cpu dram l1 rss user command");
    assert_eq!(rows[1].join(" "), "# id # % % MiB MiB MiB name name");
    assert_eq!(rows.len(), 2 + 2 * 32, "{processes:?}");
    let held = rows.iter().filter(|row| row[1] == pid);
    let held: Vec<_> = held.map(|row| (row[0], row[2], row[4] != "-", row[8])).collect();
    assert_eq!(held, [("T1:N3", "-", true, "telltale"); 2], "{processes:?}");
    assert_eq!(rows[2], ["T1:N0", "-", "-", "-", "-", "-", "-", "-", "-"], "{processes:?}");
}

#[test]
fn values_are_those_of_a_snapshot() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = frozen(&root, MachineKind::GalaxyWormhole);
    let known = snapshot(&root);
    let text = monitor(&root, &["dmon", "-c", "1", "-i", "T1:N0,9", "-s", "pc", "-o", "DT"]);
    let rows = words(&text);
    let names = "# date time device temperature power clock axiclk arcclk memory_clock";
    assert_eq!(rows[0].join(" "), names);
    assert_eq!(rows[1][1..3], ["YYYYMMDD", "HH:MM:SS"]);
    assert_eq!((rows.len(), rows[3][2]), (4, "T2:N1"), "{text:?}");
    assert_eq!([rows[2][0].len(), rows[2][1].len()], [8, 8], "{text:?}");
    let telemetry = &known.devices[0].telemetry;
    let temperature = telemetry.temperature_celsius.value().unwrap();
    let clock = telemetry.aiclk_hertz.value().unwrap() / 1_000_000;
    let expected = [format!("{temperature:.0}"), clock.to_string(), String::from("-")];
    assert_eq!([rows[2][3], rows[2][5], rows[2][8]], expected, "{text:?}");
    let json = monitor(&root, &["dmon", "-c", "2", "-d", "0.1", "-s", "pcu", "--json"]);
    let objects: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 64);
    for (object, device) in objects.iter().zip(known.devices.iter().cycle()) {
        let telemetry = &device.telemetry;
        assert_eq!(object["device"], device.id);
        assert_eq!(object["temperature"].as_f64().as_ref(), telemetry.temperature_celsius.value());
        assert_eq!(object["clock"].as_u64().as_ref(), telemetry.aiclk_hertz.value());
        assert_eq!((&object["busy"], object.get("dram")), (&Value::Null, None));
    }
    assert!(objects[32]["timestamp"].as_u64() > objects[31]["timestamp"].as_u64());
    let filtered = monitor(&root, &["dmon", "-c", "1", "--filter", "device ~ /^T3/"]);
    assert_eq!(words(&filtered).len(), 2 + 8, "{filtered:?}");
    assert_eq!(monitor(&root, &["pmon", "-c", "1", "--json"]).out, "");
}

#[test]
fn the_first_sample_has_rates_where_one_is_shown_or_chosen_by() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = emulate("n150", &root, &[]);
    let replay = replaying(&root);
    let pid = replay.child.id();
    let of = |arguments: &[&str]| -> Vec<Value> {
        let json = monitor(&root, &[&["pmon", "-c", "1", "--json"], arguments].concat());
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    for arguments in [&["-d", "0.1"][..], &["-d", "0.1", "--filter", "cpu >= 0%", "-s", "m"]] {
        let rows = of(arguments);
        assert!(rows.iter().any(|row| row["pid"] == pid), "{arguments:?}: {rows:?}");
        let is_unknown = |row: &Value| row.get("cpu").is_some_and(Value::is_null);
        assert!(!rows.iter().any(is_unknown), "{arguments:?}: {rows:?}");
    }
    // Memory is known at once: were it waited for, this would take an hour.
    let rows = of(&["-d", "3600", "-s", "m", "--filter", "threads > 0"]);
    assert!(rows.iter().any(|row| row["rss"].is_u64()), "{rows:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Scratch::new();
    for (arguments, words) in [
        (["dmon", "-s", "px"], "there is no group `x`; choose from p (power and temperature), u ("),
        (["pmon", "-s", "t"], "there is no group `t`; choose from u (utilisation), m (memory)"),
        (["dmon", "-o", "Dx"], "`x` is neither D (date) nor T (time)"),
        (["dmon", "-c", "0"], "0 is not in 1.."),
    ] {
        let said = said(telltale().arg("smi").args(arguments).arg("--root").arg(place.path()));
        assert_eq!((said.status, said.out.as_str()), (Some(64), ""), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    }
    let nothing = said(telltale().args(["smi", "dmon", "--root"]).arg(place.path()));
    nothing.complains(2, &["nothing to show"]);
    let root = place.join("m");
    let _machine = frozen(&root, MachineKind::N150);
    let absent = said(telltale().args(["smi", "dmon", "-i", "7", "--root"]).arg(&root));
    absent.complains(2, &["there is no device 7"]);
}

#[test]
fn a_signal_or_a_closed_pipe_ends_it_quietly() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = frozen(&root, MachineKind::N150);
    let start = || {
        let mut command = telltale();
        command.args(["smi", "dmon", "-d", "0.1", "--root"]).arg(&root);
        let mut running = Running::start(&mut command);
        let lines: Vec<String> = (0..4).map(|_| running.line()).collect();
        assert!(lines[0].starts_with("# device") && lines[3].starts_with("  "), "{lines:?}");
        running
    };
    let mut interrupted = start();
    interrupted.child.interrupt();
    assert_eq!(interrupted.status(), Some(0));
    let mut closed = start();
    let mut errors = BufReader::new(closed.child.child().stderr.take().unwrap());
    let Running { mut child, lines } = closed;
    drop(lines);
    child.wait_within("the command to end", TIMEOUT);
    let said = std::io::read_to_string(&mut errors).unwrap();
    assert_eq!(said, "");
}

#[test]
fn a_terminal_has_a_heading_again_before_it_is_out_of_sight() {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = frozen(&root, MachineKind::N150);
    let line = format!(
        "{} smi dmon -d 0.1 -c 12 --root {}",
        env!("CARGO_BIN_EXE_telltale"),
        root.display()
    );
    let test = "a_terminal_has_a_heading_again_before_it_is_out_of_sight";
    let Some(terminal) = Terminal::start(test, (80, 8), &line, &place) else { return };
    // Eight rows are two of the heading, five lines and the cursor.
    let (status, text) = terminal.end();
    assert_eq!(status, Some(0), "{text}");
    assert_eq!((text.matches("# device").count(), text.lines().count()), (3, 3 * 2 + 12), "{text}");
}
