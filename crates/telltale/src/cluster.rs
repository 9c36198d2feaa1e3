//! `telltale cluster`: asks the coordinator of a job how it stands and why, and gives it orders.
//!
//! Everything shown comes from the coordinator; nothing is decided here.

mod explanation;
mod heat;
mod journal;
mod lists;
mod orders;
mod page;
mod replacing;
mod report;
mod trace;

use std::time::{Duration, Instant};

use serde::Serialize;
use telltale_control_plane::operator::{Operator, OperatorError};
use telltale_control_plane::view::{
    ExplanationView, IncidentView, JobStepsView, NodeView, StatusView,
};
use telltale_smi::Style;
use telltale_wire::cluster::CallError;
use telltale_wire::cluster::message::Incident;
use tokio::runtime::Runtime;

use crate::arguments::{ClusterArguments, ClusterCommand, ExplainArguments, IncidentsArguments};
use crate::exit::{self, Failure, Status};
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;

/// Who asks, and how what comes is shown.
struct ClusterQuery {
    runtime: Runtime,
    operator: Operator,
    printer: Printer,
}

/// Prints answers, as text or as JSON.
struct Printer {
    output: StandardOutput,
    json: bool,
}

/// What is shown: as JSON, as text, and whether all is well.
struct RenderedAnswer {
    json: String,
    text: String,
    status: Status,
}

/// Runs the command.
pub(crate) fn run(arguments: &ClusterArguments) -> Result<Status, Failure> {
    let printer = Printer { output: StandardOutput::detect(), json: arguments.json };
    match &arguments.command {
        ClusterCommand::Incidents(IncidentsArguments { journal: Some(path), limit, .. }) => {
            return journal::incidents(&printer, path, *limit);
        }
        ClusterCommand::Explain(ExplainArguments { journal: Some(path), incident }) => {
            return journal::explain(&printer, path, incident.as_deref());
        }
        _ => {}
    }
    let asking = ClusterQuery::new(arguments, printer)?;
    match &arguments.command {
        ClusterCommand::Status(again) => asking.show(again.watch, ClusterQuery::status),
        ClusterCommand::Nodes(again) => asking.show(again.watch, ClusterQuery::nodes),
        ClusterCommand::Incidents(incidents) => {
            let limit = incidents.limit;
            asking.show(incidents.again.watch, move |asking| asking.incidents(limit))
        }
        ClusterCommand::Explain(explain) => {
            let incident = explain.incident.as_deref();
            asking.show(None, |asking| asking.explain(incident))
        }
        ClusterCommand::Report(report) => match (&report.page, &report.trace) {
            (Some(file), _) => page::write(&asking, file),
            (None, Some(file)) => trace::write(&asking, file),
            (None, None) => asking.show(report.again.watch, ClusterQuery::report),
        },
        ClusterCommand::Restart(restart) => orders::restart(&asking, restart.wait),
        ClusterCommand::Drain(of) => orders::drain(&asking, &of.node),
        ClusterCommand::Remove(of) => orders::remove(&asking, &of.node),
        ClusterCommand::Readmit(of) => orders::readmit(&asking, &of.node),
        ClusterCommand::Mode(mode) => orders::set_mode(&asking, mode.mode),
    }
}

// === impl ClusterQuery ===

