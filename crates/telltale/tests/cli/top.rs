//! The full-screen view on a real terminal: it opens, takes keys, and gives the terminal back.

use std::fs;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, wait_until};

use crate::cli::command::{Running, TIMEOUT, children, said, telltale};
use crate::cli::serve::Serving;
use crate::cli::terminal::{HIDE_CURSOR, SHOW_CURSOR, Terminal};

const ALTERNATE: &str = "\x1b[?1049h";
/// Below the place of a view.
const SETTINGS: &str = "c/telltale/top.toml";
const MAIN: &str = "\x1b[?1049l";

/// A machine, and the view of it on a terminal; none where there is no `script`.
pub(crate) struct View {
    pub(crate) place: Scratch,
    _machine: Machine,
    pub(crate) terminal: Terminal,
}

impl View {
    pub(crate) fn open(test: &str, command: &str, settings: Option<&str>) -> Option<Self> {
        let command = format!("{} {command}", env!("CARGO_BIN_EXE_telltale"));
        Self::start(test, &command, settings)
    }

    /// The same of a program with its arguments.
    fn start(test: &str, command: &str, settings: Option<&str>) -> Option<Self> {
        let place = Scratch::new();
        if let Some(settings) = settings {
            fs::create_dir_all(place.join("c/telltale")).unwrap();
            fs::write(place.join(SETTINGS), settings).unwrap();
        }
        let root = place.join("m");
        let machine =
            Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
        let line = format!(
            "STATE={0}/state; env LC_ALL=C XDG_CONFIG_HOME={0}/c {command} --root {0}/m; \
             echo ended with $?; stty -a",
            place.path().display()
        );
        let terminal = Terminal::start(test, (100, 30), &format!("sh -c '{line}'"), &place)?;
        Some(Self { place, _machine: machine, terminal })
    }

    pub(crate) fn shows(&self, words: &str) {
        wait_until(words, TIMEOUT, || self.terminal.text().contains(words));
    }

    /// The same of words of which some cells may have been right before, which are not sent again.
    pub(crate) fn shows_again(&mut self, words: &str) {
        wait_until(words, TIMEOUT, || {
            self.terminal.type_in(b"\x0c");
            self.terminal.text().contains(words)
        });
    }

    /// The process that paints: the shell of `script` started another one, and that one it.
    pub(crate) fn pid(&self) -> u32 {
        let script = self.terminal.child.id();
        let found = children(script).into_iter().flat_map(children).next();
        found.or_else(|| children(script).into_iter().next()).expect("it runs")
    }

    /// Waits for the end; the terminal is as it was.
    pub(crate) fn expect_end(self) {
        self.shows("ended with 0");
        let place = self.place;
        let (status, text) = self.terminal.end();
        assert_eq!(status, Some(0), "{text}");
        for (taken, given) in [(ALTERNATE, MAIN), (HIDE_CURSOR, SHOW_CURSOR)] {
            let last = text.rfind(taken).expect("it was taken");
            assert!(text[last..].contains(given), "{given:?} is missing in {text:?}");
        }
        let modes = text.rsplit_once("ended with 0").unwrap().1;
        assert!(modes.contains(" icanon") && modes.contains(" echo "), "{modes}");
        drop(place);
    }
}

#[test]
fn top_shows_the_machine_and_ends_with_q() {
    let Some(mut view) = View::open("top_shows_the_machine_and_ends_with_q", "top", None) else {
        return;
    };
    view.shows("251732099R");
    view.terminal.type_in(b"h");
    // One word: cells that were blank before are not sent again.
    view.shows("colour-blind");
    view.terminal.type_in(b"ht");
    view.shows("TREE");
    view.terminal.type_in(b"q");
    let settings = view.place.join(SETTINGS);
    view.shows("ended with 0");
    let kept = fs::read_to_string(&settings).unwrap();
    assert!(kept.contains("tree = true"), "{kept}");
    view.expect_end();
}

#[test]
fn its_own_program_opens_the_same_view() {
    let test = "its_own_program_opens_the_same_view";
    let Some(mut view) = View::start(test, env!("CARGO_BIN_EXE_telltale-top"), None) else {
        return;
    };
    view.shows("251732099R");
    view.terminal.type_in(b"q");
    view.expect_end();
}

