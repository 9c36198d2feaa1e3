//! Agents and coordinators as they run: real processes, sockets and signals.

mod strangers;
mod supervision;
