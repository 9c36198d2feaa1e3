//! What the agent keeps of transfers from one report to the next.
//!
//! Records come in and windows go out; no single transfer is kept beyond one report.

pub mod progress;
pub mod tracker;
pub mod windows;
