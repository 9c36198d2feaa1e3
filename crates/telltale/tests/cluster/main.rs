//! Agents and coordinators as they run: real processes, sockets and signals.

mod behind;
mod commands;
mod crowds;
mod devices;
mod escapes;
mod etcd;
mod files;
mod forged_files;
mod forged_posts;
mod held_up;
mod job;
mod lost;
mod neighbours;
mod network;
mod orders;
mod pytorch;
mod recovery;
mod reruns;
mod saving;
mod shim;
mod slow;
mod strangers;
mod supervision;
mod throttle;
mod training;
mod two_workers;
