//! `telltale emulate`: which directories will do, which faults are possible, what it does while it
//! runs, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use telltale_emulator::Fault;
use telltale_harness::{ChildGuard, Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, emulate, said, smi, telltale};
use crate::cli::serve::Serving;

#[test]
fn it_runs_until_a_signal_and_leaves_nothing() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut machine = emulate("p300", &root, &["--fault", "missing:0:tt_aiclk"]);
    let shown = smi::<&str>(&root, &[]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    // The fault is there from the beginning, on the first chip only.
    assert_eq!(shown.out.matches(" n/a ").count(), 1, "{}", shown.out);
    machine.terminate();
    assert_eq!(machine.wait_within("the machine to end", TIMEOUT).code(), Some(0));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_emulated_is_reported_in_one_sentence() {
    let place = Scratch::new();
    let path = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let _running = emulate("n150", &place.join("taken"), &[]);
    fs::create_dir(path("full")).unwrap();
    fs::write(path("full/file"), "").unwrap();
    fs::write(path("file"), "").unwrap();
    let cases: [(&str, &[&str], &[&str]); 7] = [
        ("taken", &[], &["running in", "choose another directory"]),
        ("full", &[], &["is not empty", "choose a new or an empty directory"]),
        ("file", &[], &["file"]),
        ("new", &["--fault", "missing:7:tt_aiclk"], &["missing:7:tt_aiclk", "no chip 7"]),
        ("new", &["--fault", "missing:0:tt_nonsense"], &["no file", "tt_nonsense"]),
        ("new", &["--fault", "missing:0:tt_nonsense@1000"], &["no file", "tt_nonsense"]),
        ("new", &["--fault", "nic:eth7:down@1000"], &["no nic", "eth7"]),
    ];
    for (root, more, words) in cases {
        let mut command = telltale();
        command.args(["emulate", "--machine", "n150", "--root", &path(root)]);
        said(command.args(more)).complains(2, words);
    }
    assert!(!place.join("new").exists(), "a machine that did not start leaves nothing");
}

#[test]
fn files_of_others_that_keep_its_directory_are_named() {
    for (count, words) in [(1, "run/tt/0; remove"), (9, ", and others; remove")] {
        let place = Scratch::new();
        let root = place.join("m");
        let mut command = telltale();
        command.args(["emulate", "--machine", "n150", "--root"]).arg(&root);
        let mut child = Running::start(command.stdout(Stdio::piped())).child;
        let mut lines = BufReader::new(child.child().stderr.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("An emulated "));
        for number in 0..count {
            fs::write(root.join(format!("run/tt/{number}")), "").unwrap();
        }
        child.interrupt();
        let reported = lines.next().unwrap().unwrap();
        assert!(reported.contains(&format!("{} stays", root.display())), "{reported}");
        assert!(reported.contains(words), "{reported}");
        assert!(lines.next().is_none());
        assert_eq!(child.wait_within("the machine to end", TIMEOUT).code(), Some(0));
        let names = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["run"], "nothing of its own stays");
    }
}

#[test]
fn the_help_lists_every_fault() {
    let help = said(telltale().args(["emulate", "--help"])).out;
    for (form, effect) in Fault::forms() {
        let line = help.lines().find(|line| line.trim_start().starts_with(&form));
        assert!(line.is_some_and(|line| line.ends_with(&effect)), "{form}: {help}");
    }
}

