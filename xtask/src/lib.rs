//! Repository chores, as functions that the command and the tests call.
//!
//! Nothing here is part of the product, and nothing outside `xtask` depends on it.
#![forbid(unsafe_code)]

pub mod dist;
pub mod finding;
pub mod generate;
pub mod gpu;
pub mod layout;
pub mod package;
pub mod parsed;
pub mod pictures;
pub mod repository;
pub mod site;
pub mod size;
pub mod skipped;
pub mod tidy;
pub mod version;
