//! The job and the agents of this machine, asked for on a thread of its own: a coordinator may take
//! its time.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use telltale_control_plane::operator::Operator;
use telltale_control_plane::reach::{ClientFiles, CoordinatorAddress};
use telltale_control_plane::view::{
    ExplanationView, JobStepsView, MatrixView, NodeView, StatusView, age,
};
use telltale_schema::calendar;
use telltale_schema::clock::Timestamp;
use telltale_schema::text::with_causes;
use telltale_smi::screen::{Agent, Availability, JobNode, JobView, Latency, Matrix};
use telltale_wire::cluster::message::{
    GetIncidentResponse, GetStatusResponse, GetStepsResponse, ListNodesResponse,
};

use super::Wake;
use crate::agent;
use crate::arguments::ScreenArguments;
use crate::exit::Failure;

/// How often an agent is asked at most.
const LEAST_INTERVAL: Duration = Duration::from_secs(2);
/// How long a coordinator or an agent may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Agents of this machine that are asked at most, entries of a directory that are checked, and
/// bytes of an agent's answer.
const MAX_AGENTS: usize = 16;
const MAX_ENTRIES: usize = 4096;
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Steps whose times are shown.
const STEP_COLUMNS: usize = 48;
/// Nodes of a matrix that are shown, as many as a wide window has columns.
const MAX_MATRIX_NODES: usize = 256;

const NO_COORDINATOR: &str = "No job: no coordinator was named. Open the view with --coordinator \
    ADDRESS, or set TELLTALE_COORDINATOR.";
const NO_AGENT: &str = "No agent of a job has its state on this host, so there are no latencies.";

/// Starts the thread.
pub(super) fn start(
    arguments: &ScreenArguments,
    period: Duration,
    wakes: SyncSender<Wake>,
) -> Result<(), Failure> {
    let operator = operator(arguments)?;
    let runtime = operator
        .as_ref()
        .map(|_| tokio::runtime::Builder::new_current_thread().enable_all().build());
    let runtime = runtime.transpose().map_err(|error| Failure::because(&error))?;
    let thread = thread::Builder::new().name(String::from("cluster"));
    let started = thread.spawn(move || {
        let mut last = None;
        loop {
            let job = match (&runtime, &operator) {
                (Some(runtime), Some(operator)) => match runtime.block_on(ask(operator)) {
                    Ok(job) => Availability::Known(job),
                    Err(why) => Availability::Absent(format!("No job: {why}")),
                },
                _ => Availability::Absent(String::from(NO_COORDINATOR)),
            };
            let agents = match agents() {
                found if found.is_empty() => Availability::Absent(String::from(NO_AGENT)),
                found => Availability::Known(found),
            };
            let news = (job, agents);
            if last.as_ref() != Some(&news) {
                let (job, agents) = news.clone();
                if wakes.send(Wake::Cluster(Box::new(job), agents)).is_err() {
                    return;
                }
                last = Some(news);
            }
            thread::sleep(period.max(LEAST_INTERVAL));
        }
    });
    started.map(|_| ()).map_err(|error| Failure::because(&error))
}

/// Who asks the coordinators that were named; none where none was.
fn operator(arguments: &ScreenArguments) -> Result<Option<Operator>, Failure> {
    let addresses: Vec<CoordinatorAddress> = arguments.coordinator.clone();
    if addresses.is_empty() {
        return Ok(None);
    }
    let access = ClientFiles {
        authority: arguments.coordinator_authority.clone(),
        identity: None,
        token_file: arguments.coordinator_token_file.clone(),
    };
    let credentials = access.load().map_err(|error| Failure::because(&error))?;
    Ok(Some(Operator::new(addresses, credentials, TIMEOUT)))
}

/// What a coordinator says.
type Answers =
    (GetStatusResponse, ListNodesResponse, Option<GetIncidentResponse>, Option<GetStepsResponse>);

