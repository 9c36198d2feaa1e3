//! The panes below the processes, to the character: what is in them, and why there is nothing.

use std::sync::Arc;

use telltale_schema::chip::{BoardId, BoardType, ChipIdentity, GalaxyPosition};
use telltale_schema::clock::Timestamp;
use telltale_schema::device::{DeviceClass, OtherIdentity};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, MetricSample, MetricValue, Snapshot};
use telltale_smi::screen::{
    Agent, Alert, Alerts, Availability, GraphValue, InputEvent, JobNode, JobView, Latency, Matrix,
    Pane, PressedKey, Screen, Tail, TailLine, Theme, ViewSettings,
};

use crate::golden::check;
use crate::golden::screens::{machine, page, painted, press, screen_with, terms};
use crate::golden::snapshots::{empty, idle_device};

/// What the machine's moment is, in nanoseconds.
const NOW: u64 = 1_000_000_000;

fn pane(pane: Pane) -> Screen {
    screen_with(ViewSettings { pane, ..ViewSettings::default() }, terms(), machine())
}

fn alert(fires: bool, severity: &'static str, rule: &str, text: &str) -> Alert {
    let (rule, text) = (rule.to_owned(), text.to_owned());
    Alert { fires, severity, rule, since: Timestamp(NOW - 1), text, device: None }
}

fn alerts() -> Availability<Alerts> {
    let full = "251732099 has 11.8 GiB of its 12.0 GiB of DRAM in use, which is 98 %; an allocation \
                that is larger than what is left fails";
    Availability::Known(Alerts {
        alerts: vec![
            alert(false, "info", "idle_memory", "4300 keeps 1.0 GiB and does nothing"),
            alert(true, "warning", "device_memory_nearly_full", full),
            alert(true, "critical", "device_hot", "it \u{1b}[2J burns"),
        ],
        withheld: 2,
    })
}

/// The same in a small window, a wide one, and enlarged.
fn check_sizes(name: &str, screen: &mut Screen) {
    check(&format!("pane-{name}-80x24"), &page(screen, 80, 24));
    check(&format!("pane-{name}-160x50"), &page(screen, 160, 50));
    press(screen, &[PressedKey::Char('z')]);
    check(&format!("pane-{name}-enlarged"), &page(screen, 80, 24));
    press(screen, &[PressedKey::Char('z')]);
}

#[test]
fn alerts_that_fire_come_first_and_are_counted_at_the_tab() {
    let mut screen = pane(Pane::Alerts);
    screen.set_alerts(alerts());
    check_sizes("alerts", &mut screen);
}

#[test]
fn a_pane_without_anything_says_why() {
    let mut screen = pane(Pane::Alerts);
    assert!(page(&mut screen, 80, 24).contains("has not sent its alerts yet"));
    let why = "No alerts: no service runs here, and it is the service that looks for them. \
               `telltale serve` starts one; `telltale alerts` looks once.";
    screen.set_alerts(Availability::Absent(why.to_owned()));
    check("pane-alerts-absent", &page(&mut screen, 80, 24));
    screen.set_alerts(Availability::Known(Alerts { withheld: 1, ..Alerts::default() }));
    let nothing = page(&mut screen, 80, 24);
    assert!(nothing.contains("No alert is pending or fires. 1 about a process"), "{nothing}");
}

/// A chip of a Galaxy.
pub(crate) fn chip(tray: u8, nibble: u8, celsius: f64) -> Device {
    let position = GalaxyPosition { tray, nibble };
    let identity = ChipIdentity {
        board_type: BoardType::GalaxyWormhole,
        board_id: Some(BoardId(0x0100_0351_0000_0000)),
        galaxy: Some(position),
        ..ChipIdentity::default()
    };
    let mut device = idle_device(&identity.display_id());
    device.telemetry.temperature_celsius = Reading::new(celsius, Timestamp(NOW));
    Device { identity: identity.into(), ..device }
}

