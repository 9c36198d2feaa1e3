//! The runtime arguments of one kernel: all words one after the other, and which cores they belong
//! to as few rectangles. Where and how many the words are is structure; what they are is not.

use smallvec::SmallVec;

use crate::cores::{CoreCoord, CoreRange};

/// Cores that were given their arguments one after the other, row by row, each the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgumentRun {
    /// The cores, in the order of [`CoreRange::cores`].
    pub cores: CoreRange,
    /// How many words each of them has.
    pub words_per_core: u32,
}

/// One kernel's runtime arguments.
///
/// The order in which cores are given theirs is the order of the words, and so part of the
/// program's structure: a program that was made from another order has its words elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeArguments<A = u32> {
    words: Vec<A>,
    placement: PlacementRuns,
}

/// A sequence of (core, number of words) as runs. What the runs are depends on the sequence alone,
/// not on how many cores were added at once, so equal sequences have equal runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PlacementRuns {
    runs: SmallVec<[ArgumentRun; 2]>,
}

// === impl RuntimeArguments ===

impl<A> Default for RuntimeArguments<A> {
    fn default() -> Self {
        Self { words: Vec::new(), placement: PlacementRuns::default() }
    }
}

impl<A: Copy> RuntimeArguments<A> {
    /// No arguments on any core.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for this many words without growing.
    #[must_use]
    pub fn with_capacity(words: usize) -> Self {
        Self { words: Vec::with_capacity(words), placement: PlacementRuns::default() }
    }

    /// Gives one core its words. A core must not be given words twice; validation refuses that.
    pub fn push(&mut self, core: CoreCoord, words: &[A]) {
        self.placement.push(core, count_of(words.len()));
        self.words.extend_from_slice(words);
    }

    /// Gives each core of a rectangle `N` words, row by row: the cheapest way to give many cores
    /// the same number.
    #[inline]
    pub fn push_range<const N: usize>(
        &mut self,
        cores: CoreRange,
        words_of: impl FnMut(CoreCoord) -> [A; N],
    ) where
        A: Default,
    {
        self.placement.push_range(cores, count_of(N));
        let start = self.words.len();
        self.words.resize(start + cores.core_count() * N, A::default());
        fill_range(self.words.get_mut(start..).unwrap_or_default(), cores, words_of);
    }

    /// Adds a run as it is, without joining it with the one before: for runs that were joined
    /// already. There must be `words_per_core` words for each core.
    pub(crate) fn push_run(&mut self, run: ArgumentRun, words: &[A]) {
        self.placement.runs.push(run);
        self.words.extend_from_slice(words);
    }

    /// Every word, core after core in the order in which they were given.
    #[must_use]
    pub fn words(&self) -> &[A] {
        &self.words
    }

    /// The same, to change values in place; their number and place cannot change.
    pub fn words_mut(&mut self) -> &mut [A] {
        &mut self.words
    }

    /// Which cores the words belong to.
    #[must_use]
    pub fn runs(&self) -> &[ArgumentRun] {
        self.placement.runs()
    }

    /// Every core with its words, in the order in which they were given.
    pub fn cores(&self) -> impl Iterator<Item = (CoreCoord, &[A])> {
        let mut rest = self.words.as_slice();
        self.placement.cores().map(move |(core, count)| {
            let (words, after) = rest.split_at(count);
            rest = after;
            (core, words)
        })
    }

    /// The words of one core; none if it was given none, not even an empty list.
    #[must_use]
    pub fn of(&self, core: CoreCoord) -> Option<&[A]> {
        self.placement.position(core).and_then(|place| self.words.get(place))
    }

    /// The same places with other values.
    pub fn map<B>(&self, value_of: impl FnMut(&A) -> B) -> RuntimeArguments<B> {
        RuntimeArguments {
            words: self.words.iter().map(value_of).collect(),
            placement: self.placement.clone(),
        }
    }
}

// === impl PlacementRuns ===

impl PlacementRuns {
    pub(crate) fn runs(&self) -> &[ArgumentRun] {
        &self.runs
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
    }

    /// Adds one core. The last run grows to the right while it is one row; a row that came to span
    /// the columns of the run above it becomes part of that run.
    pub(crate) fn push(&mut self, core: CoreCoord, words_per_core: u32) {
        match self.runs.last_mut() {
            Some(last) if follows_in_row(last, core, words_per_core) => {
                last.cores = CoreRange::new(last.cores.start(), core);
            }
            _ => self.runs.push(ArgumentRun { cores: core.into(), words_per_core }),
        }
        self.join_last_row();
    }

    /// Adds the cores of a rectangle, row by row.
    pub(crate) fn push_range(&mut self, cores: CoreRange, words_per_core: u32) {
        if self.runs.is_empty() {
            self.runs.push(ArgumentRun { cores, words_per_core });
        } else {
            cores.cores().for_each(|core| self.push(core, words_per_core));
        }
    }