async fn ask(operator: &Operator) -> Result<JobView, String> {
    let answers: Result<Answers, _> = operator
        .ask(async |client| {
            let (status, nodes) = (client.status().await?, client.nodes().await?);
            // There may be no incident yet, which is an error of that call alone.
            let newest = client.incident(None).await.ok();
            // An older coordinator knows of no steps.
            let steps = client.steps().await.ok();
            Ok((status, nodes, newest, steps))
        })
        .await;
    let (status, nodes, newest, steps) = answers.map_err(|error| with_causes(&error))?;
    let open = newest.as_ref().and_then(|found| found.incident.as_ref());
    let status = StatusView::from(&status).with_incident(open);
    let nodes: Vec<NodeView> = nodes.nodes.iter().map(NodeView::from).collect();
    let newest = newest.as_ref().map(ExplanationView::from);
    Ok(job(&status, &nodes, newest, steps.as_ref().map(JobStepsView::from)))
}

fn job(
    status: &StatusView,
    nodes: &[NodeView],
    newest: Option<ExplanationView>,
    steps: Option<JobStepsView>,
) -> JobView {
    let heading = format!(
        "Job {}: {}; epoch {}, mode {}",
        status.job,
        status.sentence(),
        status.epoch,
        status.mode
    );
    let mut facts =
        vec![("nodes", format!("{}; {} restarts", status.nodes_sentence(), status.restarts))];
    if let Some(trouble) = &status.store_trouble {
        facts.push(("store", trouble.clone()));
    }
    if let Some(steps) = steps {
        facts.extend(steps.times_in_blocks(STEP_COLUMNS).map(|times| ("steps", times)));
        facts.extend(steps.text.into_iter().map(|sentence| ("", sentence)));
    }
    facts.push((
        "incident",
        match newest.as_ref().map(|found| &found.incident) {
            Some(incident) => format!("{} ({}): {}", incident.id, incident.standing, incident.text),
            None => String::from("none is known"),
        },
    ));
    let matrix = newest.and_then(|found| Some((found.matrix?, found.incident.id)));
    JobView {
        heading,
        is_well: status.is_well(),
        facts,
        nodes: nodes.iter().map(node).collect(),
        matrix: matrix.map(|(view, incident)| matrix_of(&view, &incident)),
    }
}

fn node(node: &NodeView) -> JobNode {
    let ranks = match (node.first_rank, node.worker_states.last()) {
        (Some(first), Some(last)) if last.rank > first => format!("{first}-{}", last.rank),
        (Some(first), _) => first.to_string(),
        (None, _) => String::new(),
    };
    let ill = node.devices.iter().filter(|device| !device.healthy).count();
    let devices = match (node.devices.len(), ill) {
        (0, _) => String::new(),
        (all, 0) => format!("{all} well"),
        (all, ill) => format!("{ill} of {all} ill"),
    };
    let busy = node.processors_busy_ratio;
    JobNode {
        name: node.name.clone(),
        state: node
            .bar
            .map_or_else(|| node.state.to_owned(), |bar| format!("{}: {bar}", node.state)),
        is_ill: ["silent", "barred"].contains(&node.state) || ill > 0,
        slot: node.slot.map(|slot| slot.to_string()).unwrap_or_default(),
        ranks,
        workers: node.workers_sentence(),
        heard: node.heard_ago_ns.map_or_else(|| String::from("never"), age),
        busy: busy.map_or_else(|| String::from("n/a"), |busy| format!("{:.0}%", busy * 100.0)),
        devices,
    }
}

fn matrix_of(view: &MatrixView, incident: &str) -> Matrix {
    let count = view.nodes.len().min(MAX_MATRIX_NODES);
    let mut cells = vec![None; count * count];
    for cell in view.cells.iter().filter(|cell| cell.from < count && cell.to < count) {
        cells[cell.from * count + cell.to] =
            Some(Latency { times: cell.times, is_slow: cell.is_slow });
    }
    let left_out =
        u64::from(view.left_out) + u64::try_from(view.nodes.len() - count).unwrap_or(u64::MAX);
    let at = Timestamp(view.at_unix_ms.saturating_mul(1_000_000));
    let mut about = format!(
        "Latencies in incident {incident}, as multiples of what is usual; rows send, columns \
         receive; {}.",
        calendar::format(at)
    );
    if left_out > 0 {
        about.push_str(&format!(" {left_out} nodes are left out."));
    }
    Matrix { about, nodes: view.nodes[..count].to_vec(), cells }
}

// --- the agents of this machine ---------------------------------------------------------------

