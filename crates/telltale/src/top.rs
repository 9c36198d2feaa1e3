//! `telltale top`, and `telltale smi -w` on a terminal: drives the full-screen view. What is on the
//! screen is decided in `telltale_smi::screen`; here are the terminal, the clock, the signals and
//! the threads that bring events and snapshots.

mod acting;
mod alerts;
mod cluster;
mod filling;
mod keeping;
mod keyboard;
mod lookup;
mod recorded;
mod source;
mod stage;
mod staged;
mod tail;
mod texts;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ratatui_crossterm::crossterm::event as terminal_event;
use signal_hook::SigId;
use signal_hook::consts::signal::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;
use telltale_collector::EndpointUse;
use telltale_collector::clock::SystemClock;
use telltale_query::Query;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::fleet::Fleet;
use telltale_schema::history::HistoryAnswer;
use telltale_schema::snapshot::Snapshot;
use telltale_schema::text::with_causes;
use telltale_smi::screen::{
    Action, Agent, Alerts, Availability, GraphValue, InputEvent, JobView, ProcessTarget,
    ProcessTexts, Recorded, Screen, Tail, Terms, Theme, ViewSettings,
};

use crate::arguments::{
    HardwareArguments, HistoryPlace, HostsArguments, LocationArguments, ScreenArguments,
    SmiArguments, TopArguments,
};
use crate::exit::{Failure, Status};
use crate::hosts;
use crate::output::StandardOutput;
use crate::smi::{self, OutputFormat, SnapshotView};
use lookup::Lookup;
use recorded::Player;
use source::ViewSource;
use stage::Stage;
use staged::Ending;
pub(crate) use staged::{StagedView, fits};
use telltale_sources::{Inquiry, Recording};
use texts::TextReader;

/// What waits for the view at most; a sender with more waits.
const MAX_WAITING: usize = 64;
/// How long the first frame waits for the first snapshot.
const FIRST_SNAPSHOT: Duration = Duration::from_millis(250);
/// How often it is looked whether a snapshot is late.
const TICK: Duration = Duration::from_secs(1);

/// What wakes the view.
enum Wake {
    Snapshot(Arc<Snapshot>),
    Fleet(Arc<Fleet>),
    /// A snapshot of a recording, and where in it that is.
    Recorded(Arc<Snapshot>, Recorded),
    /// The machine at a moment that was asked for.
    Past(Timestamp, Arc<Snapshot>),
    /// Why no past moment can be shown.
    NoPast(String),
    /// What the rules of the service find, or why that is not known.
    Alerts(Availability<Alerts>),
    /// The job, and the agents of this machine.
    Cluster(Box<Availability<JobView>>, Availability<Vec<Agent>>),
    /// The end of a capture of debug events.
    Tail(Availability<Tail>),
    /// What a service recorded before the view was opened.
    History(Box<HistoryAnswer>),
    /// What a process was started with.
    Texts(ProcessTarget, ProcessTexts),
    /// Where snapshots come from, from now on.
    Source(String),
    /// Something to be said.
    Words(String),
    Event(InputEvent),
    /// The terminal has another size.
    Resized,
    Signal(i32),
    /// The terminal is gone.
    Gone,
    /// No snapshot comes any more, and why.
    SourceEnded(String),
}

impl Wake {
    /// Whether it comes beside snapshots, for which the first frame does not wait.
    fn is_beside(&self) -> bool {
        matches!(
            self,
            Self::Source(_)
                | Self::Words(_)
                | Self::Alerts(_)
                | Self::Cluster(..)
                | Self::Tail(_)
                | Self::History(_)
        )
    }
}

/// What is shown, and of what.
struct Opening<'a> {
    place: &'a LocationArguments,
    period: Duration,
    filter: Option<&'a Query>,
    screen: &'a ScreenArguments,
    /// Several machines instead of one place.
    hosts: Option<&'a HostsArguments>,
    /// Where the past is.
    history: &'a HistoryPlace,
    /// Which sources are left alone.
    hardware: &'a HardwareArguments,
    /// A recording in the place of the present.
    replay: Option<&'a Path>,
    /// The demo whose machine it is, in the place of this host.
    staged: Option<&'a StagedView>,
}

/// Runs the command.
pub(crate) fn run(arguments: &TopArguments) -> Result<Status, Failure> {
    let TopArguments { place, watch, filter, hosts, history, hardware, screen, replay } = arguments;
    let (filter, replay) = (filter.as_ref(), replay.as_deref());
    let hosts = (!hosts.items.is_empty()).then_some(hosts);
    let period = *watch;
    let staged = None;
    let opening =
        Opening { place, period, filter, screen, hosts, history, hardware, replay, staged };
    opening.run_until(&StandardOutput::detect(), None).map(|()| Status::Fine)
}

