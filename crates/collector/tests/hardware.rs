//! One suite for every source of devices that is not Tenstorrent's: what it finds in a machine, what
//! it says where nothing is, and how it does when files are garbage, forbidden, hanging or gone.

// A step that fails is the report of the test that needed it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bus;
mod conformance;
mod drm;
mod host;
mod last_resort;
mod link;
mod neuron;
pub(crate) mod nvidia;
mod parts;
mod tree;
