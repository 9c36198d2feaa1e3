use telltale_schema::chip::ChipIdentity;
use telltale_schema::clock::Timestamp;
use telltale_schema::health::{Fault, FaultKind, RULES, RuleSubject};
use telltale_schema::memory::{MemoryKind, MemorySpace, MemoryUsage};
use telltale_schema::process::ProcessIdentity;
use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{
    Accounting, Device, HeldDevice, HeldKind, HeldUsage, KindMemory, Process, ProcessState,
    RecordingFaults, Snapshot, SourceError, SourceNote, SourceStatus, SpaceUsage, Telemetry,
};

use super::{
    AlertOptions, AlertState, Condition, Engine, Rule, RuleText, Transition, WebhookOptions,
};
use crate::configuration::{ConfigurationKey, keys_of};

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 12 << 30;

fn reading<T>(value: T) -> Reading<T> {
    Reading::new(value, Timestamp(1))
}

fn device(used_bytes: u64) -> Device {
    Device {
        id: "a".to_owned(),
        identity: ChipIdentity::default().into(),
        facts: Reading::absent(Absence::Unknown, ""),
        telemetry: Telemetry::absent(Absence::Unsupported, ""),
        spaces: vec![SpaceUsage {
            space: MemorySpace::Dram,
            used_bytes: reading(used_bytes),
            capacity_bytes: reading(CAPACITY),
            capacity_source: None,
        }],
        kinds: Vec::new(),
        holders: reading(Vec::new()),
        faults: Vec::new(),
        health_not_kept: false,
    }
}

fn process(pid: u32, live_bytes: u64, allocations: u64) -> Process {
    let usage = MemoryUsage { live_bytes, allocations, ..MemoryUsage::default() };
    let kinds = vec![HeldKind { kind: MemoryKind::Dram, usage: HeldUsage::Recorded(usage) }];
    let mut held = HeldDevice { accounting: Accounting::Recorded, kinds, ..HeldDevice::default() };
    held.add_up();
    Process {
        identity: Some(ProcessIdentity {
            boot_id: [7; 16],
            pid_namespace: 1,
            pid,
            start_time_ticks: 5,
        }),
        pid: Some(pid),
        namespace_pid: None,
        name: "train\x1b".to_owned(),
        command: reading("train".to_owned()),
        uid: reading(1000),
        user: reading("ann".to_owned()),
        container: None,
        state: ProcessState::Alive,
        known_by: None,
        started_at: None,
        usage: None,
        uptime_seconds: reading(1.0),
        devices: vec![held],
        faults: RecordingFaults::default(),
        metrics: [].into(),
    }
}

fn snapshot(devices: Vec<Device>, processes: Vec<Process>) -> Snapshot {
    Snapshot { collected_in_ns: 1, devices, processes, ..Snapshot::empty(Timestamp(1_000)) }
}

/// The default rule of this name, alone.
fn only(name: &str) -> Engine {
    Engine::new(Rule::defaults().into_iter().filter(|rule| rule.name == name).collect())
}

fn words(transitions: &[Transition]) -> Vec<&'static str> {
    let word = |transition: &Transition| match transition {
        Transition::Fired(_) => "fired",
        Transition::Resolved(_) => "resolved",
    };
    transitions.iter().map(word).collect()
}

fn share(percent: u64) -> Snapshot {
    snapshot(vec![device(CAPACITY / 100 * percent + 100)], Vec::new())
}

#[test]
fn a_full_device_fires_after_its_time_and_clears_below_the_lower_threshold() {
    let mut engine = only("device_memory_nearly_full");
    let steps: [(u64, u64, &[&str]); 10] = [
        (0, 96, &[]),
        (29, 96, &[]),
        (30, 97, &["fired"]),
        (40, 92, &[]), // between the thresholds: goes on
        (41, 80, &[]), // clear, but not for long enough
        (90, 92, &[]), // so the time restarts
        (91, 80, &[]),
        (150, 80, &[]),
        (151, 80, &["resolved"]),
        (200, 80, &[]),
    ];
    for (second, percent, expected) in steps {
        let transitions = engine.step(second * SECOND, &share(percent));
        assert_eq!(words(&transitions), expected, "second {second}");
    }
    assert_eq!(engine.alerts().count(), 0);
}

