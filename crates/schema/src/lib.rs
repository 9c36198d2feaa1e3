#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod alert;
pub mod calendar;
pub mod chip;
pub mod clock;
pub mod device;
pub mod fault;
pub mod fleet;
mod float;
pub mod health;
pub mod history;
#[cfg(feature = "json-schema")]
mod json_schema;
pub mod memory;
pub mod metric;
pub mod moment;
pub mod process;
pub mod quantity;
pub mod reading;
pub mod sensor;
pub mod snapshot;
pub mod text;
pub mod topology;
