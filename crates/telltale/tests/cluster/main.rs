//! Agents and coordinators as they run: real processes, sockets and signals.

mod job;
mod pytorch;
mod recovery;
mod strangers;
mod supervision;