#[test]
fn a_break_starts_the_time_again_and_a_short_peak_never_fires() {
    let mut engine = only("device_memory_nearly_full");
    for (second, percent) in [(0, 96), (20, 93), (25, 96), (54, 96)] {
        assert!(engine.step(second * SECOND, &share(percent)).is_empty(), "second {second}");
    }
    let alert = engine.alerts().next().unwrap();
    assert_eq!((alert.state, alert.fired_at), (AlertState::Pending, None));
    assert_eq!(words(&engine.step(55 * SECOND, &share(96))), ["fired"]);
}

#[test]
fn what_cannot_be_read_neither_fires_nor_resolves() {
    let mut engine = only("device_memory_nearly_full");
    engine.step(0, &share(96));
    let mut unknown = share(96);
    unknown.devices[0].spaces[0].used_bytes = Reading::absent(Absence::Resetting, "");
    assert!(engine.step(100 * SECOND, &unknown).is_empty());
    assert_eq!(words(&engine.step(101 * SECOND, &share(96))), ["fired"]);
    let before = engine.alerts().next().unwrap().clone();
    assert!(engine.step(500 * SECOND, &unknown).is_empty());
    assert_eq!(engine.alerts().next().unwrap(), &before, "the last words stay");
}

#[test]
fn an_alert_ends_with_its_subject() {
    let mut engine = only("device_memory_nearly_full");
    engine.step(0, &share(96));
    engine.step(30 * SECOND, &share(96));
    let transitions = engine.step(31 * SECOND, &snapshot(Vec::new(), Vec::new()));
    assert_eq!(words(&transitions), ["resolved"]);
}

/// What fires and resolves in four hours, with the wall clock set again each minute by `jump`
/// seconds.
fn four_hours(jump: impl Fn(u64) -> i64) -> Vec<(u64, &'static str, String)> {
    let mut engine = Engine::new(Rule::defaults());
    let (mut all, mut set) = (Vec::new(), 0i64);
    for second in (0..14_400u64).step_by(5) {
        if second % 60 == 0 {
            set += jump(second / 60);
        }
        // Full for minutes at a time, with breaks; one process leaks and one does nothing.
        let filled = if second / 300 % 3 == 1 { CAPACITY / 100 * 97 } else { 0 };
        let leak = 1024 * MIB + second * MIB / 4;
        let mut seen = snapshot(
            vec![device((filled + leak).min(CAPACITY))],
            vec![process(9, leak, second), process(10, 2048 * MIB, 1)],
        );
        seen.devices[0].telemetry.temperature_limit_celsius = reading(75.0);
        let hot = second * 7_919 % 1_000 < 950;
        seen.devices[0].telemetry.temperature_celsius = reading(if hot { 74.0 } else { 50.0 });
        let wall = (1_800_000_000 + second).saturating_add_signed(set);
        seen.taken_at = Timestamp(wall * SECOND);
        for transition in engine.step(second * SECOND, &seen) {
            let (word, alert) = match transition {
                Transition::Fired(alert) => ("fired", alert),
                Transition::Resolved(alert) => ("resolved", alert),
            };
            assert!(alert.since <= seen.taken_at || set != 0);
            all.push((second, word, alert.rule));
        }
    }
    all
}

#[test]
fn a_wall_clock_that_is_set_neither_fires_nor_resolves() {
    const DAY: i64 = 86_400;
    let steady = four_hours(|_| 0);
    for rule in ["device_memory_nearly_full", "memory_leak", "idle_memory", "device_hot"] {
        assert!(steady.iter().any(|(_, _, name)| name == rule), "{rule}: {steady:?}");
    }
    assert!(steady.iter().any(|(_, word, _)| *word == "resolved"));
    let jumps: [fn(u64) -> i64; 3] = [
        |minute| if minute % 2 == 0 { DAY } else { -3_600 },
        |_| -3_600,
        |minute| [DAY, -2 * DAY, 3_600, -1, 7][usize::try_from(minute % 5).unwrap()],
    ];
    for (case, jump) in jumps.into_iter().enumerate() {
        assert_eq!(four_hours(jump), steady, "case {case}");
    }
}

