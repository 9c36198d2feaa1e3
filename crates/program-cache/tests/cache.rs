//! The cache, seen from outside: an operation is dispatched, and what its program would have run
//! with is checked.

mod bounds;
mod bug_classes;
mod checking;
mod failing;
mod interrupted;
mod memory;
mod operations;
mod paper;
mod stale;
mod threads;
mod weight;
