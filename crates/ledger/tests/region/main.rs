//! Memory regions of tt-metal, against C structs that the system's compiler lays out.

mod defects;
mod hostile;
mod offsets;
mod samples;