/// Steps of a training: each allocates and frees 256 MiB over a floor that `floor` gives by second.
fn train(engine: &mut Engine, seconds: u64, floor: impl Fn(u64) -> u64) -> Vec<Transition> {
    let mut all = Vec::new();
    for second in (0..seconds).step_by(5) {
        let live = floor(second) + if second % 10 == 0 { 256 * MIB } else { 0 };
        let seen = snapshot(vec![device(live)], vec![process(9, live, second)]);
        all.extend(engine.step(second * SECOND, &seen));
    }
    all
}

#[test]
fn a_leak_below_the_steps_of_a_training_is_found_with_its_time_to_exhaustion() {
    let mut engine = only("memory_leak");
    // 1 MiB a second: 12 GiB less 1 GiB last about three hours.
    let transitions = train(&mut engine, 2400, |second| 1024 * MIB + second * MIB);
    assert_eq!(words(&transitions), ["fired"]);
    let Transition::Fired(alert) = &transitions[0] else { unreachable!() };
    assert_eq!(alert.uid, Some(1000));
    let slope = alert.value / MIB as f64;
    assert!((0.98..1.02).contains(&slope), "{slope}");
    assert!(alert.text.starts_with("train? (9) gains 3.5 GiB of dram an hour"), "{}", alert.text);
}

#[test]
fn a_training_that_warms_up_or_loads_a_second_model_does_not_leak() {
    let floors: [fn(u64) -> u64; 4] = [
        |_| 1024 * MIB,
        |second| if second < 600 { second * MIB } else { 600 * MIB },
        |second| if second < 1000 { 1024 * MIB } else { 4096 * MIB },
        |second| 8192 * MIB - second * MIB,
    ];
    for (case, floor) in floors.into_iter().enumerate() {
        let mut engine = only("memory_leak");
        assert_eq!(words(&train(&mut engine, 7200, floor)), [""; 0], "case {case}");
    }
}

#[test]
fn a_process_that_does_nothing_is_named_after_an_hour() {
    let mut engine = only("idle_memory");
    let at = |allocations| snapshot(vec![device(MIB)], vec![process(9, 2048 * MIB, allocations)]);
    assert!(engine.step(0, &at(1)).is_empty());
    assert!(engine.step(3000 * SECOND, &at(2)).is_empty());
    assert!(engine.step(6599 * SECOND, &at(2)).is_empty());
    assert_eq!(words(&engine.step(6600 * SECOND, &at(2))), ["fired"]);
    assert_eq!(words(&engine.step(6601 * SECOND, &at(3))), ["resolved"]);
}

/// A machine with memory of the dead, a hot device and a source that fails.
fn troubled() -> Snapshot {
    let mut seen = share(10);
    seen.devices[0].kinds.push(KindMemory {
        kind: MemoryKind::L1,
        total_bytes: 2 * MIB,
        processes_bytes: 0,
        unattributed_bytes: 0,
        ghost_bytes: 2 * MIB,
        live_buffers: None,
    });
    seen.devices[0].telemetry.temperature_celsius = reading(74.0);
    seen.devices[0].telemetry.temperature_limit_celsius = reading(75.0);
    seen.sources.push(SourceStatus {
        name: "tenstorrent".to_owned(),
        duration_ns: 1,
        errors: vec![SourceError {
            subject: "x".to_owned(),
            reason: Absence::TimedOut,
            detail: "it hangs".to_owned(),
        }],
        errors_dropped: 3,
        notes: Vec::new(),
    });
    seen
}

