//! Faults in synthetic machines: how often detection names them, how soon, and whom it names wrongly.
//!
//! [`machine`] makes latencies up, [`oracle`] tries all explanations of what they would be without
//! noise, [`run`] lets the shipped detector look, and [`suite`] adds it up.

pub mod blind;
pub mod hangs;
pub mod machine;
pub mod oracle;
pub mod run;
pub mod shape;
pub mod steps;
pub mod suite;
pub mod week;
