//! What is made to go wrong, and by which metric a monitoring system sees each.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Resource, Rlimit, getrlimit};
use telltale_emulator::Fault as ChipFault;
use telltale_harness::wait_until;

use crate::chaos::endpoints::{BadEndpoint, Manners};
use crate::chaos::fixture::Fixture;
use crate::chaos::service::Metrics;
use crate::chaos::workload::{TIMEOUT, Workload};

/// How a fault shows in its metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shows {
    /// The counter grows.
    Grows,
    /// The gauge falls, or its series goes.
    Falls,
    /// The gauge is at least this.
    AtLeast(f64),
}

/// Something that goes wrong.
pub(crate) struct Fault {
    /// What it is.
    pub(crate) name: &'static str,
    /// The metric that shows it, and the labels of its series.
    pub(crate) metric: &'static str,
    pub(crate) labels: &'static [(&'static str, &'static str)],
    /// How.
    pub(crate) shows: Shows,
    inject: fn(&mut Fixture) -> Injected,
}

/// A fault that is there.
pub(crate) struct Injected {
    /// What the snapshot's errors name, where the fault is of something that has a name.
    pub(crate) subject: Option<String>,
    /// Processes that stand still, whose values must be right all the same.
    pub(crate) at_rest: Vec<u32>,
    undo: Box<dyn FnOnce(&mut Fixture)>,
}

const UP_LEDGERS: (&str, &[(&str, &str)]) =
    ("telltale_source_errors_total", &[("source", "ledgers")]);
const UP_ENDPOINTS: (&str, &[(&str, &str)]) =
    ("telltale_source_errors_total", &[("source", "endpoints")]);
const UP_CHIPS: (&str, &[(&str, &str)]) =
    ("telltale_source_errors_total", &[("source", "tenstorrent")]);
const HISTORY: (&str, &[(&str, &str)]) = ("telltale_history_failures_total", &[]);
const HISTORY_UP: (&str, &[(&str, &str)]) = ("telltale_history_up", &[]);
const DEVICES: (&str, &[(&str, &str)]) = ("telltale_device_up", &[]);
const DEAD: (&str, &[(&str, &str)]) = ("telltale_processes", &[("state", "dead")]);
const RELOADS: (&str, &[(&str, &str)]) =
    ("telltale_configuration_reloads_total", &[("outcome", "refused")]);

/// All of them.
#[rustfmt::skip]
pub(crate) fn all() -> Vec<Fault> {
    vec![
        fault("an endpoint that says nothing", UP_ENDPOINTS, Shows::Grows, |fixture| endpoint(fixture, Manners::Silent)),
        fault("an endpoint that dribbles", UP_ENDPOINTS, Shows::Grows, |fixture| endpoint(fixture, Manners::Dribbling)),
        fault("an endpoint that talks nonsense", UP_ENDPOINTS, Shows::Grows, |fixture| endpoint(fixture, Manners::Nonsense)),
        fault("an endpoint that never ends", UP_ENDPOINTS, Shows::Grows, |fixture| endpoint(fixture, Manners::Endless)),
        fault("a process that is stopped", UP_ENDPOINTS, Shows::Grows, stopped),
        fault("a process that was killed", DEAD, Shows::AtLeast(1.0), killed),
        fault("a ledger that is truncated", UP_LEDGERS, Shows::Grows, |fixture| damaged(fixture, truncate)),
        fault("a ledger that is overwritten", UP_LEDGERS, Shows::Grows, |fixture| damaged(fixture, overwrite)),
        fault("ledgers that exchange their names", UP_LEDGERS, Shows::Grows, exchanged),
        fault("a ledger that is a copy of another's", UP_LEDGERS, Shows::Grows, copied),
        fault("a device that vanishes", DEVICES, Shows::Falls, vanished),
        fault("a sensor that hangs", UP_CHIPS, Shows::Grows, |fixture| chip(fixture, "hang", "temp1_input")),
        fault("a sensor that fails", UP_CHIPS, Shows::Grows, |fixture| chip(fixture, "garbage", "tt_aiclk")),
        fault("a disk that is full", HISTORY, Shows::Grows, full),
        fault("a disk that is full, now", HISTORY_UP, Shows::Falls, full),
        fault("files that may not grow", HISTORY, Shows::Grows, limited),
        fault("a configuration that makes no sense", RELOADS, Shows::Grows, misconfigured),
    ]
}

