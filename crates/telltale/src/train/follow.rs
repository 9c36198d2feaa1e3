//! Follows the job at its coordinator: says at once what a person should know, and keeps what the report needs.
//!
//! It asks as any operator does, so that it is the same on the node that runs the coordinator and on the others.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use telltale_control_plane::attend::Stop;
use telltale_control_plane::operator::{Operator, OperatorError};
use telltale_control_plane::view::JobStepsView;
use telltale_wire::cluster::message::{
    GetStatusResponse, GetStepsResponse, HoldReason, Incident, IncidentStanding, JobPhase,
};
use tokio::sync::watch;

use super::nodes::Place;
use super::report::{Hang, failed, hang, hangs};
use super::{TrainPlan, no_thread};
use crate::exit::Failure;

/// How often it asks.
const INTERVAL: Duration = Duration::from_secs(1);
/// With every how many of these it asks for the steps, whose answer is long.
const STEPS_EVERY: u32 = 10;
/// How often the node that runs the coordinator looks whether the others have heard of the end.
const PARTING: Duration = Duration::from_millis(50);
/// How long nothing is said of what is waited for.
const QUIET: Duration = Duration::from_secs(5);

/// What is known of the job at its end.
#[derive(Debug, Default)]
pub(super) struct JobHistory {
    /// The newest first.
    pub(super) incidents: Vec<Incident>,
    /// What was found of each hang, by its incident.
    pub(super) hangs: BTreeMap<String, Hang>,
    /// Where the time of its steps went, as it was known last.
    pub(super) steps: Option<GetStepsResponse>,
    /// What was missed for so long that the job was given up.
    pub(super) lost: Option<Missed>,
}

/// What a job cannot be without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missed {
    Coordinator,
    /// Nodes, for so long.
    Nodes(Duration),
}

/// What is wanted of the thread that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Follow,
    /// The job is over: what is still to be asked before this node says goodbye.
    Part,
    End,
}

/// A thread that follows.
#[derive(Debug)]
pub(super) struct Follower {
    /// Closed once it has ended.
    wish: watch::Sender<Wish>,
    thread: JoinHandle<JobHistory>,
}

/// What it does.
struct Following {
    operator: Operator,
    max_restarts: u32,
    /// Whether the coordinator is this process, and serves other nodes.
    is_head: bool,
    /// How long the coordinator may not be reached before the job is lost.
    lost_after: Duration,
    /// How long nodes may be waited for.
    join: Duration,
    /// How the coordinator is asked by another program.
    address: String,
    agent: Stop,
    followed: JobHistory,
    began: Instant,
    heard: Option<Instant>,
    /// Since when nodes are waited for.
    waits_since: Option<Instant>,
    /// What was said already.
    said: BTreeSet<String>,
}

// === impl JobHistory ===

impl JobHistory {
    /// What was found of hangs that did not pass, the first one first.
    pub(super) fn open_hangs(&self) -> Vec<Hang> {
        let open = self.incidents.iter().rev().filter(|incident| hangs(incident));
        open.filter_map(|incident| self.hangs.get(&incident.id).cloned()).collect()
    }
}

// === impl Follower ===

impl Follower {
    pub(super) fn start(
        plan: &TrainPlan,
        place: &Place,
        (operator, address): (Operator, String),
        agent: Stop,
    ) -> Result<Self, Failure> {
        let following = Following {
            operator,
            max_restarts: plan.max_restarts,
            is_head: matches!(place, Place::Head { .. }),
            lost_after: plan.lost_after,
            join: plan.conf.join,
            address,
            agent,
            followed: JobHistory::default(),
            began: Instant::now(),
            heard: None,
            waits_since: Some(Instant::now()),
            said: BTreeSet::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| no_thread(&error))?;
        let (wish, wished) = watch::channel(Wish::Follow);
        let follow = move || runtime.block_on(following.run(wished));
        let thread = thread::Builder::new().name("follow".to_owned()).spawn(follow);
        let thread = thread.map_err(|error| no_thread(&error))?;
        Ok(Self { wish, thread })
    }

    /// Asks once more while the coordinator is certainly there. On the node that runs it, waits for the others to have
    /// done so.
    pub(super) async fn part(&self) {
        self.wish.send_replace(Wish::Part);
        self.wish.closed().await;
    }

    /// Asks once more where that was not done, and ends.
    pub(super) fn finish(self) -> JobHistory {
        self.wish.send_replace(Wish::End);
        self.thread.join().unwrap_or_default()
    }
}

// === impl Following ===

impl Following {
    async fn run(mut self, mut wished: watch::Receiver<Wish>) -> JobHistory {
        let mut looks = tokio::time::interval(INTERVAL);
        for number in 0_u32.. {
            tokio::select! {
                _ = wished.changed() => break,
                _ = looks.tick() => {}
            }
            let asked = tokio::select! {
                _ = wished.changed() => break,
                asked = self.look(number % STEPS_EVERY == 0) => asked,
            };
            self.note(asked);
        }
        let _ = self.look(true).await;
        if self.is_head && *wished.borrow() == Wish::Part {
            tokio::select! {
                _ = wished.wait_for(|wish| *wish == Wish::End) => {}
                _ = tokio::time::timeout(self.lost_after, self.others_have_left()) => {}
            }
        }
        self.followed
    }

    /// Waits until no other node is there that might still ask. Each says goodbye when it has heard of the end.
    async fn others_have_left(&self) {
        loop {
            let status = self.operator.ask(async |client| client.status().await).await;
            // This node is still there, or was not heard for a while.
            if status.is_ok_and(|status| status.active_nodes + status.standby_nodes <= 1) {
                return;
            }
            tokio::time::sleep(PARTING).await;
        }
    }

