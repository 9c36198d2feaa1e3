//! The files in `deploy/`: parsed, linted and, as far as a machine without a container engine
//! allows, run. What a tool that is not installed would say is recorded as skipped.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod cluster;
mod commands;
mod compose;
mod dockerfile;
mod files;
mod installed;
mod kubernetes;
mod metrics;
mod readme;
mod scripts;
mod systemd;