/// Whether `smi -w` is shown full-screen: tables, where the terminal can be painted on.
pub(crate) fn shows(arguments: &SmiArguments) -> bool {
    let SmiArguments { watch, json, csv, details, plain, at, clean, with_host, .. } = arguments;
    let has_rows = arguments.devices.is_some() || arguments.sort.is_some() || arguments.help_fields;
    let is_table =
        !(*json || *csv || *details || *plain || has_rows || arguments.columns().is_some());
    // The view has no place for what was removed, and may show a service's look instead of ours.
    let is_ours = *clean || *with_host;
    watch.is_some()
        && at.is_none()
        && is_table
        && !is_ours
        && is_possible(&StandardOutput::detect())
}

/// Runs `smi -w` full-screen.
pub(crate) fn watch(arguments: &SmiArguments, period: Duration) -> Result<Status, Failure> {
    let SmiArguments { place, filter, screen, hosts, history, hardware, replay, .. } = arguments;
    let hosts = (!hosts.items.is_empty()).then_some(hosts);
    let (filter, replay) = (filter.as_ref(), replay.as_deref());
    let staged = None;
    let opening =
        Opening { place, period, filter, screen, hosts, history, hardware, replay, staged };
    opening.run_until(&StandardOutput::detect(), None).map(|()| Status::Fine)
}

impl Opening<'_> {
    /// Shows the view until it is ended, by this too.
    fn run_until(
        &self,
        output: &StandardOutput,
        ending: Option<Ending<'_>>,
    ) -> Result<(), Failure> {
        if !output.is_repainted() {
            let words = "the full-screen view needs a terminal that can be painted on; `telltale \
                         smi -w --plain` prints tables anywhere";
            return Err(Failure::Message(String::from(words)));
        }
        let (wakes, waiting) = sync_channel(MAX_WAITING);
        let file = keeping::path().filter(|_| self.staged.is_none());
        let read = file.as_deref().map_or_else(|| Ok(ViewSettings::default()), keeping::read);
        let kept = match (&read, self.staged) {
            (Ok(kept), None) => kept.clone(),
            (_, staged) => staged.map_or_else(ViewSettings::default, StagedView::settings),
        };
        let player = self.start_source(kept.shown_metric, wakes.clone())?;
        let mut settings = kept.clone();
        settings.theme = self.theme(output, kept.theme);
        let begun = settings.theme;
        let mut screen = Screen::new(settings, self.terms(output), self.filter.cloned());
        match (&read, self.staged) {
            (Err(error), _) => screen.tell(with_causes(error)),
            (Ok(_), Some(staged)) => screen.tell(&*staged.welcome),
            (Ok(_), None) => {}
        }
        let lookup = Lookup::start(self.history.of(self.place), wakes.clone())
            .map_err(|error| Failure::because(&error))?;
        self.start_beside(&wakes)?;
        let listening = Listening::begin(&wakes).map_err(|error| Failure::because(&error))?;
        let mut stage = Stage::enter().map_err(|error| {
            Failure::Message(format!("the terminal cannot be taken over: {error}"))
        })?;
        let root = self.place.root.clone().unwrap_or_else(|| PathBuf::from("/"));
        let texts = TextReader::new(root, wakes.clone());
        read_keys(wakes).map_err(|error| Failure::because(&error))?;
        let (screen_now, stage_now) = (&mut screen, &mut stage);
        let outcome = Driver {
            screen: screen_now,
            stage: stage_now,
            waiting: &waiting,
            lookup: &lookup,
            texts: &texts,
            player: player.as_deref(),
            ending,
        }
        .run();
        drop(stage);
        drop(listening);
        outcome?;
        let mut settings = screen.settings().clone();
        if settings.theme == begun {
            // What held for this time alone is not kept.
            settings.theme = kept.theme;
        }
        if let (Some(path), true, true) = (&file, read.is_ok(), settings != kept) {
            keeping::write(path, &settings).map_err(|error| {
                Failure::Message(format!(
                    "the settings are not kept in {}: {error}",
                    path.display()
                ))
            })?;
        }
        Ok(())
    }

    /// Starts what tells something beside snapshots. Of a recording that is what it has.
    fn start_beside(&self, wakes: &SyncSender<Wake>) -> Result<(), Failure> {
        if self.staged.is_some() {
            // The view is not gone before it has begun.
            StagedView::beside().into_iter().for_each(|wake| drop(wakes.send(wake)));
            return Ok(());
        }
        if self.replay.is_none() {
            cluster::start(self.screen, self.period, wakes.clone())?;
            let tail = tail::start(self.screen.events.as_deref(), wakes.clone());
            return tail.map_err(|error| Failure::because(&error));
        }
        let why = |what: &str| format!("No {what}: a recording has none.");
        for wake in [
            Wake::Alerts(Availability::Absent(why("alerts"))),
            Wake::Cluster(
                Box::new(Availability::Absent(why("job"))),
                Availability::Known(Vec::new()),
            ),
            Wake::Tail(Availability::Absent(why("capture"))),
        ] {
            // The view is not gone before it has begun.
            let _ = wakes.send(wake);
        }
        Ok(())
    }

    /// Starts what brings snapshots; gives who plays them, where they are recorded.
    fn start_source(
        &self,
        shown: GraphValue,
        wakes: SyncSender<Wake>,
    ) -> Result<Option<Arc<Player>>, Failure> {
        if let Some(path) = self.replay {
            let recording = Recording::open(path).map_err(|error| Failure::because(&error))?;
            let source = Wake::Source(path.display().to_string());
            // The view is not gone before it has begun.
            let _ = wakes.send(source);
            let player = Player::start(recording, self.period, wakes);
            return player.map(Some).map_err(|error| Failure::because(&error));
        }
        if let Some(hosts) = self.hosts {
            let (addresses, mut terms) = hosts::prepare(hosts, Some(self.period), None)?;
            terms.usage = true;
            let inquiry = Inquiry::start(addresses, terms);
            let inquiry = inquiry.map_err(|error| Failure::because(&error))?;
            let started = source::start_fleet(inquiry, self.period, wakes);
            return started.map(|()| None).map_err(|error| Failure::because(&error));
        }
        let form = OutputFormat::Tables { details: false };
        let view = SnapshotView::whole(form);
        let mut options = self.hardware.limit(smi::configured(self.place, view));
        // A filter, a column and the details may ask for what endpoints alone tell.
        options.endpoints = EndpointUse::Always;
        options.usage = true;
        let source = ViewSource { place: self.place.clone(), options, period: self.period, shown };
        source.start(wakes).map(|()| None).map_err(|error| Failure::because(&error))
    }

    fn theme(&self, output: &StandardOutput, kept: Theme) -> Theme {
        let named = self.screen.theme.as_deref().and_then(Theme::named);
        let colour = output.style().color;
        named.unwrap_or(if colour { kept } else { Theme::Monochrome })
    }

    fn terms(&self, output: &StandardOutput) -> Terms {
        let host = match self.staged {
            Some(staged) => staged.host.to_owned(),
            None => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        };
        Terms {
            host: if host.is_empty() { String::from("this machine") } else { host },
            readonly: self.screen.readonly,
            unicode: output.style().unicode,
            period: self.period,
        }
    }
}

