//! `telltale demo --cluster`: a coordinator, four nodes and a spare, which train one GPT together. One
//! node is killed half-way; what it takes to go on is shown, and at the end the weights are compared
//! with those of the same training undisturbed. Whatever it started or made is gone when it ends.

mod comparison;
mod demo_nodes;
mod event;
mod page;
mod process;
mod timeline;
mod view;
mod worker_line;

use std::time::{Duration, Instant, SystemTime};

use super::next;
use crate::arguments::DemoArguments;
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;
use comparison::TrainingComparison;
use demo_nodes::{DemoNodes, Heard, LineSource, NAMES, SLOTS};
use page::Undisturbed;
use timeline::Timeline;
use view::CoordinatorPoller;
use worker_line::WorkerLine;

/// Steps that the training takes, unless the command line says otherwise.
const STEPS: u64 = 160;
/// The node that is killed: neither the first, which everybody has to find, nor the last.
const VICTIM: usize = 2;
/// Time between two frames.
const PERIOD: Duration = Duration::from_millis(100);
/// How long nothing may happen before the demo gives up: longer than the first run compiles kernels.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the command.
pub(super) fn run(arguments: &DemoArguments) -> Result<Status, Failure> {
    let mut interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    super::stage::refuse_nobody()?;
    let steps = arguments.steps.unwrap_or(STEPS);
    let began = (Instant::now(), SystemTime::now());
    let mut demo_nodes = DemoNodes::start(steps)?;
    let timeline = Timeline::begin(NAMES.map(str::to_owned).to_vec(), SLOTS, steps, began.1);
    let screen = Screen { output: StandardOutput::detect(), json: arguments.json, reported: 0 };
    let mut show = Show { began: began.0, timeline, screen, undisturbed: Vec::new() };
    let shown = show.run(&mut demo_nodes, &interrupt).map_err(|failure| match failure {
        Failure::Message(text) => Failure::Message(text + &demo_nodes.complaints()),
        other => other,
    });
    interrupt.finish_undisturbed();
    show.timeline.has_ended = true;
    // The last page stays, and must not offer what is over.
    let redrawn = match &shown {
        Ok(_) if show.screen.is_repainted() => show.screen.show(&show.timeline, show.compared()),
        _ => Ok(()),
    };
    let ended = show.screen.end();
    let struck = demo_nodes.strike();
    let is_over = shown?;
    redrawn?;
    ended?;
    struck?;
    // Else it was asked to end before there was anything to compare.
    if is_over { show.compare() } else { show.interrupted() }
}

/// The demo as it goes.
struct Show {
    began: Instant,
    timeline: Timeline,
    screen: Screen,
    /// The steps and the weights of the ranks that are undisturbed.
    undisturbed: Vec<(u64, Option<String>)>,
}

/// Where it is shown.
struct Screen {
    output: StandardOutput,
    json: bool,
    /// Events that were printed.
    reported: usize,
}

// === impl Show ===

impl Show {
    /// Goes on until there is something to compare; false when it was asked to end before.
    fn run(&mut self, demo_nodes: &mut DemoNodes, interrupt: &Interrupt) -> Result<bool, Failure> {
        self.screen.begin()?;
        let asking = CoordinatorPoller::at(&demo_nodes.socket())?;
        let train = |show: &mut Self, demo_nodes: &mut DemoNodes| {
            show.hear(demo_nodes);
            let at = show.began.elapsed();
            match asking.view() {
                Some(Ok(view)) => show.timeline.observe(at, view),
                None => {}
                // It does not answer yet.
                Some(Err(_)) if show.timeline.view.epoch == 0 => {}
                Some(Err(error)) => return Err(Failure::because(&error)),
            }
            if show.timeline.view.epoch > 0 && !demo_nodes.is_complete() {
                demo_nodes.start_node()?;
            }
            if show.timeline.is_half_way(VICTIM) {
                let at = show.began.elapsed();
                let processes = demo_nodes.kill(VICTIM);
                show.timeline.kill(at, VICTIM, processes);
            }
            Ok(show.timeline.is_over())
        };
        if !self.until(demo_nodes, interrupt, train)? {
            return Ok(false);
        }
        if !self.timeline.has_evicted() {
            return Err(Failure::Message(String::from(
                "the training was over before a node could be killed and replaced; run it with more \
                 --steps",
            )));
        }
        demo_nodes.end_cluster();
        demo_nodes.start_undisturbed()?;
        self.undisturbed = vec![(0, None); SLOTS];
        let train_again = |show: &mut Self, demo_nodes: &mut DemoNodes| {
            show.hear(demo_nodes);
            Ok(show.undisturbed.iter().all(|(_, digest)| digest.is_some()))
        };
        if !self.until(demo_nodes, interrupt, train_again)? {
            return Ok(false);
        }
        if let Some(digest) = self.undisturbed_digest() {
            self.timeline.undisturbed(self.began.elapsed(), digest);
        }
        if !self.screen.is_repainted() {
            self.screen.show(&self.timeline, None)?;
        }
        Ok(true)
    }

