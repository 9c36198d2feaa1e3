//! Agents and coordinators as they run: real processes, sockets and signals.

mod commands;
mod devices;
mod etcd;
mod files;
mod job;
mod lost;
mod network;
mod orders;
mod pytorch;
mod recovery;
mod shim;
mod slow;
mod strangers;
mod supervision;
mod throttle;
mod training;
mod two_workers;
