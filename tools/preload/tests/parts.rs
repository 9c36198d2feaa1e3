//! The unit tests of the parts that can run without being preloaded.

#[path = "../src/filter.rs"]
mod filter;
