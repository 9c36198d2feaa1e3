//! Queries asked of a machine, and of any typed text.

mod any_text;
mod asked;
mod chosen;
mod machine;
mod refused;
