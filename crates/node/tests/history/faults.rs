//! What was wrong is kept: since when, until when, over restarts, and in files of other versions.

use std::sync::Arc;

use rusqlite::Connection;
use telltale_node::history::known_faults;
use telltale_schema::clock::{Clock as _, Timestamp};
use telltale_schema::health::{Evidence, Fault, FaultKind, HealthState};
use telltale_schema::history::{HistoryQuery, PastFault, Subjects};
use telltale_schema::reading::Reading;
use telltale_schema::snapshot::{Device, Snapshot};

use crate::history::machine::{Kept, SECOND, after, device, snapshot};

/// A chip that is well, or has this fault.
fn chip(fault: Option<&Fault>) -> Device {
    Device { faults: fault.cloned().into_iter().collect(), ..device(0, 0, Some(30.0)) }
}

fn tripped(since: Timestamp) -> Fault {
    let evidence = vec![Evidence { reading: String::from("trips"), value: 1.0, at: since }];
    Fault { evidence, ..Fault::new(FaultKind::ThermalTrip, since, String::from("too hot")) }
}

fn link_down(since: Timestamp) -> Fault {
    let part = String::from("eth0");
    Fault { part, ..Fault::new(FaultKind::NetworkLinkDown, since, String::from("no link")) }
}

impl Kept {
    /// Lets so many seconds pass with this fault of the chip and that of a part.
    fn faulty_for(&self, seconds: u64, of_chip: Option<&Fault>, of_part: Option<&Fault>) {
        for _ in 0..seconds {
            let now = self.clock.now();
            let faults = of_part.cloned().into_iter().collect();
            let seen = Snapshot { faults, ..snapshot(now, &[chip(of_chip)], &[]) };
            self.writer().offer(Arc::new(seen));
            self.count_offer();
            self.settle();
            self.clock.advance_ns(SECOND);
        }
    }

    /// All that was recorded, the newest first.
    fn faults(&self) -> Vec<PastFault> {
        let all = HistoryQuery::over(Timestamp(0), after(1_000_000));
        self.query(&HistoryQuery { subjects: Subjects::Faults, ..all }).faults
    }

    /// When each began and was over, in seconds, the newest first.
    fn spans(&self) -> Vec<(FaultKind, u64, Option<u64>)> {
        let seconds = |at: Timestamp| at.since_ns(after(0)) / SECOND;
        let span =
            |past: PastFault| (past.fault.kind, seconds(past.fault.since), past.until.map(seconds));
        self.faults().into_iter().map(span).collect()
    }

    fn then(&self, seconds: u64) -> Snapshot {
        self.reader().snapshot_at(after(seconds)).unwrap().snapshot
    }

    fn sql(&self, text: &str) {
        Connection::open(self.path()).unwrap().execute_batch(text).unwrap();
    }
}

#[test]
fn a_past_moment_has_the_faults_of_then_and_its_end_is_recorded() {
    let mut kept = Kept::new();
    kept.faulty_for(5, None, None);
    let (trip, down) = (tripped(after(5)), link_down(after(12)));
    kept.faulty_for(7, Some(&trip), None);
    kept.faulty_for(3, Some(&trip), Some(&down));
    kept.faulty_for(5, None, Some(&down));
    kept.stop();
    for (second, of_chip, of_part) in [
        (4, None, None),
        (5, Some(&trip), None),
        (14, Some(&trip), Some(&down)),
        (15, None, Some(&down)),
        (19, None, Some(&down)),
    ] {
        let then = kept.then(second);
        assert_eq!(then.devices[0].faults.first(), of_chip, "{second}");
        assert_eq!(then.faults.first(), of_part, "{second}");
        let state = if of_chip.is_some() { HealthState::Failed } else { HealthState::Ok };
        assert_eq!(then.devices[0].health().state, state, "{second}");
    }
    let device = Some(chip(None).id);
    let over = PastFault { device, fault: trip, until: Some(after(15)), last_seen: after(15) };
    let lasts = PastFault { device: None, fault: down, until: None, last_seen: after(19) };
    assert_eq!(kept.faults(), [lasts, over.clone()]);
    let span = HistoryQuery {
        subjects: Subjects::Faults,
        devices: vec![chip(None).id],
        ..HistoryQuery::over(after(3), after(9))
    };
    assert_eq!(kept.query(&span).faults, [over]);
    let before = HistoryQuery { from: after(0), to: after(4), ..span };
    assert_eq!(kept.query(&before).faults, []);
}

#[test]
fn a_clock_that_is_set_ends_a_row_and_begins_another() {
    // Set back, and forward.
    for set_to in [1_000, 9_000] {
        let mut kept = Kept::new();
        kept.clock.set_wall(after(5_000));
        let trip = tripped(after(5_000));
        kept.faulty_for(10, Some(&trip), None);
        kept.clock.set_wall(after(set_to));
        kept.faulty_for(10, Some(&trip), None);
        kept.faulty_for(2, None, None);
        kept.stop();
        for second in [5_005, set_to + 5] {
            assert_eq!(kept.then(second).devices[0].faults[0].kind, trip.kind, "{second}");
        }
        let mut spans = kept.spans();
        spans.sort_by_key(|span| span.1);
        let mut expected = [(5_000, 5_009), (set_to, set_to + 10)];
        expected.sort_unstable();
        assert_eq!(spans, expected.map(|(since, until)| (trip.kind, since, Some(until))));
    }
}

