//! Support for the workspace's tests: skipping with a record, scratch directories, small disks, child
//! processes, other users, PID namespaces, etcd, C and C++ sources, binaries of other packages,
//! certificates (with the feature of this name), and a strict reader of Prometheus' texts.
//!
//! This crate is a development dependency only (`xtask` alone links it, for the skip file and a scratch directory).
//! It knows nothing about Telltale's own formats, and it never signals a process that it did not
//! start. Failures panic with what was tried: in a test that is the report.
#![forbid(unsafe_code)]

#[cfg(feature = "certificates")]
pub mod authority;
mod built;
mod children;
mod code_blocks;
mod compiled;
mod effort;
mod etcd;
pub mod exposition;
mod isolation;
mod own_process;
mod ports;
mod python;
mod scratch;
pub mod skipped;
mod small_disk;
mod waiting;

pub use built::{cargo_bin, cargo_library_directory};
pub use children::ChildGuard;
pub use code_blocks::code_blocks;
pub use compiled::{compile_c, compile_cpp};
pub use effort::{long, rounds};
pub use etcd::{EtcdCluster, EtcdTlsFiles, needs_etcd};
pub use isolation::{ProcMount, as_user, in_pid_namespace, needs_pid_namespaces, needs_root};
pub use own_process::has_own_process;
pub use ports::port_for_later;
pub use python::{python, python_module, python_with};
pub use scratch::Scratch;
pub use skipped::skip;
pub use small_disk::on_small_disk;
pub use waiting::wait_until;