fn fault(
    name: &'static str,
    (metric, labels): (&'static str, &'static [(&'static str, &'static str)]),
    shows: Shows,
    inject: fn(&mut Fixture) -> Injected,
) -> Fault {
    Fault { name, metric, labels, shows, inject }
}

// === impl Fault ===

impl Fault {
    /// What its metric says.
    pub(crate) fn value(&self, metrics: &Metrics) -> f64 {
        metrics.sum(self.metric, self.labels).unwrap_or(0.0)
    }

    /// Whether its metric reports it, from what it was before to what it is.
    pub(crate) fn is_shown(&self, before: f64, now: f64) -> bool {
        match self.shows {
            Shows::Grows => now > before,
            Shows::Falls => now < before,
            Shows::AtLeast(least) => now >= least,
        }
    }

    /// Makes it so.
    pub(crate) fn inject(&self, fixture: &mut Fixture) -> Injected {
        (self.inject)(fixture)
    }
}

// === impl Injected ===

impl Injected {
    fn new(subject: Option<String>, undo: impl FnOnce(&mut Fixture) + 'static) -> Self {
        Self { subject, at_rest: Vec::new(), undo: Box::new(undo) }
    }

    fn with_at_rest(self, pids: &[u32]) -> Self {
        Self { at_rest: pids.to_vec(), ..self }
    }

    /// Makes it good again.
    pub(crate) fn undo(self, fixture: &mut Fixture) {
        (self.undo)(fixture);
    }
}

fn endpoint(fixture: &mut Fixture, manners: Manners) -> Injected {
    let bad = BadEndpoint::open(&fixture.directory(), manners);
    Injected::new(Some(bad.name()), move |_| drop(bad))
}

fn stopped(fixture: &mut Fixture) -> Injected {
    let (slot, mut workload) = at_rest(fixture);
    workload.stop();
    let pid = workload.pid();
    let subject = format!("metrics_{pid}.sock");
    let injected = Injected::new(Some(subject), move |fixture| {
        workload.go_on_if_stopped();
        workload.go_on();
        fixture.put(slot, workload);
    });
    injected.with_at_rest(&[pid])
}

fn killed(fixture: &mut Fixture) -> Injected {
    let (slot, workload) = fixture.take();
    fixture.killed = Some(workload.pid());
    workload.kill();
    Injected::new(None, move |fixture| {
        let workload = fixture.start(slot);
        fixture.put(slot, workload);
    })
}

/// Damages the ledger of a process that is stopped, so that it is not hurt itself: it has the file
/// mapped, and only its own user may write there. It is killed then.
fn damaged(fixture: &mut Fixture, damage: fn(&mut Fixture, &Path)) -> Injected {
    let (slot, mut workload) = fixture.take();
    workload.stop();
    let ledger = ledger(fixture, &workload);
    damage(fixture, &ledger);
    let subject = ledger.file_name().unwrap().to_str().unwrap().to_owned();
    Injected::new(Some(subject), move |fixture| {
        workload.kill();
        fs::remove_file(ledger).unwrap();
        let workload = fixture.start(slot);
        fixture.put(slot, workload);
    })
}

fn truncate(fixture: &mut Fixture, ledger: &Path) {
    let file = OpenOptions::new().write(true).open(ledger).unwrap();
    file.set_len(fixture.random.below(4096)).unwrap();
}

fn overwrite(fixture: &mut Fixture, ledger: &Path) {
    let file = OpenOptions::new().write(true).open(ledger).unwrap();
    let length = file.metadata().unwrap().len();
    let noise: Vec<u8> = (0..length).map(|_| fixture.random.below(256) as u8).collect();
    file.write_all_at(&noise, 0).unwrap();
}

/// Neither is believed then, and both processes are asked themselves.
fn exchanged(fixture: &mut Fixture) -> Injected {
    let ((one_slot, mut one), (other_slot, mut other)) = (at_rest(fixture), at_rest(fixture));
    let (first, second) = (ledger(fixture, &one), ledger(fixture, &other));
    let exchange = |first: &Path, second: &Path| {
        renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE).unwrap();
    };
    exchange(&first, &second);
    let pids = [one.pid(), other.pid()];
    let subject = first.file_name().unwrap().to_str().unwrap().to_owned();
    let injected = Injected::new(Some(subject), move |fixture| {
        exchange(&first, &second);
        assert!(one.go_on() && other.go_on());
        fixture.put(one_slot, one);
        fixture.put(other_slot, other);
    });
    injected.with_at_rest(&pids)
}

