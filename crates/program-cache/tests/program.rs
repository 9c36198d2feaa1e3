//! Proofs about described programs: what is in a key, what is not, and what is refused.

mod example;
mod flat;
mod injective;
mod merge;
mod mutation;
mod operands;
mod shapes;
mod some_program;
mod table;
mod validate;
