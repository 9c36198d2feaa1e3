//! What the full-screen view looks like, to the character, after events that are data.

use std::sync::Arc;
use std::time::Duration;

use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Load, Snapshot};
use telltale_smi::screen::{
    Action, Column, GraphValue, InputEvent, PressedKey, ProcessTarget, Recorded, Screen, Signal,
    Terms, Theme, ViewSettings,
};

use crate::golden::check;
use crate::golden::snapshots::{empty, idle_device, troubled};

const IDENTITY: ProcessIdentity =
    ProcessIdentity { boot_id: [7; 16], pid_namespace: 1, pid: 17, start_time_ticks: 99 };

pub(crate) fn terms() -> Terms {
    Terms {
        host: String::from("node-7"),
        readonly: false,
        unicode: true,
        period: Duration::from_secs(1),
    }
}

/// The troubled machine, whose trainer can be distinguished from any other process.
pub(crate) fn machine() -> Snapshot {
    let mut snapshot = troubled();
    snapshot.processes[0].identity = Some(IDENTITY);
    snapshot
}

pub(crate) fn screen_with(settings: ViewSettings, terms: Terms, snapshot: Snapshot) -> Screen {
    let mut screen = Screen::new(settings, terms, None);
    screen.set_source("every 1 s");
    let now = snapshot.taken_at;
    screen.update(Arc::new(snapshot), now);
    screen
}

fn screen() -> Screen {
    screen_with(ViewSettings::default(), terms(), machine())
}

pub(crate) fn press(screen: &mut Screen, keys: &[PressedKey]) -> Option<Action> {
    let mut last = None;
    for key in keys {
        last = screen.event(InputEvent::Key(*key));
    }
    last
}

fn type_in(screen: &mut Screen, text: &str) {
    for character in text.chars() {
        press(screen, &[PressedKey::Char(character)]);
    }
}

pub(crate) fn painted(screen: &mut Screen, columns: u16, rows: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| screen.render(frame)).unwrap();
    terminal.backend().clone()
}

pub(crate) fn page(screen: &mut Screen, columns: u16, rows: u16) -> String {
    painted(screen, columns, rows).to_string()
}

#[test]
fn devices_processes_and_details_have_their_places() {
    check("screen-80x24", &page(&mut screen(), 80, 24));
    check("screen-170x40", &page(&mut screen(), 170, 40));
    let plain = Terms { unicode: false, ..terms() };
    let mut ascii = screen_with(ViewSettings::default(), plain, machine());
    let page = page(&mut ascii, 80, 24);
    assert!(page.is_ascii(), "{page}");
    check("screen-ascii", &page);
}

/// A machine of two GPUs, of which one does not tell how busy it is.
fn gpus() -> Snapshot {
    let devices = [("0000:41:00.0", Some(0.97)), ("0000:c1:00.0", None)].map(|(id, busy)| {
        let mut device = idle_device(id);
        device.identity = OtherIdentity::new(id, "nvidia", DeviceClass::Gpu).into();
        device.spaces.retain(|usage| usage.space == MemorySpace::Dram);
        let mut load = Load::absent(Absence::Unsupported, "");
        if let Some(busy) = busy {
            load.busy_ratio = Reading::new(busy, Timestamp(7));
        }
        device.telemetry.load = Some(Box::new(load));
        device
    });
    Snapshot { devices: devices.into(), ..empty() }
}

#[test]
fn devices_without_l1_show_how_busy_they_are() {
    let settings = ViewSettings {
        shown_metric: GraphValue::named("busy").unwrap(),
        ..ViewSettings::default()
    };
    let mut screen = screen_with(settings, terms(), gpus());
    let shown = page(&mut screen, 120, 24);
    let line = |words: &str| {
        let found = shown.lines().find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("{words}: {shown}"))
    };
    assert!(line("DEVICE").contains("BUSY") && !line("DEVICE").contains("L1"), "{shown}");
    assert!(line("0000:41:00.0").contains("97%"), "{shown}");
    // Its clock is not known either, as that of the other one.
    let unknown = |words: &str| line(words).matches("n/a").count();
    assert_eq!((unknown("0000:41:00.0"), unknown("0000:c1:00.0")), (1, 2), "{shown}");
    let mut mixed = gpus();
    mixed.devices.push(idle_device("1001"));
    let shown = page(&mut screen_with(ViewSettings::default(), terms(), mixed), 120, 24);
    assert!(shown.contains(" L1 ") && shown.contains(" BUSY "), "{shown}");
}

