//! Makes fewer and larger dimensions of those that a function of each element does not distinguish,
//! so that blocks are long pieces of memory.

use telltale_program_cache::{Layout, OperandSpec};

use crate::extents::Extents;
use crate::memory_order::stored_elements;
use crate::program::OperandSource;

/// A result and its inputs in the dimensions that matter.
#[derive(Debug)]
pub(crate) struct Collapsed {
    /// The result's sizes.
    pub(crate) extents: Extents,
    /// Whether blocks are cut for tiles.
    pub(crate) tiled: bool,
    /// The inputs' sizes.
    inputs: Vec<Extents>,
    /// Whether every buffer is one row of numbers, whatever its layout.
    flat: bool,
}

impl Collapsed {
    pub(crate) fn of(result: &OperandSpec, inputs: &[&OperandSpec]) -> Self {
        let all_row_major = result.layout == Layout::RowMajor
            && inputs.iter().all(|input| input.layout == Layout::RowMajor);
        let alike =
            inputs.iter().all(|input| input.layout == result.layout && input.shape == result.shape);
        if alike {
            // Numbers beyond the edges of tiles are computed too, and never checked.
            let count = u32::try_from(stored_elements(result)).expect("checked: MAX_ELEMENTS");
            let extents = Extents([1, 1, 1, count]);
            return Self { extents, tiled: false, inputs: vec![extents; inputs.len()], flat: true };
        }
        let mut all: Vec<Extents> = Vec::with_capacity(inputs.len() + 1);
        all.push(Extents::of(&result.shape));
        all.extend(inputs.iter().map(|input| Extents::of(&input.shape)));
        if all_row_major {
            merge(&mut all);
        }
        let inputs = all.split_off(1);
        Self { extents: all[0], tiled: !all_row_major, inputs, flat: false }
    }

    /// How input `index`, the operand at that position, is read.
    pub(crate) fn input(&self, index: u16, spec: &OperandSpec) -> OperandSource {
        self.source(index, spec, self.inputs[usize::from(index)])
    }

    /// How the result is written.
    pub(crate) fn result(&self, position: u16, spec: &OperandSpec) -> OperandSource {
        self.source(position, spec, self.extents)
    }

    fn source(&self, position: u16, spec: &OperandSpec, extents: Extents) -> OperandSource {
        let mut source = OperandSource::with_extents(position, spec, extents);
        source.tiled &= !self.flat;
        source
    }
}

/// Joins neighbours along which each tensor is either whole or repeated in both.
fn merge(all: &mut [Extents]) {
    let whole = |all: &[Extents], tensor: usize, dimension: usize| {
        all[tensor].0[dimension] == all[0].0[dimension]
    };
    let mut inner = 3;
    while all[0].0[..inner].iter().any(|size| *size != 1) {
        let outer = inner - 1;
        let joins = (0..all.len()).all(|tensor| {
            // A dimension of size 1 joins anything.
            all[0].0[outer] == 1
                || all[0].0[inner] == 1
                || whole(all, tensor, outer) == whole(all, tensor, inner)
        });
        if !joins {
            inner = outer;
            continue;
        }
        for extents in all.iter_mut() {
            // The joined size goes to the inner dimension; what is outside moves in.
            extents.0[inner] *= extents.0[outer];
            extents.0.copy_within(0..outer, 1);
            extents.0[0] = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use crate::extents::Extents;

    #[track_caller]
    fn check(given: &[[u32; 4]], expected: &[[u32; 4]]) {
        let mut all: Vec<Extents> = given.iter().copied().map(Extents).collect();
        merge(&mut all);
        let all: Vec<[u32; 4]> = all.into_iter().map(|extents| extents.0).collect();
        assert_eq!(all, expected, "{given:?}");
    }

    #[test]
    fn dimensions_join_where_all_agree() {
        check(&[[2, 3, 4, 5], [2, 3, 4, 5]], &[[1, 1, 1, 120], [1, 1, 1, 120]]);
        check(&[[2, 3, 4, 5], [1, 1, 1, 5]], &[[1, 1, 24, 5], [1, 1, 1, 5]]);
        check(&[[2, 3, 4, 5], [1, 3, 4, 5]], &[[1, 1, 2, 60], [1, 1, 1, 60]]);
        check(&[[2, 3, 4, 5], [2, 3, 4, 1]], &[[1, 1, 24, 5], [1, 1, 24, 1]]);
        check(&[[2, 3, 4, 5], [2, 1, 4, 1]], &[[2, 3, 4, 5], [2, 1, 4, 1]]);
        check(&[[2, 3, 4, 5], [1, 3, 1, 5]], &[[2, 3, 4, 5], [1, 3, 1, 5]]);
        check(&[[1, 1, 1, 7], [1, 1, 1, 1]], &[[1, 1, 1, 7], [1, 1, 1, 1]]);
        check(&[[2, 3, 1, 5], [1, 1, 1, 1]], &[[1, 1, 1, 30], [1, 1, 1, 1]]);
    }
}