#[test]
fn smi_that_watches_opens_the_same_view() {
    let test = "smi_that_watches_opens_the_same_view";
    let Some(mut view) = View::open(test, "smi -w 0.2 --filter dram==0", None) else { return };
    view.shows("Filter: dram==0");
    view.terminal.type_in(b"\x03");
    let settings = view.place.join("c");
    view.shows("ended with 0");
    assert!(!settings.exists(), "nothing was changed, so nothing is kept");
    view.expect_end();
}

#[test]
fn plain_tables_are_repainted_as_before() {
    let test = "plain_tables_are_repainted_as_before";
    // The view may show what a service has checked, which --with-host does not reach.
    for option in ["--plain", "--with-host"] {
        let command = format!("smi -w 0.2 {option}");
        let Some(mut view) = View::open(test, &command, None) else { return };
        view.shows("Every 0.2 s; Ctrl-C ends it");
        view.terminal.type_in(b"\x03");
        // The shell is interrupted as well, so that nothing follows.
        let (_, text) = view.terminal.end();
        assert!(!text.contains(ALTERNATE) && text.contains(SHOW_CURSOR), "{text}");
    }
}

#[test]
fn the_view_goes_back_in_what_a_service_recorded() {
    let test = "the_view_goes_back_in_what_a_service_recorded";
    let command = "top -w 0.2 --state-dir $STATE";
    let Some(mut view) = View::open(test, command, None) else { return };
    view.shows("251732099R");
    // There is no history yet.
    view.terminal.type_in(b"[");
    view.shows("serve`");
    let mut serve = telltale();
    serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]);
    serve.arg(view.place.join("m")).arg("--state-dir").arg(view.place.join("state"));
    let _service = Running::start(serve.env("TELLTALE_HISTORY_WRITE_SECONDS", "1"));
    wait_until("the past", TIMEOUT, || {
        view.terminal.type_in(b"[");
        view.terminal.text().contains("PAST:")
    });
    view.terminal.type_in(b"pq");
    view.expect_end();
}

/// Fires at any temperature.
const WARM: &str = "\
interval_seconds = 0.1
[http]
listen = []
[[alerts.rule]]
name = \"device_hot\"
above_ratio = 0.001
clear_ratio = 0.001
for_seconds = 0
";

#[test]
fn the_alerts_of_the_service_are_shown_beside_its_snapshots() {
    let test = "the_alerts_of_the_service_are_shown_beside_its_snapshots";
    let Some(mut view) = View::open(test, "top -w 0.2", None) else { return };
    view.shows("251732099R");
    view.terminal.type_in(b"2");
    view.shows("Alerts]");
    // Without a service the reason is there, and with one it gives way to alerts.
    let file = view.place.join("t.toml");
    fs::write(&file, WARM).unwrap();
    let mut serve = telltale();
    serve.args(["serve", "--root"]).arg(view.place.join("m")).arg("--config").arg(&file);
    let _service = Running::start(serve.arg("--state-dir").arg(view.place.join("state")));
    view.shows("FIRING");
    view.terminal.type_in(b"q");
    view.shows("ended with 0");
    let kept = fs::read_to_string(view.place.join(SETTINGS)).unwrap();
    assert!(kept.contains("pane = \"alerts\""), "{kept}");
    view.expect_end();
}

/// Waits until the terminal was sent `word` after its first `from` bytes. All is painted again until then, by `repaint`:
/// cells that were right before are not sent.
fn sent_after(view: &mut View, from: usize, word: &str, mut repaint: impl FnMut(&mut Terminal)) {
    wait_until(word, TIMEOUT, || {
        repaint(&mut view.terminal);
        let text = view.terminal.text();
        let sent = text.as_bytes().get(from..).unwrap_or_default();
        String::from_utf8_lossy(sent).contains(word)
    });
}