#[test]
fn the_host_s_memory_of_a_process_is_seen_where_there_is_no_l1() {
    let mut device = idle_device("host");
    device.identity = OtherIdentity::new("host", "host", DeviceClass::Host).into();
    device.spaces.retain(|usage| usage.space == MemorySpace::Dram);
    let mut process = machine().processes[0].clone();
    process.devices.truncate(1);
    process.devices[0].kinds =
        vec![crate::golden::snapshots::usage(MemoryKind::SystemMemory, 7 << 30, 3)];
    process.devices[0].add_up();
    let host = Snapshot { devices: vec![device], processes: vec![process], ..empty() };
    let mut screen = screen_with(ViewSettings::default(), terms(), host);
    let shown = page(&mut screen, 100, 30);
    let headings = shown.lines().find(|line| line.contains("PID USER")).unwrap();
    assert!(headings.contains(" HOST ") && !headings.contains(" L1 "), "{shown}");
    let row = shown.lines().find(|line| line.contains("4242 ada")).unwrap();
    assert!(row.contains("7.0 GiB"), "{shown}");
    assert!(shown.contains("HOST to 7.0 GiB"), "the graph too: {shown}");
    assert!(shown.contains(" 1 device  1 process "), "{shown}");
}

#[test]
fn nobody_knowing_is_not_nothing() {
    let mut snapshot = machine();
    let unknown = "held by pid 7, whose memory cannot be read from here; run as its user or root";
    let device = &mut snapshot.devices[0];
    device.kinds.clear();
    for usage in &mut device.spaces {
        usage.used_bytes = Reading::absent(Absence::Unknown, unknown);
    }
    let process = &mut snapshot.processes[0];
    process.devices.iter_mut().for_each(|held| held.kinds.clear());
    process.known_by = None;
    let mut screen = screen_with(ViewSettings::default(), terms(), snapshot);
    press(&mut screen, &[PressedKey::Char('N'), PressedKey::Char('I'), PressedKey::Home]);
    let shown = page(&mut screen, 80, 24);
    assert!(shown.contains("no source reports what it has"), "{shown}");
    press(&mut screen, &[PressedKey::Tab, PressedKey::Home]);
    let shown = page(&mut screen, 80, 24);
    assert!(shown.contains("not known") && shown.contains("its user or root"), "{shown}");
    assert!(!shown.contains("nothing is in use"), "{shown}");
}

#[test]
fn nothing_is_said_in_words() {
    let mut new = Screen::new(ViewSettings::default(), terms(), None);
    assert!(page(&mut new, 80, 24).contains("Waiting for the first snapshot."));
    let nothing = page(&mut screen_with(ViewSettings::default(), terms(), empty()), 80, 24);
    assert!(nothing.contains("No device is to be seen."), "{nothing}");
    assert!(nothing.contains("No process that is visible"), "{nothing}");
}

#[test]
fn the_tree_goes_from_the_host_to_kinds() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Function(5)]);
    let closed = page(&mut screen, 80, 24);
    for words in ["- node-7 (8)", "- research/gpt-0 train (1)", "- ada (1)"] {
        assert!(closed.contains(words), "{words}: {closed}");
    }
    // Host, pod, user, process.
    press(&mut screen, &[PressedKey::Down, PressedKey::Down, PressedKey::Down, PressedKey::Enter]);
    check("screen-tree", &page(&mut screen, 100, 30));
    press(&mut screen, &[PressedKey::Home, PressedKey::Left]);
    let shut = page(&mut screen, 80, 24);
    assert!(shut.contains("+ node-7 (8)") && !shut.contains("- ada"), "{shut}");
}