impl ClusterQuery {
    fn new(arguments: &ClusterArguments, printer: Printer) -> Result<Self, Failure> {
        let because = |error: &dyn std::error::Error| Failure::because(error);
        let credentials = arguments.whom.access()?.load().map_err(|error| because(&error))?;
        let addresses = arguments.whom.coordinator.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| because(&error))?;
        Ok(Self {
            runtime,
            operator: Operator::new(addresses, credentials, arguments.whom.timeout),
            printer,
        })
    }

    fn show(
        &self,
        watch: Option<Duration>,
        fetch: impl Fn(&Self) -> Result<RenderedAnswer, OperatorError>,
    ) -> Result<Status, Failure> {
        match watch {
            Some(period) => self.repeat(period, fetch),
            None => self.show_once(fetch(self)),
        }
    }

    fn show_once(&self, looked: Result<RenderedAnswer, OperatorError>) -> Result<Status, Failure> {
        match looked {
            Ok(shown) => self.printer.print(&shown),
            // Not to be there is an answer too.
            Err(OperatorError::Call(error)) if orders::is_refusal(&error) => {
                self.printer.refused(&orders::reason(&error))
            }
            Err(error) => Err(Failure::because(&error)),
        }
    }

    /// Shows it periodically. A coordinator that cannot be reached now may be asked later: a leader
    /// may just be changing.
    fn repeat(
        &self,
        period: Duration,
        fetch: impl Fn(&Self) -> Result<RenderedAnswer, OperatorError>,
    ) -> Result<Status, Failure> {
        let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
        if !self.printer.json {
            self.printer.output.begin_repainting()?;
        }
        let mut due = Instant::now();
        let outcome = loop {
            let (status, reported) = match fetch(self) {
                Ok(shown) => {
                    (shown.status, if self.printer.json { shown.json } else { shown.text })
                }
                Err(error) => {
                    let text = telltale_schema::text::with_causes(&error);
                    let json = serde_json::json!({ "unreachable": text }).to_string() + "\n";
                    let text = telltale_smi::paragraph(&text, 2, &self.printer.output.style());
                    (Status::Nothing, if self.printer.json { json } else { text })
                }
            };
            let written = if self.printer.json {
                self.printer.output.print(&reported)
            } else {
                self.printer.output.repaint(&reported)
            };
            if let Err(error) = written {
                break Err(error.into());
            }
            due = (due + period).max(Instant::now());
            if interrupt.sleep(due.saturating_duration_since(Instant::now())) {
                break Ok(status);
            }
        };
        if !self.printer.json {
            self.printer.output.end_repainting()?;
        }
        outcome
    }

    fn status(&self) -> Result<RenderedAnswer, OperatorError> {
        let answer =
            self.runtime.block_on(self.operator.ask(async |client| client.status().await))?;
        let open = match &answer.open_incident {
            Some(id) => {
                let ask = self.operator.ask(async |client| client.incident(Some(id)).await);
                // It may be closed by now, and is not what was asked for.
                self.runtime.block_on(ask).ok().and_then(|found| found.incident)
            }
            None => None,
        };
        let view = StatusView::from(&answer).with_incident(open.as_ref());
        let status = if view.is_well() { Status::Fine } else { Status::Firing };
        Ok(RenderedAnswer::new(&view, lists::status(&view, &self.printer.output.style()), status))
    }

    fn nodes(&self) -> Result<RenderedAnswer, OperatorError> {
        let answer =
            self.runtime.block_on(self.operator.ask(async |client| client.nodes().await))?;
        let views: Vec<_> = answer.nodes.iter().map(NodeView::from).collect();
        Ok(RenderedAnswer::new(
            &views,
            lists::nodes(&views, &self.printer.output.style()),
            Status::Fine,
        ))
    }

    fn incidents(&self, limit: Option<u32>) -> Result<RenderedAnswer, OperatorError> {
        let ask = self.operator.ask(async |client| client.incidents(limit).await);
        let answer = self.runtime.block_on(ask)?;
        Ok(self.printer.incidents(&answer.incidents))
    }

    fn report(&self) -> Result<RenderedAnswer, OperatorError> {
        let view = JobStepsView::from(&self.ask(async |client| client.steps().await)?);
        let status = if view.latest.is_some() { Status::Fine } else { Status::Firing };
        Ok(RenderedAnswer::new(&view, report::text(&view, &self.printer.output.style()), status))
    }

    fn explain(&self, incident: Option<&str>) -> Result<RenderedAnswer, OperatorError> {
        let ask = self.operator.ask(async |client| {
            let explained = client.incident(incident).await?;
            // An older coordinator knows of no steps.
            Ok((explained, client.steps().await.ok()))
        });
        let (explained, steps) = self.runtime.block_on(ask)?;
        let view = ExplanationView::from(&explained).with_steps(steps.as_ref());
        Ok(self.printer.explanation(&view))
    }

    /// Makes a call to the leader.
    fn ask<Answer>(
        &self,
        call: impl AsyncFnMut(&mut telltale_wire::cluster::Client) -> Result<Answer, CallError>,
    ) -> Result<Answer, OperatorError> {
        self.runtime.block_on(self.operator.ask(call))
    }
}

// === impl Printer ===

impl Printer {
    fn print(&self, answer: &RenderedAnswer) -> Result<Status, Failure> {
        self.output.print(if self.json { &answer.json } else { &answer.text })?;
        Ok(answer.status)
    }

    /// Says why something was refused, or is not there.
    fn refused(&self, reason: &str) -> Result<Status, Failure> {
        if self.json {
            self.output.print(&format!("{}\n", serde_json::json!({ "refused": reason })))?;
        } else {
            exit::tell(&format!("telltale: {reason}"));
        }
        Ok(Status::Refused)
    }

    fn incidents(&self, incidents: &[Incident]) -> RenderedAnswer {
        let views: Vec<_> = incidents.iter().map(IncidentView::from).collect();
        let open = views.iter().any(|incident| ["collecting", "held"].contains(&incident.standing));
        let status = if open { Status::Firing } else { Status::Fine };
        RenderedAnswer::new(&views, lists::incidents(&views, &self.output.style()), status)
    }

    fn explanation(&self, view: &ExplanationView) -> RenderedAnswer {
        let style = self.output.style();
        // A map that is written to a file is no wider than a page.
        let style = Style { width: style.width.or(Some(100)), ..style };
        RenderedAnswer::new(view, explanation::text(view, &style), Status::Fine)
    }
}

// === impl RenderedAnswer ===

impl RenderedAnswer {
    fn new(view: &impl Serialize, text: String, status: Status) -> Self {
        let json = serde_json::to_string(view).expect("views are JSON") + "\n";
        Self { json, text, status }
    }
}
