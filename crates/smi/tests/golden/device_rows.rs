//! The rows of the devices of a large machine, and the list in which one is chosen.

use std::sync::Arc;

use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Fault, FaultKind};
use telltale_schema::memory::{MemoryKind, MemorySpace};
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{Holder, Snapshot};
use telltale_smi::screen::{
    Alert, Alerts, Availability, InputEvent, Pane, PressedKey, Screen, ViewSettings,
};

use crate::golden::check;
use crate::golden::panes::chip;
use crate::golden::screens::{machine, page, press, screen_with, terms};
use crate::golden::snapshots::{empty, link, usage};

/// A Galaxy whose chips all answer; T2:N1 is open, T2:N3 has memory of a process.
pub(crate) fn galaxy() -> Snapshot {
    let places = (1..=4).flat_map(|tray| (1..=8).map(move |nibble| (tray, nibble)));
    let mut snapshot = Snapshot {
        devices: places
            .map(|(tray, nibble)| chip(tray, nibble, 40.0 + f64::from(nibble)))
            .collect(),
        processes: machine().processes[..1].to_vec(),
        ..empty()
    };
    for device in &mut snapshot.devices {
        device.telemetry.aiclk_hertz = Reading::absent(Absence::Unsupported, "");
    }
    let now = snapshot.taken_at;
    let held = |pid| Holder { pid: Some(pid), open_descriptors: 1, memory_known: true };
    snapshot.devices[9].holders = Reading::new(vec![held(7)], now);
    let process = &mut snapshot.processes[0];
    process.devices.truncate(1);
    process.devices[0].device = 11;
    process.devices[0].kinds = vec![usage(MemoryKind::Dram, 3 << 30, 3)];
    process.devices[0].add_up();
    let device = &mut snapshot.devices[11];
    device.holders = Reading::new(vec![held(4242)], now);
    for space in &mut device.spaces {
        let bytes = if space.space == MemorySpace::Dram { 3 << 30 } else { 0 };
        space.used_bytes = Reading::new(bytes, now);
    }
    snapshot
}

pub(crate) fn screen(snapshot: Snapshot) -> Screen {
    screen_with(ViewSettings::default(), terms(), snapshot)
}

/// What the rows of the devices begin with.
fn rows(page: &str) -> Vec<String> {
    let lines = page.lines().skip(2).take_while(|line| !line.contains("PID USER"));
    let name = |line: &str| {
        let words: Vec<&str> = line[1..].split_whitespace().collect();
        if words.get(2) == Some(&"idle") { words[..3].join(" ") } else { words[0].to_owned() }
    };
    lines.map(name).collect()
}

const FOLDED: [&str; 6] =
    ["T1: 8 idle", "T2:N1", "T2:N3", "T2: 6 idle", "T3: 8 idle", "T4: 8 idle"];

#[test]
fn idle_devices_of_a_tray_have_one_row_and_a_key_shows_each() {
    let mut screen = screen(galaxy());
    let folded = page(&mut screen, 80, 24);
    check("screen-galaxy-80x24", &folded);
    assert_eq!(rows(&folded), FOLDED);
    check("screen-galaxy-170x40", &page(&mut screen, 170, 40));
    press(&mut screen, &[PressedKey::Char('a')]);
    assert!(screen.settings().all_devices);
    let all = page(&mut screen, 80, 24);
    assert!(all.contains("32 devices (26 out of sight)"), "{all}");
    assert_eq!(rows(&all).len(), 6, "{all}");
    press(&mut screen, &[PressedKey::Char('a')]);
    assert_eq!(page(&mut screen, 80, 24), folded);
}

