//! `telltale doctor`: what works on this machine, what does not, why, and the command that mends it.

mod devices;
mod directory;
mod finding;
mod kernel;
mod processes;
mod regions;
mod service;
mod terminal;

use std::path::Path;

use serde_json::json;
use telltale_collector::{CollectOptions, Collector, EndpointUse, Sensors};
use telltale_node::kubelet::list_allocated;
use telltale_smi::{Style, Tone};
use telltale_sources::{FOR_A_DECISION, Question};

use crate::arguments::DoctorArguments;
use crate::exit::{Failure, Status};
use crate::output::StandardOutput;
use crate::settings;
use finding::{Finding, FindingLevel};

/// The version of the JSON, which grows when a field changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<Status, Failure> {
    let place = &arguments.place;
    let root = place.root.as_deref().unwrap_or(Path::new("/"));
    let options = CollectOptions {
        root: root.to_owned(),
        runtime_dir: place.runtime_dir.clone(),
        sensors: Sensors::All,
        endpoints: EndpointUse::Always,
        list_allocated: Some(list_allocated),
        health: settings::health(),
        ..CollectOptions::default()
    };
    let options = arguments.hardware.limit(options);
    let question = Question::ask(place.sockets(), FOR_A_DECISION);
    let mut collector = Collector::new(options).map_err(|error| Failure::because(&error))?;
    collector.collect();
    question.teach(&mut collector);
    collector.watch_heartbeats();
    let snapshot = collector.collect();
    let output = StandardOutput::detect();
    let mut findings = Vec::new();
    devices::check(&snapshot, root, &collector.absent_sources(), &mut findings);
    processes::check(&snapshot, &mut findings);
    regions::check(root, &mut findings);
    directory::check(place, &mut findings);
    kernel::check(&mut findings);
    service::check(place, &arguments.history, &mut findings);
    terminal::check(&output, &mut findings);
    output.print(&match arguments.json {
        true => as_json(&findings),
        false => as_text(&findings, &output.style()),
    })?;
    Ok(match Finding::worst(&findings) {
        FindingLevel::Works | FindingLevel::NotHere => Status::Fine,
        FindingLevel::Partly => Status::Partial,
        FindingLevel::Broken => Status::Nothing,
    })
}

fn as_json(findings: &[Finding]) -> String {
    let object = json!({
        "schema_version": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": Finding::worst(findings).name(),
        "findings": findings,
    });
    format!("{object}\n")
}

fn as_text(findings: &[Finding], style: &Style) -> String {
    let mut text = String::new();
    for finding in findings {
        let tone = match finding.verdict {
            FindingLevel::Works => Tone::Plain,
            FindingLevel::NotHere => Tone::Faint,
            FindingLevel::Partly => Tone::Warning,
            FindingLevel::Broken => Tone::Alarm,
        };
        let mark = tone.paint(&format!("{:<8}", finding.verdict.name()), style);
        text.push_str(&format!("{mark} {:<11} {}\n", finding.subject, finding.what));
        for remedy in &finding.remedy {
            text.push_str(&format!(
                "{:21}{}\n",
                "",
                Tone::Heading.paint(&format!("> {remedy}"), style)
            ));
        }
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    text.push_str(&format!(
        "\n{} work, {} partly, {} broken, {} not here\n",
        count(FindingLevel::Works),
        count(FindingLevel::Partly),
        count(FindingLevel::Broken),
        count(FindingLevel::NotHere),
    ));
    text
}