/// A machine that is spoken to.
struct Spoken {
    child: ChildGuard,
    input: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Spoken {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildGuard::spawn(command);
        let input = child.child().stdin.take();
        let answers = BufReader::new(child.child().stdout.take().unwrap()).lines();
        let mut errors = BufReader::new(child.child().stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert!(line.starts_with("An emulated "), "{line}");
        Self { child, input, answers }
    }

    fn says(&mut self, line: &[u8]) -> String {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        self.answers.next().unwrap().unwrap()
    }

    fn ends(&mut self) {
        self.child.interrupt();
        assert_eq!(self.child.wait_within("the machine to end", TIMEOUT).code(), Some(0));
    }
}

fn machine(root: &Path) -> Command {
    let mut command = telltale();
    command.args(["emulate", "--machine", "n150", "--root"]).arg(root);
    command
}

/// The text of a file of a network interface.
fn interface(root: &Path, file: &str) -> Option<String> {
    let text = fs::read_to_string(root.join("sys/class/net/eth0").join(file)).ok()?;
    Some(text.trim().to_owned())
}

#[test]
fn what_is_said_while_it_runs_breaks_and_mends() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut spoken = Spoken::start(&mut machine(&root));
    assert_eq!(spoken.says(b"list"), "nothing is broken");
    assert_eq!(spoken.says(b"nic:eth0:down\r"), "injected nic:eth0:down");
    assert_eq!(interface(&root, "carrier").as_deref(), Some("0"));
    let alerts = said(telltale().arg("alerts").arg("--root").arg(&root));
    assert_eq!(alerts.status, Some(1), "{alerts:?}");
    assert!(alerts.out.contains("network_link_down"), "{alerts:?}");
    let shown = smi::<&str>(&root, &[]);
    assert!(shown.out.contains("eth0: network link down"), "{shown:?}");
    assert_eq!(spoken.says(b"nic:eth0:down"), "injected nic:eth0:down");
    assert_eq!(spoken.says(b"port:mlx5_0/1:recovered:5"), "injected port:mlx5_0/1:recovered:5");
    assert_eq!(spoken.says(b"list"), "broken: nic:eth0:down, port:mlx5_0/1:recovered:5");
    // What is not understood, or not possible, changes nothing.
    let longest = [b'x'; 2000];
    for (line, words) in [
        (&b"fire:0"[..], "write missing:N:FILE"),
        (b"", "commands: FAULT, `clear FAULT`, `clear`, `list` or `help`"),
        (b"clear everything", "write missing:N:FILE"),
        (b"clear stop:0", "stop:0 was not injected"),
        (b"nic:eth7:down", "no nic \"eth7\""),
        (b"nic:eth0:\xffdown", "a line must be UTF-8"),
        (&longest, "a line has at most"),
    ] {
        let answer = spoken.says(line);
        assert!(answer.starts_with("refused: ") && answer.contains(words), "{answer}");
    }
    assert_eq!(spoken.says(b"list"), "broken: nic:eth0:down, port:mlx5_0/1:recovered:5");
    assert_eq!(spoken.says(b"clear nic:eth0:down"), "cleared nic:eth0:down");
    assert_eq!(interface(&root, "carrier").as_deref(), Some("1"));
    assert_eq!(spoken.says(b"vanish:0"), "injected vanish:0");
    assert_eq!(spoken.says(b"clear"), "cleared port:mlx5_0/1:recovered:5, vanish:0");
    assert_eq!(spoken.says(b"clear"), "nothing is broken");
    assert!(spoken.says(b"help").contains("nic:NAME:down|slow|narrow|gone"));
    spoken.ends();
}

#[test]
fn a_service_sees_what_only_time_shows() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut spoken = Spoken::start(&mut machine(&root));
    let file = place.join("t.toml");
    let rule = "[[alerts.rule]]\nname = \"network_speed_low\"\nclear_for_seconds = 1\n";
    fs::write(&file, rule).unwrap();
    let mut serve = telltale();
    serve.env("HOME", place.path()).args(["serve", "--http", "off", "--root"]).arg(&root);
    serve.arg("--state-dir").arg(place.join("state")).arg("--config").arg(&file);
    let mut service = Serving::start(&mut serve);
    // Once it has found this, it has seen how fast the interface is.
    spoken.says(b"fan:nct6798/fan1:stopped");
    service.says("alert fan_failed fires: nct6798/fan1");
    spoken.says(b"port:mlx5_0/1:recovered:5");
    service.says("alert infiniband_recoveries_rising fires: mlx5_0/1");
    spoken.says(b"nic:eth0:slow");
    let line = service.says("alert network_speed_low fires: eth0");
    assert!(line.contains("speed 100 Gbit/s, highest speed 200 Gbit/s"), "{line}");
    spoken.says(b"clear nic:eth0:slow");
    service.says("alert network_speed_low is resolved; it was: eth0");
    service.end();
    spoken.ends();
}

#[test]
fn the_end_of_the_input_ends_nothing_and_its_last_line_needs_no_end() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut spoken = Spoken::start(&mut machine(&root));
    spoken.input.take().unwrap().write_all(b"nic:eth0:down").unwrap();
    assert_eq!(spoken.answers.next().unwrap().unwrap(), "injected nic:eth0:down");
    // An hour of waiting would end at once if the end of the input counted as input.
    assert_eq!(interface(&root, "carrier").as_deref(), Some("0"));
    assert!(spoken.child.child().try_wait().unwrap().is_none());
    spoken.ends();
}

#[test]
fn answers_that_are_not_read_hold_up_nothing() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut command = machine(&root);
    command.args(["--fault", "nic:eth0:down@5"]);
    let mut spoken = Spoken::start(&mut command);
    // More than the pipe holds.
    let many = "help\n".repeat(2_000);
    spoken.input.as_mut().unwrap().write_all(many.as_bytes()).unwrap();
    wait_until("the fault to begin", TIMEOUT, || {
        interface(&root, "carrier").is_some_and(|carrier| carrier == "0")
    });
    spoken.ends();
    assert!(!root.exists(), "it has removed what it made");
}

#[test]
fn a_fault_begins_and_ends_by_its_times() {
    let place = Scratch::new();
    let root = place.join("m");
    let mut command = machine(&root);
    command.args(["--fault", "nic:eth0:down@0.1..0.2", "--fault", "nic:eth0:slow@0..0.3"]);
    let mut spoken = Spoken::start(&mut command);
    wait_until("both to be over", TIMEOUT, || {
        spoken.says(b"list") == "nothing is broken"
            && interface(&root, "carrier_down_count").is_some_and(|count| count == "1")
    });
    assert_eq!(interface(&root, "carrier").as_deref(), Some("1"));
    spoken.ends();
}
