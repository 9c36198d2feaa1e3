//! The two recorded traces that travel inside every binary, so that nothing needs to be found.
//!
//! `traces/README.md` says how they were made.

/// A trace that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Short name, as in `traces/<name>.trace`.
    pub name: &'static str,
    /// The file; give it to [`crate::Reader::new`] or [`crate::Trace::read`].
    pub bytes: &'static [u8],
}

/// The traces `train` (a GPT learns) and `generate` (it writes token by token), in this order.
pub const fn shipped() -> [Shipped; 2] {
    [
        Shipped { name: "train", bytes: include_bytes!("../../../traces/train.trace").as_slice() },
        Shipped {
            name: "generate",
            bytes: include_bytes!("../../../traces/generate.trace").as_slice(),
        },
    ]
}