/// A Galaxy that lacks a chip, of which one is hot, beside an n300 and a device of another vendor
/// with a partition.
fn boards() -> Snapshot {
    let mut snapshot = machine();
    for tray in 1..=4 {
        for nibble in (1..=8).filter(|nibble| (tray, *nibble) != (3, 5)) {
            snapshot.devices.push(chip(tray, nibble, if nibble == 8 { 74.0 } else { 41.0 }));
        }
    }
    let mut whole = OtherIdentity::new("0000:81:00.0", "nvidia", DeviceClass::Gpu);
    whole.pci = "0000:81:00.0".parse().ok();
    whole.serial = Some(String::from("13\u{1b}37"));
    let part = OtherIdentity {
        name: String::from("0000:81:00.0/1"),
        parent: Some(whole.name.clone()),
        ..OtherIdentity::new("", "nvidia", DeviceClass::Partition)
    };
    for other in [whole, part] {
        let device = idle_device(&other.name);
        snapshot.devices.push(Device { identity: other.into(), ..device });
    }
    snapshot
}

#[test]
fn boards_trays_and_partitions_are_together_and_what_is_not_known_is_said() {
    let settings = ViewSettings {
        pane: Pane::Topology,
        shown_metric: GraphValue::named("temperature").unwrap(),
        ..ViewSettings::default()
    };
    let mut screen = screen_with(settings, terms(), boards());
    check_sizes("topology", &mut screen);
    // A click on a chip of a tray selects the device.
    let shown = page(&mut screen, 160, 50);
    let row = shown.lines().position(|line| line.starts_with("\"T2 N0")).unwrap();
    screen.event(InputEvent::Pressed { column: 4, row: u16::try_from(row).unwrap() });
    press(&mut screen, &[PressedKey::Char('1')]);
    assert!(page(&mut screen, 160, 50).contains("T2:N0  galaxy-wormhole"));
    let mut nothing = screen_with(
        ViewSettings { pane: Pane::Topology, ..ViewSettings::default() },
        terms(),
        empty(),
    );
    assert!(page(&mut nothing, 80, 24).contains("so there is no topology"));
}

fn metric(name: &str, labels: &[(&str, &str)], value: MetricValue) -> MetricSample {
    MetricSample {
        name: name.to_owned(),
        help: String::new(),
        unit: String::new(),
        labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        value,
    }
}

#[test]
fn program_caches_are_sorted_by_use_and_others_are_counted() {
    let mut snapshot = machine();
    let counter = |name: &str, count| metric(name, &[], MetricValue::Counter(count));
    snapshot.processes[3].metrics = [
        metric("telltale_process_programs_cached", &[], MetricValue::Gauge(1_024.0)),
        counter("telltale_process_program_cache_hits_total", 1_999_999),
        counter("telltale_process_program_cache_misses_total", 1),
        counter("telltale_process_program_cache_evictions_total", 3),
        counter("telltale_process_program_cache_compiles_total", 2),
        counter("telltale_process_program_cache_failed_compiles_total", 1),
        counter("telltale_process_program_cache_collisions_total", 0),
        counter("telltale_process_program_cache_failed_checks_total", 0),
        metric("telltale_process_program_cache_weight_bytes", &[], MetricValue::Gauge(65_536.0)),
        metric(
            "telltale_process_program_cache_phase_seconds",
            &[("phase", "key")],
            MetricValue::Gauge(9.0),
        ),
        metric(
            "telltale_process_program_cache_phase_seconds",
            &[("phase", "compile")],
            MetricValue::Gauge(0.125),
        ),
    ]
    .into();
    let settings = ViewSettings { pane: Pane::Programs, ..ViewSettings::default() };
    let mut screen = screen_with(settings.clone(), terms(), snapshot);
    check_sizes("programs", &mut screen);
    let mut idle = screen_with(settings, terms(), empty());
    assert!(page(&mut idle, 80, 24).contains("No process reports a program cache."));
}

