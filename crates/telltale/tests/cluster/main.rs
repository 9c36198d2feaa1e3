//! Agents and coordinators as they run: real processes, sockets and signals.

mod etcd;
mod job;
mod network;
mod pytorch;
mod recovery;
mod slow;
mod strangers;
mod supervision;
mod throttle;
mod training;
