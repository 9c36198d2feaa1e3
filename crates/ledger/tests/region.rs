//! Memory regions of tt-metal, against C structs that the system's compiler lays out.

mod churn;
mod defects;
mod hostile;
mod members;
mod offsets;
mod proposed;
mod samples;
mod writer;
