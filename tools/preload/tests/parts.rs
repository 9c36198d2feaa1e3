//! The unit tests of the parts that can run without being preloaded.

#[path = "../src/cuda/extent.rs"]
mod extent;
#[path = "../src/filter.rs"]
mod filter;