#[test]
fn losses_have_a_tab_while_something_trains() {
    let gauge = |name: &str, value: f64| metric(name, &[], MetricValue::Gauge(value));
    let printed = |name: &str, prefix: &str, value: f64| {
        metric(name, &[("prefix", prefix)], MetricValue::Gauge(value))
    };
    let step = |step: u32| {
        let loss = 4.6 / f64::from(step).sqrt();
        let mut snapshot = machine();
        snapshot.taken_at.0 += u64::from(step) * NOW;
        snapshot.processes[0].metrics = [
            gauge("gpt_loss", loss),
            gauge("gpt_step", step.into()),
            gauge("gpt_tokens_per_second", 12_345.6),
            printed("gpt_printed_mean", "loss", loss),
            printed("gpt_printed_mean", "1.found", 0.25),
            printed("gpt_printed_min", "1.found", -1.0),
            printed("gpt_printed_max", "1.found", 1.5),
        ]
        .into();
        let compiling = [gauge("gpt_kernels", 23.0), gauge("gpt_kernels_ready", 6.0)];
        snapshot.processes[1].metrics = compiling.into();
        snapshot
    };
    let settings = ViewSettings { pane: Pane::Losses, ..ViewSettings::default() };
    let mut screen = screen_with(settings.clone(), terms(), step(1));
    for at in 2..60 {
        let snapshot = Arc::new(step(at));
        let now = snapshot.taken_at;
        screen.update(snapshot, now);
    }
    check_sizes("losses", &mut screen);
    press(&mut screen, &[PressedKey::Char('1')]);
    assert!(page(&mut screen, 80, 24).contains("[1 Details]"));
    assert!(page(&mut screen, 80, 24).contains(" 7 Losses "));
    press(&mut screen, &[PressedKey::Char('7')]);
    let mut idle = screen_with(settings, terms(), empty());
    assert!(page(&mut idle, 80, 24).contains("No process reports a loss."));
    press(&mut idle, &[PressedKey::Function(7)]);
    let details = page(&mut idle, 80, 24);
    assert!(details.contains("[1 Details]") && !details.contains("Losses"), "{details}");
}

/// A job of some nodes, of which the second is slow with everybody.
fn job(count: usize) -> JobView {
    let node = |at: usize| JobNode {
        name: format!("node-{at}"),
        state: String::from(if at == 2 { "silent" } else { "active" }),
        is_ill: at == 2,
        slot: at.to_string(),
        ranks: format!("{}-{}", at * 8, at * 8 + 7),
        workers: String::from("8 running"),
        heard: String::from("0.4 s"),
        busy: String::from("71%"),
        devices: String::from("8 well"),
    };
    let cell = |at: usize| {
        let (from, to) = (at / count, at % count);
        let is_slow = from == 1 || to == 1;
        let times = if is_slow { 2.5 } else { 1.02 };
        (from != to).then_some(Latency { times: (to != 0).then_some(times), is_slow })
    };
    let words = "1-2 (collecting): node-1 is slow to send and to receive, certain beyond doubt; \
                 it is replaced when a spare is there";
    JobView {
        heading: String::from("Job trial: runs; epoch 3, mode act"),
        is_well: false,
        facts: vec![
            ("nodes", String::from("3 of 3 slots filled, 2 heard; 0 standby, 1 silent")),
            ("incident", words.to_owned()),
        ],
        nodes: (0..count.min(3)).map(node).collect(),
        matrix: Some(Matrix {
            about: String::from("Latencies in incident 1-2, as multiples of what is usual."),
            nodes: (0..count).map(|at| format!("node-{at}")).collect(),
            cells: (0..count * count).map(cell).collect(),
        }),
    }
}

fn agents() -> Availability<Vec<Agent>> {
    let latencies = vec![(String::from("node-1"), 0.256), (String::from("node-2"), 0.1)];
    let heading = String::from("Agent of node-0: active, first rank 0 of 24, epoch 3");
    Availability::Known(vec![Agent { heading, is_silent: false, latencies }])
}

#[test]
fn a_job_has_its_nodes_their_latencies_and_what_the_agent_here_reports() {
    let mut screen = pane(Pane::Cluster);
    assert!(page(&mut screen, 80, 24).contains("The coordinator has not answered yet."));
    screen.set_cluster(Availability::Known(job(3)), agents());
    check_sizes("cluster", &mut screen);
    // Numbers have no room, so characters show how hot it is.
    screen.set_cluster(Availability::Known(JobView { nodes: Vec::new(), ..job(24) }), agents());
    press(&mut screen, &[PressedKey::Char('5')]);
    check("pane-cluster-characters", &page(&mut screen, 80, 50));
    let why = "No job: no coordinator was named.";
    let no_agent = "No agent of a job has its state on this host.";
    screen.set_cluster(
        Availability::Absent(why.to_owned()),
        Availability::Absent(no_agent.to_owned()),
    );
    let nothing = page(&mut screen, 80, 24);
    assert!(nothing.contains(why) && nothing.contains(no_agent), "{nothing}");
}

