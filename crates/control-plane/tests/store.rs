//! Both stores pass one suite; what only one of them promises is beside it.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod conformance;
mod coordinator;
mod etcd;
mod journal;
mod secure;
