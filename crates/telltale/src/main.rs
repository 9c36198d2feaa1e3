//! The `telltale` command.

fn main() {}