#[test]
fn the_past_folds_what_no_process_held() {
    let mut past = galaxy();
    for device in &mut past.devices {
        device.holders = Reading::absent(Absence::NotKept, "");
    }
    let shown = rows(&page(&mut screen(past.clone()), 80, 24));
    // The history does not keep who merely had one open, as T2:N1 here.
    assert_eq!(shown, ["T1: 8 idle", "T2:N3", "T2: 7 idle", "T3: 8 idle", "T4: 8 idle"]);
    // What is not known of the present is not what was not kept.
    for device in &mut past.devices {
        device.holders = Reading::absent(Absence::Unknown, "");
    }
    assert!(!page(&mut screen(past), 80, 50).contains(" idle"));
}

#[test]
fn the_first_row_has_what_the_host_uses_before_the_source() {
    let first = |snapshot: Snapshot, columns: u16| {
        let page = page(&mut screen(snapshot), columns, 24);
        page.lines().next().unwrap().trim_matches('"').to_owned()
    };
    let few = machine();
    let mut many = Snapshot { host: few.host.clone(), sources: few.sources.clone(), ..galaxy() };
    many.devices.iter_mut().for_each(|it| it.holders = Reading::absent(Absence::Unknown, ""));
    for columns in 80..140 {
        for snapshot in [&few, &many] {
            let line = first(snapshot.clone(), columns);
            assert!(line.contains("CPU 34% RAM 19%") && !line.contains('…'), "{line}");
            assert!(line.ends_with(" (e)"), "{line}");
        }
    }
    let wide = first(many.clone(), 130);
    assert!(wide.contains("out of sight)  1 process  node-7 CPU 34% RAM 19% load 12.3/64  every"));
    let narrow = first(many, 80);
    assert!(narrow.contains("unseen)  1 process  CPU"), "{narrow}");
}

#[test]
fn what_is_wrong_is_never_folded() {
    let mut snapshot = galaxy();
    let fault = Fault::new(FaultKind::HeartbeatStopped, Timestamp(1), String::from("7 s"));
    snapshot.devices[0].faults.push(fault);
    snapshot.devices[2].holders = Reading::absent(Absence::Permission, "");
    snapshot.devices[17].spaces[0].used_bytes = Reading::absent(Absence::Unknown, "");
    snapshot.devices[18].telemetry.power_watts = Reading::absent(Absence::TimedOut, "");
    snapshot.devices[20].telemetry.link = Some(Box::new(link([3, 8])));
    let mut view = screen(snapshot);
    let alert = Alert {
        fires: false,
        severity: "info",
        rule: String::from("device_hot"),
        since: Timestamp(1),
        text: String::new(),
        device: Some(String::from("T4:N7")),
    };
    view.set_alerts(Availability::Known(Alerts { alerts: vec![alert], withheld: 0 }));
    let expected = [
        "T1:N0",
        "T1:N2",
        "T1: 6 idle",
        "T2:N1",
        "T2:N3",
        "T2: 6 idle",
        "T3:N1",
        "T3:N2",
        "T3:N4",
        "T3: 5 idle",
        "T4:N7",
        "T4: 7 idle",
    ];
    assert_eq!(rows(&page(&mut view, 100, 50)), expected);
    // Nor are eight devices, of which each has a row anyway.
    let mut few = galaxy();
    few.devices.truncate(8);
    few.processes.clear();
    assert_eq!(rows(&page(&mut screen(few), 100, 50)).len(), 8);
}