#[test]
fn a_filter_is_typed_completed_and_explained() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Char('/')]);
    type_in(&mut screen, "dram > 2Gi and user == ada");
    check("screen-filter-error", &page(&mut screen, 80, 24));
    press(&mut screen, &[PressedKey::Enter]);
    assert!(page(&mut screen, 80, 24).contains("Filter: dram > 2Gi and"), "it stays open");
    press(&mut screen, &[PressedKey::Control('u')]);
    type_in(&mut screen, "dram > 2GiB and us");
    press(&mut screen, &[PressedKey::Tab]);
    type_in(&mut screen, " == ada");
    press(&mut screen, &[PressedKey::Enter]);
    let filtered = page(&mut screen, 160, 24);
    assert!(filtered.contains("1 of 8 processes"), "{filtered}");
    assert!(filtered.contains("Filter: dram > 2GiB and user == ada"), "{filtered}");
    press(&mut screen, &[PressedKey::Escape]);
    assert!(page(&mut screen, 80, 24).contains(" 8 processes"));
}

#[test]
fn a_filter_from_the_command_line_holds_from_the_start() {
    let filter = Query::parse("user == ada").unwrap();
    let mut screen = Screen::new(ViewSettings::default(), terms(), Some(filter));
    let snapshot = machine();
    let now = snapshot.taken_at;
    screen.update(Arc::new(snapshot), now);
    assert!(page(&mut screen, 80, 24).contains("2 of 8 processes"));
}

#[test]
fn help_menus_and_errors_lie_over_the_panes() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Char('?')]);
    check("screen-help", &page(&mut screen, 80, 24));
    press(&mut screen, &[PressedKey::End]);
    let end = page(&mut screen, 80, 24);
    assert!(end.contains("$XDG_CONFIG_HOME/telltale/top.toml."), "{end}");
    press(&mut screen, &[PressedKey::Escape, PressedKey::Char('e')]);
    let errors = page(&mut screen, 80, 24);
    assert!(errors.contains("the driver did not answer; a reset of the chip ends it"), "{errors}");
    press(&mut screen, &[PressedKey::Escape, PressedKey::Function(2)]);
    check("screen-columns", &page(&mut screen, 80, 24));
    press(
        &mut screen,
        &[PressedKey::Down, PressedKey::Char(' '), PressedKey::Char('+'), PressedKey::Escape],
    );
    let columns = &screen.settings().columns;
    assert_eq!(columns[..2], [Column::Pid, Column::Device], "user is hidden");
    press(&mut screen, &[PressedKey::Function(6), PressedKey::Home, PressedKey::Enter]);
    assert_eq!(screen.settings().sort, Column::Pid);
}

#[test]
fn what_is_too_long_for_its_row_goes_on() {
    let remedy = "start one with `telltale serve`, or name the directory of another in --state-dir";
    let words = format!("there is no history in /var/lib/telltale/history.db; {remedy}");
    let mut snapshot = machine();
    snapshot.sources[0].errors[0].detail = words.clone();
    let mut screen = screen_with(ViewSettings::default(), terms(), snapshot);
    press(&mut screen, &[PressedKey::Char('e')]);
    let spaced = |page: &str| {
        let lines = page.lines().map(|line| line.trim_matches(['"', ' ', '│']));
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    };
    let errors = page(&mut screen, 80, 24);
    assert!(errors.contains("│     `telltale serve`, or"), "{errors}");
    for word in words.split_whitespace() {
        assert!(errors.contains(word), "{word}: {errors}");
    }
    press(&mut screen, &[PressedKey::Escape]);
    screen.tell(words.as_str());
    let reported = page(&mut screen, 80, 24);
    assert!(spaced(&reported).ends_with(&words), "{reported}");
    // And so does what is wrong with a query.
    press(&mut screen, &[PressedKey::Char('/')]);
    type_in(&mut screen, "dram");
    let wrong = page(&mut screen, 80, 24);
    assert!(spaced(&wrong).contains("or `~` is expected"), "{wrong}");
}

#[test]
fn the_last_column_cannot_be_hidden() {
    let settings = ViewSettings { columns: vec![Column::Pid], ..ViewSettings::default() };
    let mut screen = screen_with(settings, terms(), machine());
    press(&mut screen, &[PressedKey::Function(2), PressedKey::Char(' ')]);
    assert_eq!(screen.settings().columns, [Column::Pid]);
}

