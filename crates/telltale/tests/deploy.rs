//! The files in `deploy/`: parsed, linted and, as far as a machine without a container engine
//! allows, run. What a tool that is not installed would say is recorded as skipped.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod cluster;
mod commands;
mod compose;
mod dashboard;
mod dockerfile;
mod files;
mod galaxy;
mod installed;
mod kubernetes;
mod metrics;
mod node_problem_detector;
mod prometheus;
mod readme;
mod scripts;
mod slurm;
mod systemd;
mod who;