/// What a user can do: the ledger of one process is a copy of another's. The copy's process is asked
/// itself, and whose copy it is goes on being read from its own.
fn copied(fixture: &mut Fixture) -> Injected {
    let ((one_slot, mut one), (other_slot, other)) = (at_rest(fixture), at_rest(fixture));
    let (from, to) = (ledger(fixture, &one), ledger(fixture, &other));
    let copy = fixture.root.parent().unwrap().join("copy");
    fs::copy(from, &copy).unwrap();
    fs::rename(copy, &to).unwrap();
    // From here on the copy is old.
    one.acts();
    let subject = to.file_name().unwrap().to_str().unwrap().to_owned();
    let pids = [one.pid(), other.pid()];
    let injected = Injected::new(Some(subject), move |fixture| {
        other.kill();
        fs::remove_file(to).unwrap();
        assert!(one.go_on());
        fixture.put(one_slot, one);
        let other = fixture.start(other_slot);
        fixture.put(other_slot, other);
    });
    injected.with_at_rest(&pids)
}

/// A workload out of its place, which stands still.
fn at_rest(fixture: &mut Fixture) -> (usize, Workload) {
    let (slot, mut workload) = fixture.take();
    assert!(workload.pause(), "it has begun, and nobody ended it");
    (slot, workload)
}

fn ledger(fixture: &Fixture, workload: &Workload) -> PathBuf {
    let begin = format!("ledger_{}_", workload.pid());
    let entries = fs::read_dir(fixture.directory()).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&begin))
    };
    entries.into_iter().find(is_it).expect("a workload that has begun has a ledger")
}

fn vanished(fixture: &mut Fixture) -> Injected {
    let ordinal = fixture.ordinal();
    let fault = ChipFault::Vanish { ordinal, returns_as: None };
    fixture.emulator.inject(fault.clone()).unwrap();
    Injected::new(None, move |fixture| {
        for slot in 0..fixture.slots.len() {
            let Some(workload) = &mut fixture.slots[slot] else { continue };
            if workload.ordinal == ordinal {
                workload.go_on_if_stopped();
                workload.wait_for_end();
            }
        }
        fixture.emulator.clear(&fault).unwrap();
        for slot in 0..fixture.slots.len() {
            if fixture.slots[slot].as_ref().is_some_and(|one| one.ordinal == ordinal) {
                fixture.slots[slot] = Some(fixture.start(slot));
            }
        }
    })
}

fn chip(fixture: &mut Fixture, what: &str, attribute: &str) -> Injected {
    let fault: ChipFault = format!("{what}:{}:{attribute}", fixture.ordinal()).parse().unwrap();
    fixture.emulator.inject(fault.clone()).unwrap();
    let subject = Some(attribute.to_owned());
    Injected::new(subject, move |fixture| fixture.emulator.clear(&fault).unwrap())
}

/// Fills the disk that the history is on; where there is no small one, files may not grow instead.
fn full(fixture: &mut Fixture) -> Injected {
    if !fixture.has_small_disk {
        return limited(fixture);
    }
    let filler = fixture.state.join("filler");
    // Written until there is no room, which is its error.
    let _ = fs::write(&filler, vec![1; 64 << 20]);
    Injected::new(None, move |fixture| {
        fs::remove_file(filler).unwrap();
        history_recovers(fixture);
    })
}

fn limited(fixture: &mut Fixture) -> Injected {
    let before =
        fixture.service.limit_files(Rlimit { current: Some(0), ..getrlimit(Resource::Fsize) });
    Injected::new(None, move |fixture| {
        fixture.service.limit_files(before);
        history_recovers(fixture);
    })
}

/// No action is needed for it.
fn history_recovers(fixture: &Fixture) {
    wait_until("the history to be written again", TIMEOUT, || {
        fixture.service.metrics().sum("telltale_history_up", &[]) == Some(1.0)
    });
}

fn misconfigured(fixture: &mut Fixture) -> Injected {
    let directory = fixture.root.parent().unwrap().join(".config/telltale");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join("telltale.toml");
    fs::write(&file, "interval_seconds = \"soon\"\n").unwrap();
    fixture.service.reload();
    Injected::new(None, move |fixture| {
        fs::remove_file(file).unwrap();
        fixture.service.reload();
    })
}