fn tail(count: u32) -> Availability<Tail> {
    let heading = "DTYPE    SHAPE            MIN      MEAN       MAX";
    let line = |at: u32| TailLine {
        seconds: Some(f64::from(at) / 8.0),
        core: Some(at % 4),
        name: format!("layer.{}.attention.output#{at}", at % 3),
        facts: String::from("float32  (128,64)     -1.5       0.25      3.75"),
    };
    let mut lines: Vec<TailLine> = (0..count).map(line).collect();
    let facts = String::from("12 events lost here: full");
    lines.insert(lines.len() / 2, TailLine { facts, ..TailLine::default() });
    Availability::Known(Tail { heading: heading.to_owned(), lines, earlier: 1_000 })
}

#[test]
fn the_end_of_a_capture_stays_in_sight_until_somebody_goes_back() {
    let mut screen = pane(Pane::Events);
    screen.set_tail(tail(8));
    check_sizes("events", &mut screen);
    screen.set_tail(tail(20));
    press(&mut screen, &[PressedKey::Char('1'), PressedKey::Char('6')]);
    assert!(page(&mut screen, 80, 24).contains("17-22/22"));
    press(&mut screen, &[PressedKey::Up]);
    page(&mut screen, 80, 24);
    screen.set_tail(tail(30));
    assert!(page(&mut screen, 80, 24).contains("16-21/32"), "{}", page(&mut screen, 80, 24));
    press(&mut screen, &[PressedKey::End]);
    page(&mut screen, 80, 24);
    screen.set_tail(tail(40));
    assert!(page(&mut screen, 80, 24).contains("37-42/42"));
}

#[test]
fn without_a_capture_it_is_reported_what_processes_count() {
    let mut snapshot = machine();
    let counter = |name: &str, labels: &[(&str, &str)], count| MetricSample {
        name: format!("telltale_process_debug_events_{name}"),
        help: String::new(),
        unit: String::new(),
        labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        value: MetricValue::Counter(count),
    };
    snapshot.processes[0].metrics = [
        counter("published_total", &[("core", "3")], 12_345),
        counter("published_total", &[("core", "4")], 0),
        counter("delivered_total", &[("core", "3")], 12_000),
        counter("lost_total", &[("core", "3"), ("cause", "events")], 345),
        counter("lost_total", &[("core", "3"), ("cause", "memory")], 0),
    ]
    .into();
    let why = "No capture: none was named. Open the view with --events CAPTURE.";
    let settings = ViewSettings { pane: Pane::Events, ..ViewSettings::default() };
    let mut screen = screen_with(settings, terms(), snapshot);
    screen.set_tail(Availability::Absent(why.to_owned()));
    check("pane-events-counted", &page(&mut screen, 80, 24));
    let mut idle = pane(Pane::Events);
    idle.set_tail(Availability::Absent(why.to_owned()));
    assert!(page(&mut idle, 80, 24).contains("No process counts debug events."));
}

#[test]
fn panes_are_reached_by_digits_function_keys_and_mouse() {
    let mut screen = pane(Pane::Details);
    screen.set_alerts(alerts());
    assert!(page(&mut screen, 80, 24).contains("[1 Details] 2 Alerts (2) "));
    press(&mut screen, &[PressedKey::Char('2')]);
    assert!(page(&mut screen, 80, 24).contains(" 1 Details [2 Alerts (2)]"));
    // The digit of the one that is shown gives it the place of the processes as well.
    press(&mut screen, &[PressedKey::Char('2')]);
    assert!(!page(&mut screen, 80, 24).contains("COMMAND"));
    press(&mut screen, &[PressedKey::Function(8)]);
    assert!(page(&mut screen, 80, 24).contains("COMMAND"));
    // Nothing trains, so that losses have no tab.
    for _ in Pane::ALL.iter().filter(|pane| **pane != Pane::Losses) {
        press(&mut screen, &[PressedKey::Function(7)]);
    }
    assert_eq!(screen.settings().pane, Pane::Alerts, "all of them in turn");
    // F3 hides whatever is there, and a digit brings it back.
    press(&mut screen, &[PressedKey::Function(3)]);
    assert!(!page(&mut screen, 80, 24).contains("2 Alerts"));
    press(&mut screen, &[PressedKey::Char('1')]);
    let shown = page(&mut screen, 80, 24);
    let row = shown.lines().position(|line| line.contains("[1 Details]")).unwrap();
    let event = InputEvent::Pressed { column: 14, row: u16::try_from(row).unwrap() };
    screen.event(event);
    assert_eq!(screen.settings().pane, Pane::Alerts);
    screen.event(event);
    assert!(screen.settings().enlarged, "the tab that is shown was pressed");
}

