//! Why a process stands still: its threads and stacks, taken from outside, and one sentence about them.
//!
//! [`take`] looks at processes; everything after it is a function of the evidence alone, so a coordinator
//! can judge what agents took on other machines.

#![deny(unsafe_code)]

pub mod activity;
mod bounds;
mod children;
pub mod context;
pub mod evidence;
pub mod explanation;
#[allow(unsafe_code)]
mod mapped;
mod memory;
mod native;
mod permission;
mod python;
pub mod report;
pub mod request;
pub mod selection;
pub mod standing;
mod system_calls;
pub mod take;
mod threads;