#[test]
fn memory_of_the_dead_heat_and_failing_sources_are_found() {
    let mut engine = Engine::new(Rule::defaults());
    let seen = troubled();
    let mut fired = Vec::new();
    for second in [0, 30, 60] {
        for transition in engine.step(second * SECOND, &seen) {
            let Transition::Fired(alert) = transition else { panic!("{transition:?}") };
            fired.push((second, alert.rule));
        }
    }
    let fired: Vec<_> = fired.iter().map(|(second, rule)| (*second, rule.as_str())).collect();
    assert_eq!(fired, [(30, "device_hot"), (30, "source_down"), (60, "memory_of_the_dead")]);
}

#[test]
fn faults_of_devices_fire_and_what_others_leave_does_not() {
    for (kind, rule, seconds) in [
        (FaultKind::HeartbeatStopped, "heartbeat_stopped", 10),
        (FaultKind::Vanished, "device_vanished", 30),
    ] {
        let mut engine = Engine::new(Rule::defaults());
        let well = share(10);
        let mut ill = share(10);
        let detail = "it stands still".to_owned();
        ill.devices[0].faults.push(Fault::new(kind, Timestamp(1), detail));
        assert!(engine.step(0, &ill).is_empty(), "a reset takes some seconds");
        let fired = engine.step(seconds * SECOND, &ill);
        let [Transition::Fired(alert)] = fired.as_slice() else { panic!("{fired:?}") };
        assert_eq!((alert.rule.as_str(), alert.text.as_str()), (rule, "device a: it stands still"));
        assert!(engine.step((seconds + 1) * SECOND, &well).is_empty());
        let clearing = engine.alerts().next().unwrap();
        assert_eq!((clearing.text.as_str(), clearing.value), ("device a: it stands still", 1.0));
        let resolved = engine.step((seconds + 11) * SECOND, &well);
        let [Transition::Resolved(alert)] = resolved.as_slice() else { panic!("{resolved:?}") };
        assert_eq!((alert.text.as_str(), alert.value), ("device a: it stands still", 1.0));
    }
    let mut engine = Engine::new(Rule::defaults());
    let mut noted = share(10);
    noted.sources.push(SourceStatus {
        name: "ledgers".to_owned(),
        duration_ns: 1,
        errors: Vec::new(),
        errors_dropped: 0,
        notes: vec![SourceNote {
            subject: "user 61001".to_owned(),
            count: 1000,
            detail: String::new(),
        }],
    });
    assert!((0..10).all(|minute| engine.step(minute * 60 * SECOND, &noted).is_empty()));
}

#[test]
fn a_heartbeat_that_had_stopped_is_over_when_its_device_vanishes() {
    let mut engine = only("heartbeat_stopped");
    let with = |kind| {
        let mut seen = share(10);
        seen.devices[0].telemetry.heartbeat_total = Reading::absent(Absence::Gone, "");
        let detail = "it stands still".to_owned();
        seen.devices[0].faults.push(Fault::new(kind, Timestamp(1), detail));
        seen
    };
    let (stopped, vanished) = (with(FaultKind::HeartbeatStopped), with(FaultKind::Vanished));
    engine.step(0, &stopped);
    assert_eq!(words(&engine.step(10 * SECOND, &stopped)), ["fired"]);
    assert!(engine.step(11 * SECOND, &vanished).is_empty());
    assert_eq!(words(&engine.step(21 * SECOND, &vanished)), ["resolved"]);
    // One that merely cannot be read just now may have stopped or not.
    let mut unread = stopped.clone();
    unread.devices[0].faults.clear();
    engine.step(30 * SECOND, &stopped);
    assert_eq!(words(&engine.step(40 * SECOND, &stopped)), ["fired"]);
    assert!(engine.step(4000 * SECOND, &unread).is_empty());
}

