//! Queries asked of a machine, and of everything that somebody may type.

mod any_text;
mod asked;
mod machine;
mod refused;
