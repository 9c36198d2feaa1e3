//! The unit tests of the parts that can run without being preloaded.

#[path = "../src/early.rs"]
mod early;
#[path = "../src/table.rs"]
mod table;