#[test]
fn only_a_confirmed_signal_is_asked_for() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, &[PressedKey::Function(9), PressedKey::Enter]), None);
    check("screen-signal", &page(&mut screen, 80, 24));
    // Return is not yes, and anything else is no.
    assert_eq!(press(&mut screen, &[PressedKey::Enter, PressedKey::Char('n')]), None);
    let keys = [
        PressedKey::Down,
        PressedKey::Down,
        PressedKey::Down,
        PressedKey::Down,
        PressedKey::Enter,
        PressedKey::Char('y'),
    ];
    let target = ProcessTarget { pid: 4242, identity: IDENTITY };
    assert_eq!(press(&mut screen, &keys), Some(Action::Signal(target, Signal::Kill)));
    assert_eq!(press(&mut screen, &[PressedKey::Char('y')]), None, "once is enough");
}

#[test]
fn the_dialog_stays_with_its_process_when_the_rows_change() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Char('k'), PressedKey::Enter]);
    let gone = Snapshot { processes: Vec::new(), devices: Vec::new(), ..machine() };
    let now = gone.taken_at;
    screen.update(Arc::new(gone), now);
    assert!(page(&mut screen, 80, 24).contains("Send SIGTERM to 4242?"));
    let target = ProcessTarget { pid: 4242, identity: IDENTITY };
    let sent = press(&mut screen, &[PressedKey::Char('y')]);
    assert_eq!(sent, Some(Action::Signal(target, Signal::Term)));
}

#[test]
fn signals_are_refused_where_they_are_not_wanted_or_not_safe() {
    let readonly = Terms { readonly: true, ..terms() };
    let mut screen = screen_with(ViewSettings::default(), readonly, machine());
    press(&mut screen, &[PressedKey::Char('k')]);
    assert!(page(&mut screen, 80, 24).contains("opened with --readonly"));
    // No process of this one has an identity.
    let mut screen = screen_with(ViewSettings::default(), terms(), troubled());
    press(&mut screen, &[PressedKey::Char('k')]);
    assert!(page(&mut screen, 80, 24).contains("cannot be distinguished from another"));
}

#[test]
fn the_past_is_shown_until_the_present_is_wanted() {
    let second = 1_000_000_000;
    let now = 1_700_000_000 * second;
    let today = Snapshot { taken_at: Timestamp(now), ..machine() };
    let mut screen = screen_with(ViewSettings::default(), terms(), today);
    let look = |at| Some(Action::ShowMoment(Timestamp(at)));
    let back = [PressedKey::Char('[')];
    assert_eq!(press(&mut screen, &back), look(now - second));
    assert_eq!(press(&mut screen, &back), look(now - 2 * second));
    assert_eq!(press(&mut screen, &[PressedKey::Char('{')]), look(now - 62 * second));
    assert!(page(&mut screen, 80, 24).contains("LOOKING BACK"));
    let then = |at: u64| Arc::new(Snapshot { taken_at: Timestamp(at), ..machine() });
    // An answer to what is not asked for any more.
    screen.show_past(Timestamp(now - second), then(now - second));
    assert!(page(&mut screen, 80, 24).contains("LOOKING BACK"));
    let idle = Snapshot { devices: vec![idle_device("251732100")], ..empty() };
    let idle = Snapshot { taken_at: Timestamp(now - 62 * second), ..idle };
    screen.show_past(Timestamp(now - 62 * second), Arc::new(idle));
    check("screen-past", &page(&mut screen, 80, 24));
    // The present goes on meanwhile, unseen.
    screen.update(then(now + second), Timestamp(now + second));
    let shown = page(&mut screen, 80, 24);
    assert!(shown.contains("PAST: 1m03s ago") && shown.contains("251732100"), "{shown}");
    press(&mut screen, &[PressedKey::Char('k')]);
    assert!(page(&mut screen, 80, 24).contains("signals are for the present"));
    assert_eq!(press(&mut screen, &[PressedKey::Char(']')]), look(now - 61 * second));
    assert_eq!(press(&mut screen, &[PressedKey::Char('}'), PressedKey::Char('}')]), None);
    assert!(!page(&mut screen, 80, 24).contains("PAST"));
    press(&mut screen, &back);
    screen.refuse_past("there is no history");
    let shown = page(&mut screen, 80, 24);
    assert!(shown.contains("there is no history") && !shown.contains("LOOKING"), "{shown}");
    press(&mut screen, &[PressedKey::Char('['), PressedKey::Char('p')]);
    assert!(page(&mut screen, 80, 24).contains("251732099"));
}

