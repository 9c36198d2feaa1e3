//! The programs around the machines of `telltale-cluster`: sockets, processes, files, stores and gRPC.
#![forbid(unsafe_code)]

pub mod attend;
pub mod examination;
pub mod intake;
pub mod operator;
pub mod protocol;
mod random;
pub mod reach;
pub mod readers;
pub mod server;
pub mod store;
pub mod supervisor;
pub mod view;
