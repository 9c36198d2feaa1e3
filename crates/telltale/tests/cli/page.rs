//! The page of `telltale serve` in a browser: what it shows, to whom, and that it can be read and
//! used by everybody. The service is the real one, the machine an emulated one with workloads that
//! allocate.

mod accessible;
mod agreed;
pub(crate) mod appearance;
pub(crate) mod browser;
mod faulty;
mod filtered;
pub(crate) mod fixture;
mod galaxy;
mod living;
mod many;
mod operated;
mod refused;
mod shown;
mod usage;
mod withheld;
