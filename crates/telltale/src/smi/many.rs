//! Several machines at once, in every form that one has.

use std::time::{Duration, Instant};

use telltale_query::Query;
use telltale_schema::fleet::{Fleet, Host, HostState};
use telltale_schema::quantity;
use telltale_schema::snapshot::{LeftOut, Snapshot};
use telltale_schema::text::printable;
use telltale_sources::{GRACE, Inquiry};

use super::{OutputFormat, SnapshotView, time_of_day};
use crate::arguments::SmiArguments;
use crate::exit::{self, Failure, Status};
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::output::StandardOutput;

/// How long the first of many frames waits for those who are slow.
pub(crate) const FIRST_FRAME: Duration = Duration::from_millis(350);
/// What it waits longer where services measure what processes use.
const RATES: Duration = Duration::from_millis(400);

/// Shows the machines once, or periodically until interrupted.
pub(super) fn show(
    arguments: &SmiArguments,
    view: SnapshotView<'_>,
    output: &StandardOutput,
) -> Result<Status, Failure> {
    // An index is one of all devices, so that the rows of a filter are chosen after the devices.
    let filter = view.filter.filter(|_| view.devices.is_none());
    let (addresses, mut terms) = hosts::prepare(&arguments.hosts, arguments.period(), filter)?;
    terms.usage = view.usage();
    terms.chooses_by_usage = view.filter.is_some_and(Query::asks_for_usage);
    let timeout = terms.timeout;
    let inquiry = Inquiry::start(addresses, terms).map_err(|error| Failure::because(&error))?;
    output.print(&heading(view))?;
    let Some(period) = arguments.period() else {
        inquiry.wait(timeout + GRACE);
        let fleet = inquiry.now();
        let answers = fleet.hosts.iter().filter_map(|host| host.snapshot.as_deref());
        view.check(answers).map_err(|error| Failure::because(&error))?;
        if !matches!(view.form, OutputFormat::Tables { .. }) {
            report_silent(&fleet);
        }
        output.print(&page(&fleet, view, None, output))?;
        return Ok(status(&fleet));
    };
    let interrupt = Interrupt::listen().map_err(|error| Failure::because(&error))?;
    inquiry.wait(if view.usage() { FIRST_FRAME + RATES } else { FIRST_FRAME });
    let repaint = matches!(view.form, OutputFormat::Tables { .. });
    if repaint {
        output.begin_repainting()?;
    }
    let mut due = Instant::now();
    let fleet = loop {
        let fleet = inquiry.now();
        let page = page(&fleet, view, output.rows_of_a_page(), output);
        match repaint {
            true => output.repaint(&titled(&fleet, &page, period, output))?,
            false => output.print(&page)?,
        }
        // A late frame is skipped, not made up for.
        due = (due + period).max(Instant::now());
        if interrupt.sleep(due.saturating_duration_since(Instant::now())) {
            break fleet;
        }
    };
    if repaint {
        output.end_repainting()?;
    }
    Ok(status(&fleet))
}

fn titled(fleet: &Fleet, page: &str, period: Duration, output: &StandardOutput) -> String {
    if !output.is_tall() {
        return page.to_owned();
    }
    let title = format!(
        "{} UTC. Every {} s; Ctrl-C ends it.",
        time_of_day(fleet.taken_at),
        period.as_secs_f64()
    );
    format!("{}{page}", telltale_smi::title(&title, &output.style()))
}

/// What comes before the first page, and not again.
fn heading(view: SnapshotView<'_>) -> String {
    match view.heading() {
        none if none.is_empty() => none,
        names => format!("host,{names}"),
    }
}

/// The machines in the wanted form, ending with a line feed.
fn page(
    fleet: &Fleet,
    view: SnapshotView<'_>,
    rows: Option<usize>,
    output: &StandardOutput,
) -> String {
    let selected = hosts::select(fleet, |snapshot| view.select(snapshot));
    match view.form {
        OutputFormat::List => hosts_list(&selected),
        OutputFormat::Json => {
            serde_json::to_string(&selected).expect("it has only string keys") + "\n"
        }
        OutputFormat::Csv { processes } => csv(&selected, |snapshot| match view.columns {
            Some(columns) => columns.rows(snapshot),
            None if processes => telltale_smi::csv::processes(snapshot),
            None => telltale_smi::csv::devices(snapshot),
        }),
        OutputFormat::Tables { details } => {
            let style = output.style();
            let rows = rows.unwrap_or(usize::MAX);
            let mut page = telltale_smi::fleet_within(&selected, rows, &style);
            if let Some(filter) = view.filter {
                let words = format!("{}: {filter}", matching(&selected));
                page.push_str(&telltale_smi::note(&words, &style));
            }
            for host in selected.hosts.iter().filter(|_| details) {
                if let Some(snapshot) = &host.snapshot {
                    page.push('\n');
                    page.push_str(&telltale_smi::title(&host.name, &style));
                    page.push_str(&telltale_smi::details(snapshot, &style));
                }
            }
            page
        }
    }
}

/// The devices of each host, one a line after the host's name.
fn hosts_list(fleet: &Fleet) -> String {
    let lines = |host: &Host| -> String {
        let list = host.snapshot.as_ref().map(|it| telltale_smi::list(it)).unwrap_or_default();
        let name = printable(&host.name);
        list.lines().map(|line| format!("{name}: {line}\n")).collect()
    };
    fleet.hosts.iter().map(lines).collect()
}

/// How many rows are left, which a person would otherwise take for all.
fn matching(selected: &Fleet) -> String {
    let share = |of: fn(&Snapshot) -> usize, out: fn(LeftOut) -> u64| {
        let snapshots = || selected.hosts.iter().flat_map(|host| &host.snapshot);
        let left: usize = snapshots().map(|it| of(it)).sum();
        let left = u64::try_from(left).unwrap_or(u64::MAX);
        let out: u64 = snapshots().filter_map(|it| it.left_out).map(out).sum();
        format!("{} of {}", quantity::count(left), quantity::count(left.saturating_add(out)))
    };
    let devices = share(|snapshot| snapshot.devices.len(), |out| out.devices);
    let processes = share(|snapshot| snapshot.processes.len(), |out| out.processes);
    format!("{devices} devices and {processes} processes match")
}

/// The rows of the machines that answer, each with its machine's name first. What is old is left
/// out: a program would take it for what is.
fn csv(fleet: &Fleet, rows: impl Fn(&Snapshot) -> String) -> String {
    let mut text = String::new();
    for host in fleet.hosts.iter().filter(|host| host.state == HostState::Answering) {
        let Some(snapshot) = &host.snapshot else { continue };
        let name = telltale_smi::csv::field(&host.name);
        for row in rows(snapshot).split_inclusive("\r\n") {
            text.push_str(&format!("{name},{row}"));
        }
    }
    text
}

/// Tells on standard error who did not answer, where the output has no place for it.
fn report_silent(fleet: &Fleet) {
    for host in fleet.hosts.iter().filter(|host| host.state != HostState::Answering) {
        let reason = host.reason.as_deref().unwrap_or("it has not answered yet");
        exit::tell(&format!("telltale: {}: {}", printable(&host.name), printable(reason)));
    }
}

/// The exit status that these machines stand for.
fn status(fleet: &Fleet) -> Status {
    let answering = fleet.count(HostState::Answering);
    let has_errors = fleet.hosts.iter().flat_map(|host| &host.snapshot).any(|it| it.has_errors());
    match (answering == 0, answering < fleet.hosts.len() || has_errors) {
        (true, _) => Status::Nothing,
        (false, true) => Status::Partial,
        (false, false) => Status::Fine,
    }
}
