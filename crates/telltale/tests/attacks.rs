//! Attacks on a real `telltale serve` in a directory that users share, each by a real user of its
//! own; `table.toml` says what each is about. They need root, to become those users.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod actor;
mod asking;
mod commands;
mod exhaustion;
mod fixture;
mod injection;
mod loopback;
mod naming;
mod oversize;
mod poison;
mod reading;
mod roles;
mod sites;
mod squatting;
mod stalling;
mod table;