#[test]
fn a_recording_is_gone_through_by_steps_and_its_graphs_end_where_one_is() {
    let second = 1_000_000_000;
    let mut screen = Screen::new(ViewSettings::default(), terms(), None);
    screen.set_source("run.tt");
    let show = |screen: &mut Screen, place: usize, plays| {
        let at = Timestamp((1_700_000_000 + u64::try_from(place).unwrap()) * second);
        let snapshot = Snapshot { taken_at: at, ..machine() };
        screen.update_recorded(Arc::new(snapshot), Recorded { place, count: 40, plays });
    };
    (0..20).for_each(|place| show(&mut screen, place, true));
    let played = page(&mut screen, 80, 24);
    assert!(played.contains("RECORDED 20 of 40 (p: halt)"), "{played}");
    let samples = |page: &str| page.lines().nth(2).unwrap().matches('█').count();
    // Going back shows what was before, and nothing of what comes after.
    show(&mut screen, 4, false);
    check("screen-recorded", &page(&mut screen, 80, 24));
    assert!(samples(&played) > samples(&page(&mut screen, 80, 24)));
    for (key, back, steps) in [('[', true, 1), (']', false, 1), ('{', true, 60), ('}', false, 60)] {
        let expected = Some(Action::Step { back, steps });
        assert_eq!(press(&mut screen, &[PressedKey::Char(key)]), expected);
    }
    assert_eq!(press(&mut screen, &[PressedKey::Char('p')]), Some(Action::Play));
    press(&mut screen, &[PressedKey::Char('k')]);
    assert!(page(&mut screen, 80, 24).contains("and this is a recording"));
    // The clock on the wall is not that of a recording.
    assert!(!screen.tick(Timestamp(1_800_000_000 * second)));
    assert!(!page(&mut screen, 80, 24).contains("NOTHING NEW"));
}

#[test]
fn the_mouse_selects_sorts_and_scrolls() {
    let mut screen = screen();
    let before = page(&mut screen, 80, 24);
    let row_of = |page: &str, words: &str| {
        let found = page.lines().position(|line| line.contains(words));
        u16::try_from(found.unwrap_or_else(|| panic!("{words}: {page}"))).unwrap()
    };
    let heading = row_of(&before, "PID USER");
    screen.event(InputEvent::Pressed { column: 6, row: heading });
    assert_eq!(screen.settings().sort, Column::Pid);
    let sorted = page(&mut screen, 80, 24);
    let row = row_of(&sorted, "4300");
    screen.event(InputEvent::Pressed { column: 30, row });
    let selected = page(&mut screen, 80, 24);
    assert!(selected.lines().any(|line| line.starts_with("\"4300 ")), "{selected}");
    screen.event(InputEvent::Wheel { up: true, row });
    let moved = page(&mut screen, 80, 24);
    assert!(!moved.lines().any(|line| line.starts_with("\"4300 ")), "{moved}");
    let last = row_of(&moved, "F1Help");
    let column = u16::try_from("F1Help F2Columns F3Pane F4Filter F5".len()).unwrap();
    screen.event(InputEvent::Pressed { column, row: last });
    assert!(screen.settings().tree, "F5 was pressed");
    screen.event(InputEvent::Pressed { column: 1, row: last });
    assert!(page(&mut screen, 80, 24).contains("this page"));
}

