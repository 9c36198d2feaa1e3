//! `cargo bench --profile dist -p telltale-bench [-- [--quick] [SUBJECT...]]`: prints each subject's table.
//!
//! Subjects: record, address, sweep, endpoint, cost, start, program, experiments, stream,
//! screen, scrape, serve, hangs, hosts, cluster, failover, recovery, warm, train, faults, preload, python; all when none is
//! named.
#![forbid(unsafe_code)]

#[path = "numbers/failover.rs"]
mod failover;
#[path = "numbers/faults.rs"]
mod faults;
#[path = "numbers/python.rs"]
mod python;
#[path = "numbers/recovery.rs"]
mod recovery;
#[path = "numbers/stage.rs"]
mod stage;
#[path = "numbers/training.rs"]
mod training;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use telltale_bench::rundir::RunDirectory;
use telltale_bench::sample::Effort;
use telltale_bench::stream::ClientProgram;
use telltale_bench::table::Table;
use telltale_bench::{
    address, cluster, cost, endpoint, experiments, hangs, hosts, launch, pinning, preload, program,
    record, scrape, screen, serve, stream, sweep,
};
use telltale_harness::{cargo_bin, cargo_library_directory};

const SUBJECTS: [&str; 22] = [
    "record",
    "address",
    "sweep",
    "endpoint",
    "cost",
    "start",
    "screen",
    "program",
    "experiments",
    "stream",
    "scrape",
    "serve",
    "hangs",
    "hosts",
    "cluster",
    "failover",
    "recovery",
    "warm",
    "train",
    "faults",
    "preload",
    "python",
];

fn main() -> ExitCode {
    let (effort, subjects) = match parse(std::env::args().skip(1)) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(64);
        }
    };
    println!("{}\n", surroundings());
    for subject in subjects {
        match measure(&subject, effort) {
            Ok(table) => println!("{table}"),
            Err(error) => {
                eprintln!("{subject}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<(Effort, Vec<String>), String> {
    let mut effort = Effort::Full;
    let mut subjects = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            // cargo adds this one.
            "--bench" => {}
            "--quick" => effort = Effort::Quick,
            name if SUBJECTS.contains(&name) => subjects.push(argument),
            other => {
                return Err(format!("unknown argument {other:?}: give --quick or {SUBJECTS:?}"));
            }
        }
    }
    if subjects.is_empty() {
        subjects = SUBJECTS.map(str::to_owned).to_vec();
    }
    Ok((effort, subjects))
}

/// What the reader needs to judge the numbers by: other load spoils them.
fn surroundings() -> String {
    let processors = pinning::processors().map_or_else(|e| e.to_string(), |n| n.to_string());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    format!("{processors} processors, load average at the start {load} (other load spoils numbers)")
}

fn measure(subject: &str, effort: Effort) -> Result<Table, Box<dyn Error>> {
    let worker = Path::new(env!("CARGO_BIN_EXE_telltale-bench-worker"));
    if pinning::processors()? < 2 {
        eprintln!("{subject}: only one processor: numbers for two threads mean little here");
    }
    Ok(match subject {
        "record" => record::table(effort)?,
        "address" => address::table(effort)?,
        "sweep" => sweep::table(worker, effort)?,
        "endpoint" => endpoint::table(worker, effort)?,
        "cost" => cost::table(worker, effort)?,
        "experiments" => experiments::table(effort)?,
        "program" => program::table(effort)?,
        "screen" => {
            screen::table(worker, &cargo_bin("telltale"), &cargo_bin("telltale-top"), effort)?
        }
        "scrape" => scrape::table(worker, &cargo_bin("telltale-serve"), effort)?,
        "serve" => serve::table(worker, &cargo_bin("telltale-serve"), effort)?,
        "hangs" => hangs::table(effort)?,
        "hosts" => hosts::table(&cargo_bin("telltale"), effort)?,
        "cluster" => cluster::table(&cargo_bin("telltale"), effort)?,
        "failover" => failover::table(&cargo_bin("telltale"), effort)?,
        "recovery" | "warm" | "train" | "faults" if !training::has_torch() => {
            return Err("needs PyTorch for /usr/bin/python3 (Debian: python3-torch)".into());
        }
        "recovery" => recovery::cold(&cargo_bin("telltale"), effort),
        "warm" => recovery::warm(&cargo_bin("telltale"), effort),
        "train" => recovery::train(&cargo_bin("telltale"), effort),
        "faults" => faults::table(&cargo_bin("telltale"), effort),
        "stream" => {
            let directory = RunDirectory::create()?;
            let libraries = cargo_library_directory("telltale-nrt", "telltale_nrt");
            stream::table(effort, &ClientProgram::compile(&libraries, directory.path())?)?
        }
        "preload" => {
            let directory = RunDirectory::create()?;
            let built = cargo_library_directory("telltale-preload", "telltale_preload");
            preload::table(&preload::Libraries::compile(&built, directory.path())?, effort)?
        }
        "python" => python::table(worker, effort)?,
        _ => launch::table(worker, &cargo_bin("telltale"), effort)?,
    })
}