#[test]
fn a_pane_scrolls_with_keys_and_wheel_and_the_rest_does_not() {
    let mut screen = pane(Pane::Alerts);
    let many: Vec<Alert> =
        (0..40).map(|at| alert(true, "info", &format!("rule_{at}"), "it is so")).collect();
    screen.set_alerts(Availability::Known(Alerts { alerts: many, withheld: 0 }));
    press(&mut screen, &[PressedKey::Char('1'), PressedKey::Char('2')]);
    assert!(page(&mut screen, 80, 24).contains("1-6/80"));
    press(&mut screen, &[PressedKey::PageDown, PressedKey::Down, PressedKey::Down]);
    let down = page(&mut screen, 80, 24);
    assert!(down.contains("9-14/80") && down.contains("rule_4 "), "{down}");
    press(&mut screen, &[PressedKey::End]);
    assert!(page(&mut screen, 80, 24).contains("75-80/80"));
    let bottom = InputEvent::Wheel { up: true, row: 20 };
    screen.event(bottom);
    assert!(page(&mut screen, 80, 24).contains("72-77/80"));
    // Tab goes round: processes, devices, the pane.
    press(
        &mut screen,
        &[
            PressedKey::Tab,
            PressedKey::Down,
            PressedKey::Tab,
            PressedKey::Down,
            PressedKey::Tab,
            PressedKey::Home,
        ],
    );
    assert!(page(&mut screen, 80, 24).contains("1-6/80"));
    // Fewer lines than before.
    press(&mut screen, &[PressedKey::End]);
    page(&mut screen, 80, 24);
    screen.set_alerts(alerts());
    assert!(page(&mut screen, 80, 24).contains("3-8/8"));
}

#[test]
fn every_pane_has_every_size_theme_and_terminal() {
    let mut reported = Vec::new();
    for theme in Theme::ALL {
        for pane in Pane::ALL {
            let settings = ViewSettings { pane, theme, enlarged: true, ..ViewSettings::default() };
            let mut screen = screen_with(settings, terms(), boards());
            screen.set_alerts(alerts());
            screen.set_cluster(Availability::Known(job(40)), agents());
            screen.set_tail(tail(9));
            for (columns, rows) in [(1, 1), (80, 24), (81, 25), (500, 200)] {
                let page = page(&mut screen, columns, rows);
                assert_eq!(page.lines().count(), usize::from(rows));
                let steers = |it: char| it != '\n' && telltale_schema::text::steers(it);
                assert!(!page.contains(steers), "{page}");
            }
            reported.push((pane, painted(&mut screen, 100, 30).to_string()));
        }
    }
    let panes = Pane::ALL.len();
    for (at, (pane, page)) in reported.iter().enumerate() {
        assert_eq!(page, &reported[at % panes].1, "{pane:?} says something by colour alone");
    }
}

#[test]
fn without_unicode_a_pane_is_ascii() {
    for pane in Pane::ALL {
        let terms = telltale_smi::screen::Terms { unicode: false, ..terms() };
        let settings = ViewSettings { pane, enlarged: true, ..ViewSettings::default() };
        let mut screen = Screen::new(settings, terms, None);
        let snapshot = machine();
        let now = snapshot.taken_at;
        screen.update(Arc::new(snapshot), now);
        screen.set_alerts(alerts());
        screen.set_cluster(Availability::Known(job(40)), agents());
        screen.set_tail(tail(9));
        let page = page(&mut screen, 80, 24);
        assert!(page.is_ascii(), "{page}");
    }
}
