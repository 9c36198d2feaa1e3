//! Several machines in one table and in one view.

use std::sync::Arc;

use ratatui_core::style::Modifier;
use telltale_query::Query;
use telltale_schema::clock::Timestamp;
use telltale_schema::fleet::{FLEET_VERSION, Fleet, Host, HostState};
use telltale_schema::snapshot::Snapshot;
use telltale_smi::screen::{PressedKey, Screen, ViewSettings};
use telltale_smi::{Style, fleet, fleet_within};
use unicode_width::UnicodeWidthStr;

use crate::golden::check;
use crate::golden::screens::{page, painted, press, terms};
use crate::golden::snapshots::{empty, idle_device, troubled};

fn host(name: &str, state: HostState, reason: Option<&str>, snapshot: Option<Snapshot>) -> Host {
    Host {
        name: name.to_owned(),
        state,
        reason: reason.map(str::to_owned),
        answered_at: snapshot.as_ref().map(|_| Timestamp(1_000_000_000)),
        snapshot: snapshot.map(Arc::new),
    }
}

/// One that is well, one that was, one that is idle, one that never was, one that is waited for.
fn machines() -> Fleet {
    let idle = Snapshot { devices: vec![idle_device("251732100")], ..empty() };
    let hosts = vec![
        host("node-1", HostState::Answering, None, Some(troubled())),
        host(
            "node-2",
            HostState::Unreachable,
            Some("it did not answer within 2 s"),
            Some(Snapshot { sources: Vec::new(), closed_processes: 0, ..troubled() }),
        ),
        host("node-3:80", HostState::Answering, None, Some(idle)),
        host("ssh://a\x1b[2J", HostState::Unreachable, Some("ssh ended: no\x07 key"), None),
        host("node-5", HostState::Waiting, None, None),
    ];
    Fleet { fleet_version: FLEET_VERSION, taken_at: Timestamp(75_000_000_000), hosts }
}

fn screen(settings: ViewSettings) -> Screen {
    let mut screen = Screen::new(settings, terms(), None);
    screen.set_source("every 1 s");
    let machines = machines();
    let now = machines.taken_at;
    screen.update_fleet(Arc::new(machines), now);
    screen
}

#[test]
fn the_tables_say_whose_each_row_is_and_who_is_silent() {
    check("fleet", &fleet(&machines(), &Style::PLAIN));
    let style = Style { width: Some(80), color: false, unicode: true };
    check("fleet-80", &fleet(&machines(), &style));
    for width in 4..150 {
        let page = fleet(&machines(), &Style { width: Some(width), ..style });
        let widest = page.lines().map(UnicodeWidthStr::width).max();
        assert!(widest <= Some(width), "{width}: {page}");
    }
    // Where no host ever answered, nothing is shown of devices and processes.
    let mut silent = machines();
    silent.hosts.retain(|host| host.snapshot.is_none());
    let page = fleet(&silent, &Style::PLAIN);
    assert!(page.starts_with("0 of 2 hosts answer\n"), "{page}");
    let low = fleet_within(&machines(), 1, &Style::PLAIN);
    assert!(!low.contains("251732100") && low.contains("1 idle device is left out"), "{low}");
}

#[test]
fn one_host_is_not_many() {
    for (state, words) in
        [(HostState::Answering, "1 host"), (HostState::Waiting, "0 of 1 host answers")]
    {
        let hosts = vec![host("node-1", state, None, Some(troubled()))];
        let one = Arc::new(Fleet { hosts, ..machines() });
        let mut screen = Screen::new(ViewSettings::default(), terms(), None);
        screen.update_fleet(Arc::clone(&one), one.taken_at);
        let page = page(&mut screen, 120, 24);
        let title = page.lines().next().unwrap();
        assert!(title.contains(&format!("  {words}  ")), "{title}");
        let table = fleet(&one, &Style::PLAIN);
        assert!(table.contains(" of 1 host answers\n"), "{table}");
    }
}

#[test]
fn the_view_has_a_branch_for_each_machine_and_an_error_for_each_that_is_silent() {
    check("screen-fleet", &page(&mut screen(ViewSettings::default()), 80, 24));
    let mut tree = screen(ViewSettings { tree: true, ..ViewSettings::default() });
    check("screen-fleet-tree", &page(&mut tree, 100, 40));
    press(&mut tree, &[PressedKey::Char('e')]);
    let errors = page(&mut tree, 100, 40);
    assert!(
        errors.contains("node-2")
            && errors.contains("it did not answer within 2 s; its rows are of 1m14s ago"),
        "{errors}"
    );
}

#[test]
fn what_is_old_looks_old_and_is_no_sample() {
    let mut view = screen(ViewSettings::default());
    let backend = painted(&mut view, 80, 24);
    let shown = backend.to_string();
    let is_faint = |name: &str| {
        let row = shown.lines().position(|line| line.starts_with(&format!("\"{name}")));
        let row = u16::try_from(row.unwrap_or_else(|| panic!("{name}: {shown}"))).unwrap();
        (0..80).all(|at| backend.buffer()[(at, row)].modifier.contains(Modifier::DIM))
    };
    assert!(is_faint("node-2/251732099 "), "{shown}");
    assert!(!is_faint("node-1/251732099 ") && !is_faint("node-3:80/251732100 "), "{shown}");
    let has_sample = |name: &str| {
        let line = shown.lines().find(|line| line.contains(name)).unwrap();
        line.trim_end_matches(['"', ' ']).ends_with('█')
    };
    assert!(has_sample("node-1/251732099 ") && !has_sample("node-2/251732099 "), "{shown}");
    let tree = page(&mut screen(ViewSettings { tree: true, ..ViewSettings::default() }), 100, 60);
    assert!(tree.contains("- node-2, 1m14s ago (8)"), "{tree}");
}

#[test]
fn a_filter_holds_for_each_machine_and_no_signal_leaves_this_one() {
    let filter = Query::parse("device ~ /2100/").unwrap();
    let mut view = Screen::new(ViewSettings::default(), terms(), Some(filter));
    view.update_fleet(Arc::new(machines()), machines().taken_at);
    let shown = page(&mut view, 80, 24);
    assert!(shown.contains("1 of 5 devices") && shown.contains("0 of 16 processes"), "{shown}");
    let mut view = screen(ViewSettings::default());
    assert_eq!(
        press(&mut view, &[PressedKey::Char('k'), PressedKey::Enter, PressedKey::Char('y')]),
        None
    );
    press(&mut view, &[PressedKey::Char('k')]);
    let shown = page(&mut view, 80, 24);
    assert!(shown.contains("signals are for processes of one machine"), "{shown}");
}
