//! The built command, used as a person or a script uses it: arguments, output, exit status, and
//! what is left afterwards. Nothing here looks inside.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod alerts;
mod chosen;
mod cleaning;
mod columns;
pub(crate) mod command;
mod completions;
mod coordinated;
mod crowded;
mod demo;
mod demo_cluster;
mod described;
mod device_faults;
mod doctor;
mod documented;
mod emulate;
mod environment;
mod events;
mod faults;
mod filled;
mod filter;
mod gpt;
mod health;
mod history;
mod hosts;
mod json;
mod machines;
mod man;
mod migrate;
mod monitored;
mod names;
mod namespaces;
mod nothing;
mod page;
mod panes;
mod past_faults;
mod pictures;
mod printed;
mod questions;
mod ranks;
mod recordings;
mod regions;
mod replay;
mod reported;
mod run;
pub(crate) mod serve;
mod strangers;
mod terminal;
mod top;
mod topo;
mod unsteady;
mod usage;
mod watch;
