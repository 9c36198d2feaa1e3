//! The plugin for NCCL in a real NCCL: whether it is loaded, and whether it records each collective.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::agent::Received;
use super::child::{Output, Running};
use super::programs::Programs;
use super::python::{self, CANNOT};
use super::report::{ComparedValue, Verdict};

const SCRIPT: &str = include_str!("nccl.py");

/// Importing PyTorch, and NCCL's start over all GPUs, may take this long.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How long the plugin may take to post what has ended; it does so ten times a second.
const POSTED_WITHIN: Duration = Duration::from_secs(20);

/// What the plugin writes to NCCL's log when its first communicator is made.
const LOADED: &str = "PROFILER/Telltale: collectives are";

/// The oldest NCCL whose interface the plugin has.
const OLDEST: (u32, u32) = (2, 28);

/// What a rank prints.
#[derive(Debug, Deserialize)]
struct Printed {
    calls: u64,
    nccl: String,
}

/// Runs a job with a rank on each of `gpus`, with its files in `place`. Gives NCCL's version where there is one.
pub(super) fn compare(
    programs: &Programs,
    place: &Path,
    gpus: usize,
) -> Result<(Vec<ComparedValue>, Option<String>), String> {
    let script = python::write(place, "nccl.py", SCRIPT)?;
    let socket = place.join("agent");
    let received = Received::listen(&socket)?;
    let mut ranks = Vec::new();
    for rank in 0..gpus {
        let mut command = Command::new(python::program());
        command.arg(&script).env("NCCL_PROFILER_PLUGIN", &programs.nccl);
        command.envs([("RANK", rank.to_string()), ("WORLD_SIZE", gpus.to_string())]);
        command.env("TELLTALE_GPU_STORE", place.join("store"));
        command.env("TELLTALE_LOG_CCL", format!("unix:{}", socket.display()));
        command.env_remove("TELLTALE_NCCL_EVENTS");
        command.envs([("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "INIT,ENV,PROFILE")]);
        ranks.push(Running::start(&mut command)?);
    }
    let lines = match Running::lines(&mut ranks, "nccl: ", TIMEOUT)? {
        Ok(lines) => lines,
        // One that ended is why others still wait.
        Err(rank) => return failed(ranks.swap_remove(rank)),
    };
    let mut printed: Vec<Printed> = Vec::new();
    for line in lines {
        let line = serde_json::from_str(&line);
        printed.push(line.map_err(|error| format!("a rank is not understood: {error}"))?);
    }
    let expected: u64 = printed.iter().map(|printed| printed.calls).sum();
    let deadline = Instant::now() + POSTED_WITHIN;
    while gpus > 1 && received.reductions() < expected && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut outputs = Vec::new();
    for running in ranks {
        outputs.push(running.finish(TIMEOUT)?);
    }
    if let Some(output) = outputs.iter().find(|output| !output.status.success()) {
        return Err(format!("a rank failed: {}", output.complaint()));
    }
    let version = printed.first().map_or("", |printed| printed.nccl.as_str());
    let counts = Counts { expected, recorded: received.reductions(), ranks: gpus };
    Ok((rows(&outputs, version, &counts), Some(format!("NCCL {version}"))))
}

/// Why a rank ended before it reported.
fn failed(running: Running) -> Result<(Vec<ComparedValue>, Option<String>), String> {
    let output = running.finish(TIMEOUT)?;
    let why = output.complaint();
    match output.status.code() {
        Some(CANNOT) => Ok((vec![alone(Verdict::NotChecked(why))], None)),
        _ => Err(format!("a rank failed: {why}")),
    }
}

/// A row that stands for all of this part.
pub(super) fn alone(verdict: Verdict) -> ComparedValue {
    row(LOG, "", "", verdict)
}

/// Collectives of all ranks.
struct Counts {
    expected: u64,
    recorded: u64,
    ranks: usize,
}

const LOG: &str = "NCCL, ranks";

fn rows(outputs: &[Output], version: &str, counts: &Counts) -> Vec<ComparedValue> {
    let has_loaded = |output: &&Output| output.out.contains(LOADED) || output.err.contains(LOADED);
    let loaded = outputs.iter().filter(has_loaded).count();
    let is_loaded = loaded == counts.ranks;
    let verdict = match (is_loaded, is_new_enough(version)) {
        (true, _) => Verdict::Agrees,
        (false, Some(false)) => Verdict::NotChecked(format!(
            "NCCL {version} has no such interface; the plugin needs {}.{} or newer",
            OLDEST.0, OLDEST.1
        )),
        (false, _) => Verdict::Differs(String::from("NCCL's log does not have the plugin's line")),
    };
    let Counts { expected, recorded, ranks } = counts;
    let mut rows = vec![row(LOG, &ranks.to_string(), &format!("{loaded} loaded"), verdict)];
    let recording = match (is_loaded, *ranks) {
        (false, _) => return rows,
        (true, 1) => Verdict::NotChecked(String::from(
            "NCCL starts no kernel for one rank, so nothing is recorded; this needs two GPUs",
        )),
        (true, _) if expected == recorded => Verdict::Agrees,
        (true, _) => Verdict::Differs(String::from("each all_reduce must be recorded once")),
    };
    let of_job = "torch.distributed.all_reduce, calls";
    rows.push(row(of_job, &expected.to_string(), &format!("{recorded} recorded"), recording));
    rows
}

fn row(theirs: &str, their_value: &str, our_value: &str, verdict: Verdict) -> ComparedValue {
    ComparedValue {
        gpu: None,
        theirs: theirs.to_owned(),
        their_value: their_value.to_owned(),
        ours: String::from("profiler plugin"),
        our_value: our_value.to_owned(),
        verdict,
    }
}

/// Whether this NCCL has the interface; none where its version is not understood.
fn is_new_enough(version: &str) -> Option<bool> {
    let mut parts = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else { return None };
    Some((major, minor) >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_are_compared_as_numbers() {
        let found = ["2.28.3", "2.9.1", "3.0", "2", "x.y"].map(is_new_enough);
        assert_eq!(found, [Some(true), Some(false), Some(true), None, None]);
    }
}
