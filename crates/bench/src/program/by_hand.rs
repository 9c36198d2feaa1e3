//! The operation with a key and an update by hand, in Rust: what it depends on as the key of a map,
//! hashed quickly and compared in full, one lock around the map as a cache of a process needs, and
//! stores to the words that change, which lie in one row. The C++ baselines neither compare nor lock.

use std::hash::BuildHasherDefault;
use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use rustc_hash::FxHasher;

use crate::program::shape::{Addresses, Attributes, CORES, PROGRAM_WORDS, WORDS, nested_at};
use crate::seed::TensorSpec;

/// The programs of the operation.
#[derive(Debug, Default)]
pub(super) struct ByHand {
    programs: Mutex<Programs>,
}

/// Words by what the program depends on.
type Programs = HashMap<(Attributes, [TensorSpec; 3]), Vec<u32>, BuildHasherDefault<FxHasher>>;

/// Words of a kernel.
const KERNEL_WORDS: usize = CORES * WORDS;

impl ByHand {
    /// Dispatches the program and hands its words to `run`.
    #[inline]
    pub(super) fn dispatch<R>(
        &self,
        attributes: &Attributes,
        operands: &[TensorSpec; 3],
        at: Addresses,
        run: impl FnOnce(&[u32]) -> R,
    ) -> R {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        match programs.get_mut(&(*attributes, *operands)) {
            Some(words) => {
                override_runtime_arguments(words, at);
                run(words)
            }
            None => {
                let words = create(attributes, at);
                run(programs.entry((*attributes, *operands)).or_insert(words))
            }
        }
    }
}

fn create(attributes: &Attributes, at: Addresses) -> Vec<u32> {
    let described = nested_at(attributes, at);
    let mut words = Vec::with_capacity(PROGRAM_WORDS);
    for kernel in &described.kernels {
        words.extend_from_slice(kernel.runtime_arguments.words());
    }
    words
}

fn override_runtime_arguments(words: &mut [u32], at: Addresses) {
    let (reader, rest) = words.split_at_mut(KERNEL_WORDS);
    let (_compute, writer) = rest.split_at_mut(KERNEL_WORDS);
    for (reader, writer) in reader.chunks_exact_mut(WORDS).zip(writer.chunks_exact_mut(WORDS)) {
        reader[0] = at.a;
        reader[1] = at.b;
        writer[0] = at.out;
    }
}