#[test]
fn the_view_collects_by_itself_once_its_service_has_ended() {
    let test = "the_view_collects_by_itself_once_its_service_has_ended";
    let Some(mut view) = View::open(test, "top -w 0.2", None) else { return };
    view.shows("251732099R");
    // The title has room for where snapshots are from beside errors: the machine's heartbeat stands still.
    view.terminal.resize((150, 30));
    let key = |terminal: &mut Terminal| terminal.type_in(b"\x0c");
    let clock = view.place.join("m/sys/class/tenstorrent/tenstorrent!0/tt_aiclk");
    for (is_stopped, megahertz) in [(true, "1337"), (false, "1338")] {
        let mut serve = telltale();
        serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]);
        serve.arg(view.place.join("m")).arg("--state-dir").arg(view.place.join("state"));
        let from = view.terminal.text().len();
        let service = Serving::start(&mut serve);
        sent_after(&mut view, from, "service", key);
        let from = view.terminal.text().len();
        match is_stopped {
            true => service.end(),
            false => service.kill(),
        }
        // A key would take the message away.
        let mut columns = 150;
        sent_after(&mut view, from, "ended;", |terminal| {
            columns = 290 - columns;
            terminal.resize((columns, 30));
        });
        let from = view.terminal.text().len();
        sent_after(&mut view, from, "collected", key);
        // What happens from now on is seen.
        fs::write(&clock, format!("{megahertz}\n")).unwrap();
        sent_after(&mut view, from, megahertz, key);
    }
    view.terminal.type_in(b"q");
    view.expect_end();
}

#[test]
fn a_signal_to_the_view_gives_the_terminal_back() {
    let test = "a_signal_to_the_view_gives_the_terminal_back";
    let Some(view) = View::open(test, "top --readonly", None) else { return };
    view.shows("251732099R");
    let pid = i32::try_from(view.pid()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGTERM).unwrap();
    view.expect_end();
}

#[test]
fn broken_settings_are_reported_and_left_alone() {
    let test = "broken_settings_are_reported_and_left_alone";
    let broken = "version = 1\ntheme = 7\n";
    let Some(mut view) = View::open(test, "top", Some(broken)) else { return };
    view.shows("are left alone; mend or");
    view.terminal.type_in(b"tq");
    view.shows("ended with 0");
    assert_eq!(fs::read_to_string(view.place.join(SETTINGS)).unwrap(), broken);
    view.expect_end();
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    said(telltale().arg("top")).complains(2, &["needs a terminal", "telltale smi -w --plain"]);
}

#[test]
fn a_service_that_is_stopped_from_the_start_is_not_waited_for() {
    stopped_service("a_service_that_is_stopped_from_the_start_is_not_waited_for", true);
}

#[test]
fn a_service_that_is_stopped_while_it_is_followed_is_not_waited_for() {
    stopped_service("a_service_that_is_stopped_while_it_is_followed_is_not_waited_for", false);
}

/// The view of a machine whose service is stopped before the view is asked for, or once it shows what that reports.
fn stopped_service(test: &str, from_the_start: bool) {
    let place = Scratch::new();
    let root = place.join("m");
    let _machine = Machine::create(&root, MachineKind::N300, &MachineOptions::default()).unwrap();
    let mut serve = telltale();
    serve.args(["serve", "--http", "off", "--root"]).arg(&root);
    let mut service = Serving::start(serve.arg("--state-dir").arg(place.join("state")));
    service.says("collecting");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(service.id()).unwrap());
    let stop = || nix::sys::signal::kill(pid, nix::sys::signal::SIGSTOP).unwrap();
    if from_the_start {
        stop();
    }
    let line = format!(
        "env LC_ALL=C XDG_CONFIG_HOME={0}/c {1} top --root {0}/m",
        place.path().display(),
        env!("CARGO_BIN_EXE_telltale")
    );
    let Some(mut terminal) = Terminal::start(test, (150, 30), &line, &place) else { return };
    wait_until("a row of a device", TIMEOUT, || terminal.text().contains("251732099R"));
    if !from_the_start {
        wait_until("its source", TIMEOUT, || terminal.text().contains("service"));
        stop();
    }
    // A key would take the message away.
    let mut columns = 150;
    wait_until("the reason", TIMEOUT, || {
        columns = 290 - columns;
        terminal.resize((columns, 30));
        let text = terminal.text();
        text.contains("doctor`;") || text.contains("has ended")
    });
    // A key that comes with a change of size may wait for the next one.
    let from = terminal.text().len();
    wait_until("the view to be painted again", TIMEOUT, || {
        terminal.type_in(b"\x0c");
        terminal.text().get(from..).is_some_and(|text| text.contains("251732099R"))
    });
    terminal.type_in(b"q");
    service.kill();
    terminal.end();
}