#[test]
fn keys_say_when_it_is_over() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, &[PressedKey::Char('q')]), Some(Action::Quit));
    assert_eq!(
        press(&mut screen, &[PressedKey::Char('h'), PressedKey::Control('c')]),
        Some(Action::Quit)
    );
    assert_eq!(press(&mut screen, &[PressedKey::Control('z')]), Some(Action::Suspend));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let mut modes = vec![screen(), screen_with(ViewSettings::default(), terms(), empty())];
    let openers: [&[PressedKey]; 8] = [
        &[PressedKey::Char('h')],
        &[PressedKey::Char('e')],
        &[PressedKey::Function(2)],
        &[PressedKey::Function(6)],
        &[PressedKey::Char('k')],
        &[PressedKey::Char('/'), PressedKey::Char('d'), PressedKey::Char('訓')],
        &[PressedKey::Char('t'), PressedKey::End, PressedKey::PageDown],
        &[PressedKey::Tab, PressedKey::End],
    ];
    for keys in openers {
        let mut screen = screen();
        press(&mut screen, keys);
        modes.push(screen);
    }
    let sizes = [(1, 1), (1, 200), (500, 1), (79, 24), (80, 23), (80, 24), (81, 25), (500, 200)];
    for screen in &mut modes {
        for (columns, rows) in sizes {
            let page = page(screen, columns, rows);
            assert_eq!(page.lines().count(), usize::from(rows));
            let small = columns < 80 || rows < 24;
            assert!(!small || !page.contains(" UTC  "), "{page}");
        }
        assert!(page(screen, 40, 5).contains("80 x 24 are needed."));
    }
}

#[test]
fn names_from_outside_steer_nothing() {
    let mut snapshot = machine();
    snapshot.devices[0].id = String::from("\u{1b}[2J\u{202e}evil");
    let mut screen = screen_with(ViewSettings::default(), terms(), snapshot);
    for keys in [&[][..], &[PressedKey::Char('t')], &[PressedKey::Char('k')], &[PressedKey::Tab]] {
        press(&mut screen, keys);
        let page = page(&mut screen, 120, 40);
        let steers = |it: char| it != '\n' && telltale_schema::text::steers(it);
        assert!(!page.contains(steers), "{page}");
    }
}

#[test]
fn a_snapshot_that_does_not_follow_is_reported() {
    let mut screen = screen();
    let Timestamp(then) = machine().taken_at;
    assert!(!screen.tick(Timestamp(then + 2_000_000_000)));
    assert!(screen.tick(Timestamp(then + 75_000_000_000)));
    assert!(page(&mut screen, 80, 24).contains("NOTHING NEW FOR 1m15s"));
}

#[test]
fn the_selection_stays_on_its_process() {
    let mut screen = screen();
    press(&mut screen, &[PressedKey::Home, PressedKey::Down, PressedKey::Up]);
    let mut next = machine();
    next.processes.reverse();
    next.devices.push(idle_device("new"));
    let now = next.taken_at;
    screen.update(Arc::new(next), now);
    let page = page(&mut screen, 80, 24);
    assert!(page.lines().any(|line| line.starts_with("\"4242 ")), "{page}");
}

#[test]
fn themes_differ_in_colour_alone() {
    let mut pages = Vec::new();
    for theme in Theme::ALL {
        let settings = ViewSettings { theme, ..ViewSettings::default() };
        let mut screen = screen_with(settings, terms(), machine());
        let backend = painted(&mut screen, 100, 30);
        let coloured = backend.buffer().content().iter().filter(|it| it.fg != Color::Reset).count();
        assert_eq!(coloured == 0, theme == Theme::Monochrome, "{theme:?}");
        pages.push(backend.to_string());
    }
    assert!(pages.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn many_processes_are_only_painted_where_they_are_seen() {
    let mut snapshot = machine();
    let one = snapshot.processes[0].clone();
    // The first ones have a history, and the one at the end has none.
    snapshot.processes = (0..20_000u32)
        .rev()
        .map(|pid| {
            let identity = Some(ProcessIdentity { pid, ..IDENTITY });
            telltale_schema::snapshot::Process { pid: Some(pid), identity, ..one.clone() }
        })
        .collect();
    let mut screen = screen_with(ViewSettings::default(), terms(), snapshot);
    press(&mut screen, &[PressedKey::Char('N'), PressedKey::End]);
    let end = page(&mut screen, 80, 24);
    assert!(end.lines().any(|line| line.starts_with("\"0 ")), "the least pid is last: {end}");
    assert!(end.contains("19,488"), "{end}");
}