#[test]
fn a_device_that_has_no_values_of_then_has_its_fault() {
    let mut kept = Kept::new();
    let trip = tripped(after(5));
    kept.faulty_for(5, None, None);
    kept.faulty_for(5, Some(&trip), None);
    kept.stop();
    // As where the series of that time are of a coarser block, or were never read.
    kept.sql("UPDATE fault SET device = 77; INSERT INTO device SELECT 77, 'other', 'other', identity, facts, firmware, first_seen_ms, last_seen_ms, mark FROM device LIMIT 1");
    let then = kept.then(8);
    let other = then.devices.iter().find(|device| device.id == "other").unwrap();
    assert_eq!((other.faults.len(), other.health().state), (1, HealthState::Failed));
}

#[test]
fn what_lasted_when_a_service_ended_goes_on_or_ended_then() {
    let mut kept = Kept::new();
    let (trip, down) = (tripped(after(0)), link_down(after(0)));
    kept.faulty_for(5, Some(&trip), Some(&down));
    kept.stop();
    kept.clock.advance_ns(60 * SECOND);
    kept.start();
    // The one was learned and goes on; the other is found at another moment, and is another one.
    kept.faulty_for(2, Some(&trip), Some(&link_down(after(65))));
    kept.faulty_for(2, None, None);
    kept.stop();
    let down = FaultKind::NetworkLinkDown;
    assert_eq!(
        kept.spans(),
        [(down, 65, Some(67)), (down, 0, Some(4)), (FaultKind::ThermalTrip, 0, Some(67))]
    );
}

#[test]
fn each_event_is_one_of_its_own_and_a_text_that_changes_is_not() {
    let mut kept = Kept::new();
    let reset = |since| Fault::new(FaultKind::WasReset, since, String::from("was reset"));
    kept.faulty_for(3, Some(&reset(after(0))), None);
    kept.faulty_for(3, Some(&reset(after(3))), None);
    for volts in 0..4 {
        let detail = format!("{volts} V");
        kept.faulty_for(1, Some(&Fault { detail, ..tripped(after(6)) }), None);
    }
    kept.stop();
    let (was_reset, trip) = (FaultKind::WasReset, FaultKind::ThermalTrip);
    let spans = [(trip, 6, None), (was_reset, 3, Some(6)), (was_reset, 0, Some(3))];
    assert_eq!(kept.spans(), spans);
    assert_eq!(kept.then(1).devices[0].health().state, HealthState::Ok);
}

#[test]
fn the_next_service_learns_what_lasted_within_the_hour_and_this_boot() {
    let mut kept = Kept::new();
    let shown = |value, at| Evidence { reading: String::from("heartbeat_total"), value, at };
    let stopped = Fault {
        evidence: vec![shown(77.0, after(0)), shown(77.0, after(3))],
        ..Fault::new(FaultKind::HeartbeatStopped, after(0), String::from("it stands still"))
    };
    let down = link_down(after(0));
    kept.faulty_for(4, Some(&stopped), Some(&down));
    kept.stop();
    let known = known_faults(kept.scratch.path(), after(600)).unwrap();
    assert_eq!(known.devices[0].identity, chip(None).identity);
    assert_eq!(known.devices[0].faults, [stopped]);
    assert_eq!(known.devices[0].telemetry.heartbeat_total, Reading::new(77, after(3)));
    assert_eq!(known.faults, [down]);
    assert_eq!(known_faults(kept.scratch.path(), after(4_000)), None);
    // By a restart a lower speed is accepted.
    kept.sql("UPDATE fault SET kind = 'network_speed_low' WHERE part = 'eth0'");
    assert_eq!(known_faults(kept.scratch.path(), after(600)).unwrap().faults, []);
    kept.sql("UPDATE machine SET boot_id = '00000000-0000-0000-0000-000000000001'");
    assert_eq!(known_faults(kept.scratch.path(), after(600)), None);
}

#[test]
fn a_moment_of_a_version_that_kept_no_faults_is_not_called_well() {
    let mut kept = Kept::new();
    kept.faulty_for(5, None, None);
    kept.stop();
    kept.sql("DROP TABLE fault; DROP TABLE faults_kept; PRAGMA user_version = 3");
    assert_eq!(kept.then(3).devices[0].health().state, HealthState::Unknown);
    assert_eq!(kept.then(3).host_health().state, HealthState::Unknown);
    assert_eq!(kept.faults(), []);
    assert_eq!(known_faults(kept.scratch.path(), after(6)), None);
    kept.start();
    kept.faulty_for(5, None, None);
    kept.stop();
    assert_eq!(kept.then(3).devices[0].health().state, HealthState::Unknown);
    assert_eq!(kept.then(8).devices[0].health().state, HealthState::Ok);
}

#[test]
fn rows_that_cannot_be_understood_are_passed_over() {
    let mut kept = Kept::new();
    kept.faulty_for(3, Some(&tripped(after(0))), None);
    kept.stop();
    kept.sql(
        "INSERT INTO fault VALUES (7, 1, '', 'of_next_year', 1, NULL, '', '[]', 0); \
         INSERT INTO fault VALUES (8, 1, '', 'vanished', 1, NULL, '', '{]', 0); \
         INSERT INTO fault VALUES (9, 1, '', 'vanished', 'soon', NULL, x'00', '[]', 0); \
         INSERT INTO fault VALUES (10, 99, '', 'vanished', 1, NULL, '', '[]', 0)",
    );
    assert_eq!(kept.then(1).devices[0].faults, [tripped(after(0))]);
    let known = known_faults(kept.scratch.path(), after(6)).unwrap();
    assert_eq!((known.devices.len(), known.devices[0].faults.len()), (1, 1));
    // They last no longer once a service writes there.
    kept.start();
    kept.faulty_for(2, Some(&tripped(after(0))), None);
    kept.stop();
    let connection = Connection::open(kept.path()).unwrap();
    let count = "SELECT count(*) FROM fault WHERE until_ms IS NULL";
    let lasting: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(lasting, 1);
}
