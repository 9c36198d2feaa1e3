//! The `telltale` command.
#![forbid(unsafe_code)]

fn main() {}