    fn join_last_row(&mut self) {
        let [.., above, row] = self.runs.as_mut_slice() else { return };
        let same_columns = above.cores.start().x == row.cores.start().x
            && above.cores.end().x == row.cores.end().x;
        let next_row = above.cores.end().y.checked_add(1) == Some(row.cores.start().y);
        if same_columns
            && next_row
            && row.cores.height() == 1
            && above.words_per_core == row.words_per_core
        {
            above.cores = CoreRange::new(above.cores.start(), row.cores.end());
            self.runs.pop();
        }
    }

    pub(crate) fn cores(&self) -> impl Iterator<Item = (CoreCoord, usize)> {
        self.runs.iter().flat_map(|run| {
            let count = run.words_per_core as usize;
            run.cores.cores().map(move |core| (core, count))
        })
    }

    /// Where the words of `core` are among the kernel's words.
    pub(crate) fn position(&self, core: CoreCoord) -> Option<std::ops::Range<usize>> {
        position_in(&self.runs, core)
    }
}

/// Where the words of `core` are among the words that `runs` place.
pub(crate) fn position_in(runs: &[ArgumentRun], core: CoreCoord) -> Option<std::ops::Range<usize>> {
    let mut before = 0;
    for run in runs {
        let count = run.words_per_core as usize;
        if let Some(position) = run.cores.position(core) {
            let start = before + position * count;
            return Some(start..start + count);
        }
        before += run.cores.core_count() * count;
    }
    None
}

/// Writes the words of each core of a rectangle, row by row: loops over slices of known length,
/// which the compiler turns into few wide instructions.
#[inline]
pub(crate) fn fill_range<A: Copy, const N: usize>(
    room: &mut [A],
    cores: CoreRange,
    mut words_of: impl FnMut(CoreCoord) -> [A; N],
) {
    let (start, end) = (cores.start(), cores.end());
    let rows = room.chunks_exact_mut((cores.width() * N).max(1));
    for (y, row) in (start.y..=end.y).zip(rows) {
        for (x, place) in (start.x..=end.x).zip(row.chunks_exact_mut(N.max(1))) {
            if let Some(place) = place.first_chunk_mut() {
                *place = words_of(CoreCoord::new(x, y));
            }
        }
    }
}

fn follows_in_row(last: &ArgumentRun, core: CoreCoord, words_per_core: u32) -> bool {
    last.words_per_core == words_per_core
        && last.cores.height() == 1
        && last.cores.end().y == core.y
        && last.cores.end().x.checked_add(1) == Some(core.x)
}

fn count_of(words: usize) -> u32 {
    u32::try_from(words).expect("a core's arguments are far fewer than 2^32")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

    use super::{ArgumentRun, PlacementRuns, RuntimeArguments};
    use crate::cores::{CoreCoord, CoreRange};

    fn some_ranges() -> impl Strategy<Value = Vec<(CoreRange, u32)>> {
        let corner = || (0u16..5, 0u16..5).prop_map(|(x, y)| CoreCoord::new(x, y));
        let range = (corner(), corner()).prop_map(|(one, two)| CoreRange::new(one, two));
        proptest::collection::vec((range, 0u32..3), 0..5)
    }

    proptest! {
        #[test]
        fn runs_depend_on_the_sequence_only(ranges in some_ranges()) {
            let (mut at_once, mut one_by_one) = (PlacementRuns::default(), PlacementRuns::default());
            for (range, count) in ranges {
                at_once.push_range(range, count);
                range.cores().for_each(|core| one_by_one.push(core, count));
            }
            prop_assert_eq!(&at_once, &one_by_one);
            let sequence: Vec<_> = at_once.cores().collect();
            let mut again = PlacementRuns::default();
            for (core, count) in &sequence {
                again.push(*core, u32::try_from(*count).unwrap());
            }
            prop_assert_eq!(&again, &at_once);
            prop_assert!(at_once.runs().len() <= sequence.len());
        }
    }

    #[test]
    fn a_grid_given_row_by_row_is_one_run() {
        let mut arguments = RuntimeArguments::new();
        for y in 0..8 {
            for x in 0..8 {
                arguments.push(CoreCoord::new(x, y), &[u32::from(x), u32::from(y)]);
            }
        }
        let grid = CoreRange::new(CoreCoord::new(0, 0), CoreCoord::new(7, 7));
        assert_eq!(arguments.runs(), [ArgumentRun { cores: grid, words_per_core: 2 }]);
        assert_eq!(arguments.of(CoreCoord::new(3, 5)), Some([3, 5].as_slice()));
        assert_eq!(arguments.of(CoreCoord::new(8, 5)), None);

        let mut at_once = RuntimeArguments::new();
        at_once.push_range(grid, |core| [u32::from(core.x), u32::from(core.y)]);
        assert_eq!(at_once, arguments);
        assert!(at_once.cores().all(|(core, words)| arguments.of(core) == Some(words)));
    }
}
