//! The ledger as its users see it: writers, readers, directories, and what hostile hands do.

mod counting;
mod machine;