/// Whether standard input and output are both of a terminal that can be painted on.
pub(crate) fn is_possible(output: &StandardOutput) -> bool {
    output.is_repainted() && io::stdin().is_terminal()
}

/// Passes on signals. A second one that asks for the end ends the process, whatever it waits for, until this is
/// dropped.
struct Listening(Vec<SigId>);

impl Listening {
    fn begin(wakes: &SyncSender<Wake>) -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let mut at_once = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the first handler acts on the flag that an earlier signal has set.
            at_once.push(register_conditional_default(signal, Arc::clone(&asked))?);
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT])?;
        let wakes = wakes.clone();
        thread::Builder::new().name(String::from("signals")).spawn(move || {
            for signal in signals.forever() {
                if wakes.send(Wake::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self(at_once))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        for action in self.0.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }
}

/// Passes on what the terminal sends.
fn read_keys(wakes: SyncSender<Wake>) -> io::Result<()> {
    thread::Builder::new().name(String::from("keys")).spawn(move || {
        loop {
            let wake = match terminal_event::read() {
                Ok(terminal_event::Event::Resize(..)) => Wake::Resized,
                Ok(sent) => match keyboard::event(&sent) {
                    Some(event) => Wake::Event(event),
                    None => continue,
                },
                Err(_) => Wake::Gone,
            };
            let gone = matches!(wake, Wake::Gone);
            if wakes.send(wake).is_err() || gone {
                return;
            }
        }
    })?;
    Ok(())
}

/// The view while it runs.
struct Driver<'a, 'ending> {
    screen: &'a mut Screen,
    stage: &'a mut Stage,
    waiting: &'a Receiver<Wake>,
    lookup: &'a Lookup,
    texts: &'a TextReader,
    /// Who plays the recording, if it is one.
    player: Option<&'a Player>,
    ending: Option<Ending<'ending>>,
}

/// What a wake leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeAction {
    Paint,
    End,
}