    /// Calls `look` periodically, and shows what it found, until it is true; false when the demo was
    /// asked to end before.
    fn until(
        &mut self,
        demo_nodes: &mut DemoNodes,
        interrupt: &Interrupt,
        mut poll: impl FnMut(&mut Self, &mut DemoNodes) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let mut moved = (Instant::now(), self.progress());
        loop {
            let is_done = poll(self, demo_nodes)?;
            let undisturbed = self.undisturbed.iter().map(|(step, _)| *step).min();
            self.screen.show(&self.timeline, undisturbed.map(|step| Undisturbed { step }))?;
            if is_done {
                return Ok(true);
            }
            if interrupt.sleep(PERIOD) {
                return Ok(false);
            }
            demo_nodes.check()?;
            if self.progress() != moved.1 {
                moved = (Instant::now(), self.progress());
            }
            if moved.0.elapsed() > TIMEOUT {
                let seconds = TIMEOUT.as_secs();
                let text = format!("nothing has happened in the demo for {seconds} s, so it ends");
                return Err(Failure::Message(text));
            }
        }
    }

    /// Something that changes as long as something happens.
    fn progress(&self) -> (usize, u64) {
        let steps = self.timeline.nodes.iter().map(|node| node.step);
        let more = self.undisturbed.iter().map(|(step, _)| *step);
        (self.timeline.events.len(), steps.chain(more).sum())
    }

    fn hear(&mut self, demo_nodes: &DemoNodes) {
        for Heard { from, line, at } in demo_nodes.heard() {
            let at = at.saturating_duration_since(self.began);
            match (from, line) {
                (LineSource::Node(node), line) => self.timeline.hear(at, node, line),
                (LineSource::Undisturbed(rank), WorkerLine::Step { step, .. }) => {
                    self.undisturbed[rank].0 = step;
                }
                (LineSource::Undisturbed(rank), WorkerLine::Ended { digest, .. }) => {
                    self.undisturbed[rank].1 = Some(digest);
                }
                (LineSource::Undisturbed(_), WorkerLine::Begun { .. }) => {}
            }
        }
    }

    /// The weights that all ranks have that are undisturbed.
    fn undisturbed_digest(&self) -> Option<String> {
        let (_, first) = self.undisturbed.first()?;
        let same = self.undisturbed.iter().all(|(_, digest)| digest == first);
        first.clone().filter(|_| same)
    }

    /// How far the undisturbed training has come, while it goes on.
    fn compared(&self) -> Option<Undisturbed> {
        let goes_on = self.undisturbed.iter().any(|(_, digest)| digest.is_none());
        let step = self.undisturbed.iter().map(|(step, _)| *step).min();
        step.filter(|_| goes_on).map(|step| Undisturbed { step })
    }

    /// Says that it was asked to end before there was anything to compare.
    fn interrupted(&self) -> Result<Status, Failure> {
        self.screen.output.print(&if self.screen.json {
            String::from("{\"event\":\"interrupted\"}\n")
        } else {
            let ended = "Interrupted: coordinator, agents and workers are ended, and nothing is \
                         compared.\n";
            ended.to_owned() + &next::words(&next::AFTER_CLUSTER)
        })?;
        Ok(Status::Fine)
    }

    /// Says whether the weights are the same, at the end and as the exit status.
    fn compare(&self) -> Result<Status, Failure> {
        let comparison = TrainingComparison {
            steps: self.timeline.steps,
            with: self.timeline.digest(),
            without: self.undisturbed_digest(),
            recovery: self.timeline.recovery(),
        };
        self.screen.output.print(&if self.screen.json {
            format!("{}\n", comparison.json())
        } else {
            comparison.text() + &next::words(&next::AFTER_CLUSTER)
        })?;
        Ok(comparison.status())
    }
}

// === impl Screen ===

impl Screen {
    fn is_repainted(&self) -> bool {
        !self.json && self.output.is_repainted()
    }

    fn begin(&self) -> Result<(), Failure> {
        if self.is_repainted() {
            self.output.begin_repainting()?;
        }
        Ok(())
    }

    /// Shows how things are, where that can be, and else what has happened since the last time.
    fn show(
        &mut self,
        timeline: &Timeline,
        undisturbed: Option<Undisturbed>,
    ) -> Result<(), Failure> {
        if self.is_repainted() {
            let rows = self.output.rows_of_a_page();
            let page = page::page(timeline, undisturbed, rows, &self.output.style());
            return Ok(self.output.repaint(&page)?);
        }
        for event in &timeline.events[self.reported..] {
            let line = if self.json { event.json().to_string() } else { event.line() };
            self.output.print(&format!("{line}\n"))?;
        }
        self.reported = timeline.events.len();
        Ok(())
    }

    fn end(&self) -> Result<(), Failure> {
        if self.is_repainted() {
            self.output.end_repainting()?;
        }
        Ok(())
    }
}
