//! A machine on which very many processes have a device open. The full-screen view stays right and
//! takes keys, however long a check of them takes; a recording has all of them.
//! `TELLTALE_LONG_TESTS=1` makes it 100,000 processes instead of 3,200.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, rounds, wait_until};
use telltale_schema::snapshot::Snapshot;

use crate::cli::command::{said, telltale};
use crate::cli::terminal::Terminal;

/// Chips of a Galaxy, and the pid before the first.
const CHIPS: u32 = 32;
const BEFORE: u32 = 1_000_000;
/// One check of 100,000 processes takes many seconds in a debug build.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Fills the machine's tree: each chip has so many holders, who are two programs in turn.
fn fill(root: &Path, of_a_chip: u32) {
    for (name, rank) in [("even", "0"), ("odd", "1")] {
        let directory = root.join(name);
        fs::create_dir_all(&directory).unwrap();
        let stat = format!("1 ({name}) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 1 2");
        fs::write(directory.join("stat"), stat).unwrap();
        fs::write(directory.join("status"), format!("Name:\t{name}\nUid:\t0\t0\t0\t0\n")).unwrap();
        fs::write(directory.join("cmdline"), format!("{name}\0--rank\0{rank}\0")).unwrap();
    }
    let mut pid = BEFORE;
    for chip in 0..CHIPS {
        let mut pids = String::new();
        for _ in 0..of_a_chip {
            pid += 1;
            let who = root.join(if pid.is_multiple_of(2) { "even" } else { "odd" });
            symlink(who, root.join(format!("proc/{pid}"))).unwrap();
            pids.push_str(&format!("{pid}\n"));
        }
        fs::write(root.join(format!("proc/driver/tenstorrent/{chip}/pids")), pids).unwrap();
    }
}

/// That machine.
fn machine(place: &Scratch, of_a_chip: u32) -> Machine {
    let root = place.join("m");
    let kind = MachineKind::GalaxyWormhole;
    let machine = Machine::create(&root, kind, &MachineOptions::default()).unwrap();
    fill(&root, of_a_chip);
    machine
}

/// A view of that machine.
struct Crowd {
    _place: Scratch,
    _machine: Machine,
    terminal: Terminal,
}

impl Crowd {
    fn open(test: &str, of_a_chip: u32) -> Option<Self> {
        let place = Scratch::new();
        let machine = machine(&place, of_a_chip);
        let line = format!(
            "env LC_ALL=C XDG_CONFIG_HOME={0}/c {1} top --root {0}/m; echo ended with $?",
            place.path().display(),
            env!("CARGO_BIN_EXE_telltale")
        );
        let terminal = Terminal::start(test, (120, 40), &format!("sh -c '{line}'"), &place)?;
        Some(Self { _place: place, _machine: machine, terminal })
    }

    /// Types keys and waits until a repainted frame has all of `there` and none of `gone`.
    fn shows(&mut self, keys: &str, there: &[&str], gone: &[&str]) {
        self.terminal.type_in(keys.as_bytes());
        wait_until(&format!("{there:?} without {gone:?} after {keys:?}"), TIMEOUT, || {
            let before = self.terminal.text().len();
            self.terminal.type_in(b"\x0c");
            // The last row is painted last; the next check has what was too late for this one.
            let whole = |text: &str| text.contains("Quit") || text.contains("Help ");
            wait_until("a frame", TIMEOUT, || {
                self.terminal.text().get(before..).is_some_and(whole)
            });
            let text = self.terminal.text();
            let frame = &text[before..];
            there.iter().all(|words| frame.contains(words))
                && !gone.iter().any(|words| frame.contains(words))
        });
    }
}

#[test]
fn the_view_stays_right_with_very_many_processes() {
    let test = "the_view_stays_right_with_very_many_processes";
    let of_a_chip = rounds(100, 3125);
    let count = CHIPS * of_a_chip;
    let all = format!("{},{:03}", count / 1000, count % 1000);
    let [first, last] = [BEFORE + 1, BEFORE + count].map(|pid| pid.to_string());
    let middle = (BEFORE + count / 2).to_string();
    let Some(mut crowd) = Crowd::open(test, of_a_chip) else { return };
    // Help is there whether or not anything was seen yet.
    crowd.shows("h", &["colour-blind"], &[]);
    crowd.shows("h", &[&all, &first], &[&last, "colour-blind"]);
    // To the end and back: the same pids, in the order of the driver's lists.
    crowd.shows("\x1b[F", &[&last, &all], &[&first]);
    crowd.shows("\x1b[H", &[&first], &[&last]);
    crowd.shows(&format!("/pid == {middle}\r"), &[&middle, "--rank", &all], &[&first, &last]);
    // A whole half of them.
    let half = format!("{},{:03}", count / 2000, count / 2 % 1000);
    crowd.shows("/\x15name == odd\r", &[&half, &all, &first], &[&middle]);
    crowd.shows("/\x15\r", &[&first], &[&half]);
    crowd.shows("t", &["TREE", &format!("({count})")], &[]);
    crowd.terminal.type_in(b"q");
    wait_until("the end", TIMEOUT, || crowd.terminal.text().contains("ended with 0"));
}

#[test]
fn a_recording_has_very_many_processes() {
    let of_a_chip = rounds(100, 3125);
    let place = Scratch::new();
    let _machine = machine(&place, of_a_chip);
    let pids: Vec<u32> = (BEFORE + 1..=BEFORE + CHIPS * of_a_chip).collect();
    let (root, file) = (place.join("m"), place.join("run.tt"));
    let mut record = telltale();
    record.arg("record").arg(&file).args(["--for", "0.1", "--every", "600", "--root"]).arg(&root);
    let recorded = said(&mut record);
    assert_eq!(recorded.status, Some(0), "{recorded:?}");
    let replayed = said(telltale().args(["smi", "--json", "--replay"]).arg(&file));
    assert_eq!(replayed.status, Some(0), "{}", replayed.err);
    let snapshot: Snapshot = serde_json::from_str(&replayed.out).unwrap();
    let found: Vec<_> = snapshot.processes.iter().filter_map(|process| process.pid).collect();
    assert!(found == pids, "{} of {}", found.len(), pids.len());
}