    /// Asks how the job stands, and where the time of its steps goes if that is wanted, and keeps it.
    async fn look(&mut self, with_steps: bool) -> Result<GetStatusResponse, OperatorError> {
        let asked = self.operator.ask(async |client| {
            let status = client.status().await?;
            let incidents = client.incidents(None).await?.incidents;
            let hanging = incidents.iter().find(|incident| hangs(incident));
            let found = match hanging {
                Some(incident) => client.incident(Some(&incident.id)).await.ok(),
                None => None,
            };
            // An older coordinator knows of no steps.
            let steps = if with_steps { client.steps().await.ok() } else { None };
            Ok((status, incidents, found, steps))
        });
        let (status, incidents, found, steps) = asked.await?;
        // The coordinator keeps the latest.
        let former = std::mem::replace(&mut self.followed.incidents, incidents);
        let is_known =
            |one: &Incident| self.followed.incidents.iter().any(|kept| kept.id == one.id);
        let dropped: Vec<Incident> = former.into_iter().filter(|one| !is_known(one)).collect();
        self.followed.incidents.extend(dropped);
        if let Some((id, hang)) = found.as_ref().and_then(hang) {
            self.followed.hangs.insert(id, hang);
        }
        // What was slow in one attempt is worth a word after the next has begun.
        if let Some(steps) = steps.filter(|steps| steps.latest.is_some()) {
            self.followed.steps = Some(steps);
        }
        Ok(status)
    }

    /// Says what is new, and gives up what is lost.
    fn note(&mut self, asked: Result<GetStatusResponse, OperatorError>) {
        let now = Instant::now();
        match asked {
            Ok(status) => {
                self.heard = Some(now);
                self.note_waiting(&status, now);
                self.tell_incidents();
            }
            Err(error) => {
                let since = now - self.heard.unwrap_or(self.began);
                if since >= QUIET {
                    let causes = telltale_schema::text::with_causes(&error);
                    self.say(format!("waiting for the coordinator at {}: {causes}", self.address));
                }
                if self.heard.is_some() && since >= self.lost_after {
                    self.give_up(Missed::Coordinator);
                }
                if self.heard.is_none() && since >= self.join {
                    self.give_up(Missed::Nodes(self.join));
                }
            }
        }
    }

    /// Says that nodes are waited for, and gives that up in the end.
    fn note_waiting(&mut self, status: &GetStatusResponse, now: Instant) {
        let is_forming = status.phase() == JobPhase::Forming;
        let is_held =
            status.phase() == JobPhase::Preparing && status.waits_for() != HoldReason::Unspecified;
        if !is_forming && !is_held {
            self.waits_since = None;
            return;
        }
        let waited = now - *self.waits_since.get_or_insert(now);
        if waited >= QUIET {
            let there = status.active_nodes + status.standby_nodes;
            self.say(format!("waiting for nodes: {there} of {} are here", status.slots));
        }
        if waited >= self.join {
            self.give_up(Missed::Nodes(self.join));
        }
    }

    /// Has the agent end, once: to be asked again is to be asked to kill.
    fn give_up(&mut self, missed: Missed) {
        if self.followed.lost.is_none() {
            self.followed.lost = Some(missed);
            self.agent.ask();
        }
    }

    fn tell_incidents(&mut self) {
        let (mut lines, mut hanging, mut restarts) = (Vec::new(), Vec::new(), 0);
        for incident in self.followed.incidents.iter().rev() {
            let answered = incident.standing() == IncidentStanding::Answered;
            if let Some(failed) = failed(incident).filter(|_| answered) {
                restarts += 1;
                lines.push(format!("{failed}; restart {restarts} of {}", self.max_restarts));
            }
            match self.followed.hangs.get(&incident.id) {
                Some(_) if incident.standing() == IncidentStanding::Passed => {
                    lines.push(format!("the hang {} has passed: the job goes on", incident.id));
                }
                Some(found) => {
                    hanging.push((incident.id.clone(), self.hanging(&incident.id, found)));
                    lines.extend(found.sentence.as_ref().map(|why| format!("why it hangs: {why}")));
                }
                None => {}
            }
        }
        for (incident, line) in hanging {
            // Its evidence has another time each second.
            if self.said.insert(incident) {
                super::tell(&format!("telltale: {line}"));
            }
        }
        lines.into_iter().for_each(|line| self.say(line));
    }

    fn hanging(&self, incident: &str, hang: &Hang) -> String {
        let verdict = &hang.verdict;
        let evidence = verdict.evidence.first().map_or(&*verdict.text, |evidence| &evidence.text);
        format!(
            "the job hangs: {evidence}; `telltale cluster explain {incident} --coordinator {}` has more",
            self.address
        )
    }

    fn say(&mut self, line: String) {
        if self.said.insert(line.clone()) {
            super::tell(&format!("telltale: {line}"));
        }
    }
}

/// What of the steps is worth a report: the sentences on slow ranks and links.
pub(super) fn stragglers(steps: Option<&GetStepsResponse>) -> Option<JobStepsView> {
    let view = JobStepsView::from(steps?);
    let is_slow = |one: &telltale_control_plane::view::AnalysisView| {
        !one.ranks.is_empty() || !one.links.is_empty()
    };
    view.latest.as_ref().is_some_and(is_slow).then_some(view)
}