#[test]
fn an_alert_that_clears_is_what_it_was() {
    let mut engine = only("device_memory_nearly_full");
    engine.step(0, &share(96));
    engine.step(30 * SECOND, &share(97));
    engine.step(31 * SECOND, &share(10));
    let clearing = engine.alerts().next().unwrap().clone();
    assert!(clearing.text.starts_with("97 % of the dram"), "{}", clearing.text);
    let resolved = engine.step(91 * SECOND, &share(10));
    assert_eq!(resolved, [Transition::Resolved(clearing)]);
}

#[test]
fn changed_rules_resolve_what_they_no_longer_say() {
    let mut engine = Engine::new(Rule::defaults());
    engine.step(0, &share(96));
    engine.step(30 * SECOND, &share(96));
    let mut rules = Rule::defaults();
    rules.reverse();
    assert!(engine.replace_rules(rules.clone()).is_empty());
    assert_eq!(engine.alerts().count(), 1);
    rules.retain(|rule| rule.name != "device_memory_nearly_full");
    assert_eq!(words(&engine.replace_rules(rules)), ["resolved"]);
}

fn rules(text: &str) -> Result<Vec<Rule>, String> {
    let options = toml::from_str::<AlertOptions>(text).map_err(|error| error.to_string())?;
    Ok(options.rules().unwrap())
}

#[test]
fn configuration_changes_switches_off_and_adds_rules_by_name() {
    assert_eq!(rules("").unwrap(), Rule::defaults());
    let changed = rules(
        "[[rule]]\nname = \"device_hot\"\nabove_ratio = 0.8\nclear_ratio = 0.7\n\
         [[rule]]\nname = \"idle_memory\"\ndisabled = true\n\
         [[rule]]\nname = \"l1_full\"\ncondition = \"capacity\"\nspace = \"l1\"\nfor_seconds = 5\n",
    )
    .unwrap();
    let names: Vec<_> = changed.iter().map(|rule| rule.name.as_str()).collect();
    let expected = [
        "device_memory_nearly_full",
        "memory_leak",
        "memory_of_the_dead",
        "device_hot",
        "source_down",
        "l1_full",
    ];
    let of_health = |name: &&str| RULES.iter().any(|rule| rule.alert == *name);
    assert_eq!(names.iter().copied().filter(|name| !of_health(name)).collect::<Vec<_>>(), expected);
    let hot = Rule::defaults().into_iter().find(|rule| rule.name == "device_hot").unwrap();
    assert_eq!(changed[3].for_seconds, hot.for_seconds);
    assert_ne!(changed[3].condition, hot.condition);
    assert!(rules("without_defaults = true").unwrap().is_empty());
}