#[test]
fn a_row_of_idle_devices_names_them_and_opens() {
    let mut screen = screen(galaxy());
    press(&mut screen, &[PressedKey::Tab, PressedKey::Home]);
    let tray = page(&mut screen, 100, 40);
    assert!(tray.contains("T1:N0  T1:N1  T1:N2") && tray.contains("Return or a shows"), "{tray}");
    assert!(tray.contains("4242") && !tray.contains("Esc: all"), "all processes stay: {tray}");
    press(&mut screen, &[PressedKey::Down, PressedKey::Down]);
    assert!(page(&mut screen, 100, 40).contains("On T2:N3 (Esc: all)"));
    press(&mut screen, &[PressedKey::Down, PressedKey::Enter]);
    assert!(screen.settings().all_devices);
    // A click on a device of the topology shows it, though it is idle.
    let settings = ViewSettings { pane: Pane::Topology, ..ViewSettings::default() };
    let mut screen = screen_with(settings, terms(), galaxy());
    let shown = page(&mut screen, 120, 40);
    let row = shown.lines().position(|line| line.starts_with("\"T3 N0")).unwrap();
    screen.event(InputEvent::Pressed { column: 4, row: u16::try_from(row).unwrap() });
    let shown = page(&mut screen, 120, 40);
    assert!(shown.contains("On T3:N0 (Esc: all)"), "{shown}");
    assert_eq!(rows(&shown)[4..], ["T3:N0", "T3: 7 idle", "T4: 8 idle"], "{shown}");
    let now = galaxy().taken_at;
    screen.update(Arc::new(galaxy()), now);
    assert!(page(&mut screen, 120, 40).contains("On T3:N0 (Esc: all)"), "it stays chosen");
}

fn typed(screen: &mut Screen, text: &str) -> String {
    for character in text.chars() {
        press(screen, &[PressedKey::Char(character)]);
    }
    page(screen, 100, 40)
}

#[test]
fn a_device_is_found_by_all_that_it_is_called() {
    let mut screen = screen(galaxy());
    let list = typed(&mut screen, "d");
    assert!(list.contains("Choose a device") && list.contains("type an index, id"), "{list}");
    let choices = [("9", "T2:N1"), ("t4:n7", "T4:N7"), ("ada t2", "T2:N3"), ("python", "T2:N3")];
    for (text, id) in choices {
        press(&mut screen, &[PressedKey::Control('u')]);
        typed(&mut screen, text);
        press(&mut screen, &[PressedKey::Enter]);
        let chosen = page(&mut screen, 100, 40);
        assert!(chosen.contains(&format!("On {id} (Esc: all)")), "{text}: {chosen}");
        assert!(!chosen.contains("Choose a device"), "{chosen}");
        typed(&mut screen, "d");
    }
    press(&mut screen, &[PressedKey::Escape]);
    assert!(page(&mut screen, 100, 40).contains("On T2:N3"), "Escape leaves it as it was");
    typed(&mut screen, "dt3");
    press(&mut screen, &[PressedKey::Down, PressedKey::Down, PressedKey::Up]);
    check("screen-picker", &page(&mut screen, 80, 24));
    press(&mut screen, &[PressedKey::Enter]);
    assert!(page(&mut screen, 100, 40).contains("On T3:N1 (Esc: all)"));
    let nothing = typed(&mut screen, "dno such");
    assert!(nothing.contains("No device has this."), "{nothing}");
    press(&mut screen, &[PressedKey::Enter, PressedKey::Control('c')]);
    assert!(!page(&mut screen, 100, 40).contains("No device has this."));
}

#[test]
fn choosing_opens_the_pane_and_a_click_chooses_too() {
    let settings = ViewSettings { details: false, ..ViewSettings::default() };
    let mut screen = screen_with(settings, terms(), galaxy());
    typed(&mut screen, "dt2:n3");
    press(&mut screen, &[PressedKey::Enter]);
    let chosen = page(&mut screen, 120, 40);
    assert!(chosen.contains("[1 Details]") && chosen.contains("held by  4242"), "{chosen}");
    let list = typed(&mut screen, "d");
    let row = list.lines().position(|line| line.contains("  24 T4:N0")).unwrap();
    let click = InputEvent::Pressed { column: 20, row: u16::try_from(row).unwrap() };
    screen.event(click);
    assert!(page(&mut screen, 100, 40).contains("Choose a device"), "it is only selected");
    screen.event(click);
    assert!(page(&mut screen, 100, 40).contains("On T4:N0 (Esc: all)"));
    typed(&mut screen, "d");
    screen.event(InputEvent::Pressed { column: 0, row: 0 });
    assert!(!page(&mut screen, 100, 40).contains("Choose a device"), "one beside it closes it");
}
