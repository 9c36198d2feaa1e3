//! What older versions wrote stays readable: files and answers of each of them, with what it printed
//! of them, in a directory a version. README.md says how one is added.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod entry;
mod files;
mod fits;
mod older_node;
mod service;
mod without;