/// What an agent answers at `/metrics`, see `docs/cluster-clients.md`.
#[derive(Debug, Deserialize)]
struct AgentSnapshot {
    state: String,
    rank: Option<u32>,
    world_size: Option<u32>,
    epoch: Option<u64>,
    #[serde(default)]
    latencies: std::collections::BTreeMap<String, f64>,
}

fn agents() -> Vec<Agent> {
    let sockets = agent::state_parents().into_iter().flat_map(|parent| sockets_in(&parent));
    sockets.take(MAX_AGENTS).map(|(node, socket)| agent_at(&node, &socket)).collect()
}

/// The agents that have their state below a directory, by node.
fn sockets_in(parent: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut found: Vec<(String, PathBuf)> = entries
        .take(MAX_ENTRIES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let node = name.strip_prefix(agent::STATE_PREFIX)?.replace("%3A", ":");
            let socket = entry.path().join(agent::SOCKET);
            socket.exists().then_some((node, socket))
        })
        .collect();
    found.sort();
    found
}

fn agent_at(node: &str, socket: &Path) -> Agent {
    match metrics(socket) {
        Err(error) => Agent {
            heading: format!("Agent of {node} does not answer: {}", with_causes(&error)),
            is_silent: true,
            latencies: Vec::new(),
        },
        Ok(found) => {
            let part = |name: &str, number: Option<u64>| {
                number.map(|number| format!(", {name} {number}")).unwrap_or_default()
            };
            let rank = part("first rank", found.rank.map(u64::from));
            let world = found.world_size.map(|size| format!(" of {size}")).unwrap_or_default();
            let epoch = part("epoch", found.epoch);
            Agent {
                heading: format!("Agent of {node}: {}{rank}{world}{epoch}", found.state),
                is_silent: false,
                latencies: found.latencies.into_iter().collect(),
            }
        }
    }
}

/// Asks an agent, in whose place may be anybody: its answer is bounded in time and size.
fn metrics(socket: &Path) -> io::Result<AgentSnapshot> {
    let until = Instant::now() + TIMEOUT;
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // Version 1.0, so that the answer comes in one piece and ends with the connection.
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut part = [0; 8192];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            count => answer.extend_from_slice(&part[..count]),
        }
        if u64::try_from(answer.len()).unwrap_or(u64::MAX) > MAX_ANSWER_BYTES {
            return Err(io::Error::other("its answer is too long"));
        }
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) =
        end.map_or((&answer[..], &[][..]), |end| (&answer[..end], &answer[end + 4..]));
    let status = String::from_utf8_lossy(head).lines().next().unwrap_or_default().to_owned();
    if status.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!("it says {status:?}")));
    }
    serde_json::from_slice(body).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use telltale_harness::Scratch;

    use super::{agent_at, sockets_in};

    /// What is shown of an agent that answers this.
    fn shown(answer: &'static [u8]) -> String {
        let place = Scratch::new();
        let state = place.join("telltale-agent-rack%3A7");
        std::fs::create_dir(&state).unwrap();
        let listener = UnixListener::bind(state.join("agent.sock")).unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let found = sockets_in(place.path());
        assert_eq!(found.len(), 1);
        let agent = agent_at(&found[0].0, &found[0].1);
        serving.join().unwrap();
        format!("{} {:?}", agent.heading, agent.latencies)
    }

    #[test]
    fn an_agent_reports_latencies_and_who_is_in_its_place_costs_a_line() {
        let well = b"HTTP/1.0 200 OK\r\n\r\n{\"state\":\"active\",\"rank\":4,\"world_size\":8,\
                     \"epoch\":3,\"latencies\":{\"node-b\":0.125},\"more\":[]}";
        let expected = "Agent of rack:7: active, first rank 4 of 8, epoch 3 [(\"node-b\", 0.125)]";
        assert_eq!(shown(well), expected);
        for (bad, words) in [
            (&b"HTTP/1.0 403 Forbidden\r\n\r\n{}"[..], "does not answer: it says \"HTTP/1.0 403"),
            (b"HTTP/1.0 200 OK\r\n\r\n[]", "does not answer: invalid"),
            (b"", "does not answer: it says \"\""),
        ] {
            let shown = shown(bad);
            assert!(shown.contains(words), "{shown}");
        }
    }
}