#[test]
fn a_rule_that_is_not_understood_is_refused_with_the_remedy() {
    let cases = [
        ("[[rule]]\ncondition = \"leak\"", "no `name`"),
        ("[[rule]]\nname = \"x\"", "no `condition`"),
        ("[[rule]]\nname = \"x\"\ncondition = \"full\"", "there are capacity"),
        ("[[rule]]\nname = \"device_hot\"\nspace = \"l1\"", "temperature has no `space`"),
        ("[[rule]]\nname = \"device_hot\"\nclear_ratio = 1.5", "must not be above"),
        ("[[rule]]\nname = \"device_hot\"\nabove_ratio = nan", "must be above 0"),
        ("[[rule]]\nname = \"memory_leak\"\nwindow_seconds = 1", "at least 60"),
        ("[[rule]]\nname = \"idle_memory\"\n[[rule]]\nname = \"idle_memory\"", "two alert rules"),
    ];
    for (text, expected) in cases {
        let error = rules(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(rules("[[rule]]\nname = \"x\"\nabove = 1").is_err());
}

#[test]
fn a_webhook_that_cannot_be_is_refused_and_its_secrets_are_not_repeated() {
    let cases = [
        ("url = \"ftp://a/b\"", "must begin with http"),
        ("url = \"/b\"", "no host"),
        ("url = \"http://me:hunter2@a/\"", "authorization_file"),
        ("url = \"http://a b/\"", "no URL"),
        ("timeout_seconds = 0", "not from 1 to 60"),
        ("repeat_seconds = 5", "not from 60 to 604800"),
        ("secret = \"x\"", "unknown field"),
    ];
    for (text, expected) in cases {
        let error = toml::from_str::<AlertOptions>(&format!("[webhook]\n{text}")).unwrap_err();
        let message = error.message();
        assert!(message.contains(expected) && !message.contains("hunter2"), "{message}");
    }
    let read = |text: &str| toml::from_str::<AlertOptions>(text).unwrap().webhook;
    assert_eq!(read(""), WebhookOptions::default());
    assert!(read("[webhook]\nurl = \"https://[::1]:8443/x?y\"").url.is_some());
}

#[test]
fn the_documentation_has_each_rule_and_each_key() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/alerts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = |heading: &str| {
        let table = page.split(&format!("\n| {heading} |")).nth(1).unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().replace('`', "")));
        cells.map(Iterator::collect).collect::<Vec<Vec<String>>>()
    };
    let reported: Vec<_> =
        rows("rule").iter().map(|row| (row[1].clone(), row[2].clone())).collect();
    let rule = |rule: Rule| (rule.name, rule.severity.name().to_owned());
    // Those of health are in a table of their own (`health.md`).
    let own = Rule::defaults().into_iter();
    let own = own.filter(|rule| !matches!(rule.condition, Condition::Health { .. }));
    assert_eq!(reported, own.map(rule).collect::<Vec<_>>());
    let names = |heading| rows(heading).into_iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    let fields = |of: Vec<ConfigurationKey>| of.into_iter().map(|key| key.path).collect::<Vec<_>>();
    assert_eq!(names("key of `[[alerts.rule]]`"), fields(keys_of::<RuleText>()));
    assert_eq!(names("key of `[alerts.webhook]`"), fields(keys_of::<WebhookOptions>()));
    for row in rows("key of `[[alerts.rule]]`") {
        let having = Rule::defaults().into_iter().map(|rule| rule.condition);
        let having = having.filter(|one| one.fields().contains(&row[1].as_str()));
        let expected = having.map(|one| one.name()).collect::<Vec<_>>().join(", ");
        assert_eq!(row[2], if expected.is_empty() { "all".to_owned() } else { expected });
    }
    let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let options: toml::Table = toml::from_str(example).unwrap();
    let options: AlertOptions = options["alerts"].clone().try_into().unwrap();
    // It switches one off and adds one.
    assert_eq!(options.rules().unwrap().len(), Rule::defaults().len());
}

/// A machine at this second on which a rule's condition holds.
fn holding(condition: &Condition, second: u64) -> Snapshot {
    let faulty = |kind| {
        let mut seen = share(10);
        let detail = "it stands still".to_owned();
        seen.devices[0].faults.push(Fault::new(kind, Timestamp(1), detail));
        seen
    };
    match condition {
        Condition::Capacity { .. } => share(96),
        Condition::Leak { .. } => {
            let live = (1024 + second) * MIB;
            snapshot(vec![device(live)], vec![process(9, live, second)])
        }
        Condition::IdleMemory { .. } => {
            snapshot(vec![device(MIB)], vec![process(9, 2048 * MIB, 1)])
        }
        Condition::DeadMemory { .. } | Condition::Temperature { .. } | Condition::SourceDown => {
            troubled()
        }
        Condition::Health { fault } if fault.rule().about == RuleSubject::Device => faulty(*fault),
        Condition::Health { fault } => {
            let detail = "it is broken".to_owned();
            let fault = Fault { part: "x".to_owned(), ..Fault::new(*fault, Timestamp(1), detail) };
            Snapshot { faults: vec![fault], ..share(10) }
        }
    }
}

#[test]
fn each_rule_that_comes_with_the_program_fires() {
    for rule in Rule::defaults() {
        let mut engine = Engine::new(vec![rule.clone()]);
        let mut seconds = (0..7200).step_by(5);
        let fires = |second| {
            words(&engine.step(second * SECOND, &holding(&rule.condition, second))) == ["fired"]
        };
        assert!(seconds.any(fires), "{}", rule.name);
    }
}