impl Driver<'_, '_> {
    fn run(mut self) -> Result<(), Failure> {
        let first = Instant::now() + FIRST_SNAPSHOT;
        let mut seen = false;
        let mut paint = true;
        loop {
            let waits_for_first = !seen && Instant::now() < first;
            if paint && !waits_for_first {
                let screen = &mut *self.screen;
                if self.stage.draw(|frame| screen.render(frame)).is_err() {
                    // There is no terminal any more.
                    return Ok(());
                }
                paint = false;
            }
            if self.is_over()? {
                return Ok(());
            }
            let most = if waits_for_first { FIRST_SNAPSHOT / 10 } else { self.tick() };
            let mut wake = match self.waiting.recv_timeout(most) {
                Ok(wake) => Some(wake),
                Err(RecvTimeoutError::Timeout) => {
                    paint |= self.screen.tick(SystemClock.now());
                    None
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // All that waits is taken before the next frame.
            while let Some(one) = wake {
                seen |= !one.is_beside();
                match self.wake(one)? {
                    WakeAction::Paint => paint = true,
                    WakeAction::End => return Ok(()),
                }
                wake = self.waiting.try_recv().ok();
            }
        }
    }

    /// Whether something else than a key or a signal ends it.
    fn is_over(&mut self) -> Result<bool, Failure> {
        let Some(ending) = &mut self.ending else { return Ok(false) };
        Ok((ending.is_over)()? || ending.until.is_some_and(|until| Instant::now() >= until))
    }

    /// How long it waits for what comes next.
    fn tick(&self) -> Duration {
        let until = self.ending.as_ref().and_then(|ending| ending.until);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(TICK, |left| left.min(TICK))
    }

    fn wake(&mut self, wake: Wake) -> Result<WakeAction, Failure> {
        match wake {
            Wake::Snapshot(snapshot) => self.screen.update(snapshot, SystemClock.now()),
            Wake::Recorded(snapshot, recorded) => self.screen.update_recorded(snapshot, recorded),
            Wake::Fleet(fleet) => self.screen.update_fleet(fleet, SystemClock.now()),
            Wake::Past(moment, snapshot) => self.screen.show_past(moment, snapshot),
            Wake::NoPast(why) => self.screen.refuse_past(why),
            Wake::Alerts(alerts) => self.screen.set_alerts(alerts),
            Wake::Cluster(job, agents) => self.screen.set_cluster(*job, agents),
            Wake::Tail(tail) => self.screen.set_tail(tail),
            Wake::History(answer) => self.screen.fill(&answer),
            Wake::Source(words) => self.screen.set_source(words),
            Wake::Texts(of, found) => self.screen.set_texts(of, found),
            Wake::Words(words) => self.screen.tell(words),
            Wake::Resized => {}
            Wake::Event(event) => {
                return Ok(match self.screen.event(event) {
                    None => WakeAction::Paint,
                    Some(Action::Quit) => WakeAction::End,
                    Some(Action::Suspend) => self.suspend(),
                    Some(Action::Repaint) if self.stage.repaint().is_err() => WakeAction::End,
                    Some(Action::Repaint) => WakeAction::Paint,
                    Some(Action::ShowMoment(moment)) => {
                        self.lookup.ask(moment);
                        WakeAction::Paint
                    }
                    Some(Action::Step { back, steps }) => {
                        self.player.inspect(|player| player.step(back, steps));
                        WakeAction::Paint
                    }
                    Some(Action::Play) => {
                        self.player.inspect(|player| player.turn());
                        WakeAction::Paint
                    }
                    Some(Action::ReadTexts(of)) => {
                        if let Err(why) = self.texts.ask(of) {
                            let texts = ProcessTexts {
                                command: None,
                                environment: Err(why),
                                is_environment_cut: false,
                            };
                            self.screen.set_texts(of, texts);
                        }
                        WakeAction::Paint
                    }
                    Some(Action::Signal(target, signal)) => {
                        self.screen.tell(match acting::send(&target, signal) {
                            Ok(()) => format!("{} was sent to {}", signal.name(), target.pid),
                            Err(error) => with_causes(&error),
                        });
                        WakeAction::Paint
                    }
                });
            }
            Wake::Signal(SIGTSTP) => return Ok(self.suspend()),
            Wake::Signal(SIGCONT) => return Ok(self.again()),
            Wake::Signal(_) | Wake::Gone => return Ok(WakeAction::End),
            Wake::SourceEnded(why) => return Err(Failure::Message(why)),
        }
        Ok(WakeAction::Paint)
    }

    /// Stops until continued.
    fn suspend(&mut self) -> WakeAction {
        self.stage.leave();
        let itself = rustix::process::getpid();
        // A process may always stop itself; where it cannot, it goes on at once.
        let _ = rustix::process::kill_process(itself, rustix::process::Signal::STOP);
        self.again()
    }

    fn again(&mut self) -> WakeAction {
        if self.stage.enter_again().is_err() { WakeAction::End } else { WakeAction::Paint }
    }
}
