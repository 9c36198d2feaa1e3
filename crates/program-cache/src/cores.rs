//! Cores of a chip's grid, rectangles of them, and sets of them in one normal form.

use std::fmt;

use smallvec::{SmallVec, smallvec};

use crate::key::ProgramKey;

/// A core's place in the logical grid. Ordered by row, then column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct CoreCoord {
    /// The column, from 0.
    pub x: u16,
    /// The row, from 0.
    pub y: u16,
}

/// A rectangle of cores; it holds at least one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ProgramKey)]
pub struct CoreRange {
    start: CoreCoord,
    end: CoreCoord,
}

/// A set of cores. Sets with the same cores are equal, in whatever order and cut into whatever
/// rectangles they were given; the normal form is kept, so comparing costs no more than reading.
#[derive(Clone, PartialEq, Eq, Hash, Default, ProgramKey)]
pub struct CoreRanges {
    /// Disjoint rectangles: bands of rows from top to bottom, in each the maximal runs of columns
    /// from left to right, no two bands that touch having the same columns.
    normal: SmallVec<[CoreRange; 1]>,
}

// === impl CoreCoord ===

impl CoreCoord {
    /// The core at this column and row.
    #[must_use]
    pub const fn new(x: u16, y: u16) -> Self {
        Self { x, y }
    }
}

impl PartialOrd for CoreCoord {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CoreCoord {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.y, self.x).cmp(&(other.y, other.x))
    }
}

impl fmt::Debug for CoreCoord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({}, {})", self.x, self.y)
    }
}

impl fmt::Display for CoreCoord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({}, {})", self.x, self.y)
    }
}

// === impl CoreRange ===

impl CoreRange {
    /// The rectangle with these two opposite corners, both of which are in it.
    #[must_use]
    pub fn new(corner: CoreCoord, opposite: CoreCoord) -> Self {
        Self {
            start: CoreCoord::new(corner.x.min(opposite.x), corner.y.min(opposite.y)),
            end: CoreCoord::new(corner.x.max(opposite.x), corner.y.max(opposite.y)),
        }
    }

    /// The corner with the smallest column and row.
    #[must_use]
    pub const fn start(&self) -> CoreCoord {
        self.start
    }

    /// The corner with the largest column and row; it is in the rectangle.
    #[must_use]
    pub const fn end(&self) -> CoreCoord {
        self.end
    }

    /// How many cores it holds.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.width() * self.height()
    }

    /// How many columns it spans.
    #[must_use]
    pub fn width(&self) -> usize {
        usize::from(self.end.x - self.start.x) + 1
    }

    /// How many rows it spans.
    #[must_use]
    pub fn height(&self) -> usize {
        usize::from(self.end.y - self.start.y) + 1
    }

    /// Whether `core` is in it.
    #[must_use]
    pub fn contains(&self, core: CoreCoord) -> bool {
        (self.start.x..=self.end.x).contains(&core.x)
            && (self.start.y..=self.end.y).contains(&core.y)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let start =
            CoreCoord::new(self.start.x.max(other.start.x), self.start.y.max(other.start.y));
        let end = CoreCoord::new(self.end.x.min(other.end.x), self.end.y.min(other.end.y));
        (start.x <= end.x && start.y <= end.y).then_some(Self { start, end })
    }

    /// Its cores, row by row.
    pub fn cores(&self) -> impl Iterator<Item = CoreCoord> + use<> {
        let (start, end) = (self.start, self.end);
        (start.y..=end.y).flat_map(move |y| (start.x..=end.x).map(move |x| CoreCoord::new(x, y)))
    }

    /// Where `core` comes in [`Self::cores`].
    #[must_use]
    pub fn position(&self, core: CoreCoord) -> Option<usize> {
        self.contains(core).then(|| {
            usize::from(core.y - self.start.y) * self.width() + usize::from(core.x - self.start.x)
        })
    }
}

impl From<CoreCoord> for CoreRange {
    fn from(core: CoreCoord) -> Self {
        Self { start: core, end: core }
    }
}

impl fmt::Debug for CoreRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.start, self.end)
    }
}

// === impl CoreRanges ===

impl CoreRanges {
    /// No core.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The cores that are in any of these rectangles.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = CoreRange>) -> Self {
        let mut given: SmallVec<[CoreRange; 1]> = ranges.into_iter().collect();
        if given.len() > 1 {
            given = normal_form(&given);
        }
        Self { normal: given }
    }

    /// The cores of these rectangles, if they are in normal form already; takes time and memory
    /// for each of them only, whatever they are.
    pub(crate) fn from_normal(ranges: &[CoreRange]) -> Option<Self> {
        let rows = |range: &CoreRange| (range.start.y, range.end.y);
        let bands: Vec<_> = ranges.chunk_by(|one, two| rows(one) == rows(two)).collect();
        let apart = |pair: &[CoreRange]| u32::from(pair[0].end.x) + 1 < pair[1].start.x.into();
        let columns = |band: &[CoreRange]| -> Vec<Columns> {
            band.iter().map(|range| (range.start.x, range.end.x)).collect()
        };
        let below = |pair: &[&[CoreRange]]| {
            let (end, start) = (u32::from(pair[0][0].end.y), u32::from(pair[1][0].start.y));
            end + 1 < start || end + 1 == start && columns(pair[0]) != columns(pair[1])
        };
        let is_normal =
            bands.iter().all(|band| band.windows(2).all(apart)) && bands.windows(2).all(below);
        is_normal.then(|| Self { normal: ranges.into() })
    }

    /// Disjoint rectangles that hold exactly these cores: the normal form.
    #[must_use]
    pub fn ranges(&self) -> &[CoreRange] {
        &self.normal
    }

    /// Whether there is no core in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.normal.is_empty()
    }

    /// How many cores it holds.
    #[must_use]
    pub fn core_count(&self) -> usize {
        self.normal.iter().map(CoreRange::core_count).sum()
    }

    /// Whether `core` is in it.
    #[must_use]
    pub fn contains(&self, core: CoreCoord) -> bool {
        self.normal.iter().any(|range| range.contains(core))
    }

    /// Its cores, rectangle by rectangle and row by row.
    pub fn cores(&self) -> impl Iterator<Item = CoreCoord> + '_ {
        self.normal.iter().flat_map(CoreRange::cores)
    }

    /// The first of its cores that is not in `other`, if there is one.
    #[must_use]
    pub fn first_outside(&self, other: &Self) -> Option<CoreCoord> {
        // Counting first keeps a rectangle that is far too large from being walked core by core.
        let inside: usize = (self.normal.iter())
            .flat_map(|one| other.normal.iter().filter_map(|two| one.intersection(two)))
            .map(|both| both.core_count())
            .sum();
        if inside == self.core_count() {
            return None;
        }
        self.cores().find(|core| !other.contains(*core))
    }

    /// A core that is in both, if there is one.
    #[must_use]
    pub fn shared_core(&self, other: &Self) -> Option<CoreCoord> {
        self.normal.iter().find_map(|one| {
            other.normal.iter().find_map(|two| one.intersection(two)).map(|both| both.start)
        })
    }
}

impl From<CoreRange> for CoreRanges {
    fn from(range: CoreRange) -> Self {
        Self { normal: smallvec![range] }
    }
}

impl From<CoreCoord> for CoreRanges {
    fn from(core: CoreCoord) -> Self {
        CoreRange::from(core).into()
    }
}

impl FromIterator<CoreRange> for CoreRanges {
    fn from_iter<I: IntoIterator<Item = CoreRange>>(ranges: I) -> Self {
        Self::new(ranges)
    }
}

impl FromIterator<CoreCoord> for CoreRanges {
    fn from_iter<I: IntoIterator<Item = CoreCoord>>(cores: I) -> Self {
        Self::new(cores.into_iter().map(CoreRange::from))
    }
}

impl fmt::Debug for CoreRanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(&self.normal).finish()
    }
}

/// Columns from the first to the last, both included.
type Columns = (u16, u16);

/// Cuts the union of `given` into bands of equal rows, so that each set has one form.
fn normal_form(given: &[CoreRange]) -> SmallVec<[CoreRange; 1]> {
    // A band begins at each row where some rectangle begins or has just ended; u32 so that the row
    // after the last one can be named.
    let mut edges: Vec<u32> = given
        .iter()
        .flat_map(|range| [u32::from(range.start.y), u32::from(range.end.y) + 1])
        .collect();
    edges.sort_unstable();
    edges.dedup();

    let mut bands: Vec<(u16, u16, Vec<Columns>)> = Vec::new();
    for pair in edges.windows(2) {
        let (Ok(first), Ok(last)) = (u16::try_from(pair[0]), u16::try_from(pair[1] - 1)) else {
            continue; // never: each edge is a row of a rectangle or the row after one
        };
        let columns = columns_of(given, first);
        if columns.is_empty() {
            continue;
        }
        match bands.last_mut() {
            Some((_, end, same)) if u32::from(*end) + 1 == pair[0] && *same == columns => {
                *end = last;
            }
            _ => bands.push((first, last, columns)),
        }
    }
    let rectangle = |y: Columns, x: &Columns| CoreRange {
        start: CoreCoord::new(x.0, y.0),
        end: CoreCoord::new(x.1, y.1),
    };
    bands
        .iter()
        .flat_map(|(first, last, columns)| columns.iter().map(|x| rectangle((*first, *last), x)))
        .collect()
}

/// The maximal runs of columns that the rectangles cover in one row.
fn columns_of(given: &[CoreRange], row: u16) -> Vec<Columns> {
    let mut columns: Vec<Columns> = given
        .iter()
        .filter(|range| (range.start.y..=range.end.y).contains(&row))
        .map(|range| (range.start.x, range.end.x))
        .collect();
    columns.sort_unstable();
    let mut merged: Vec<Columns> = Vec::with_capacity(columns.len());
    for (first, last) in columns {
        match merged.last_mut() {
            Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

    use super::{CoreCoord, CoreRange, CoreRanges};

    fn some_ranges() -> impl Strategy<Value = Vec<CoreRange>> {
        let corner = || (0u16..6, 0u16..6).prop_map(|(x, y)| CoreCoord::new(x, y));
        proptest::collection::vec(
            (corner(), corner()).prop_map(|(one, two)| CoreRange::new(one, two)),
            0..6,
        )
    }

    proptest! {
        #[test]
        fn a_set_has_one_form_however_it_is_cut(ranges in some_ranges(), rotate in any::<usize>()) {
            let cores: BTreeSet<CoreCoord> = ranges.iter().flat_map(CoreRange::cores).collect();
            let set = CoreRanges::new(ranges.clone());
            let mut one_by_one: Vec<CoreCoord> = cores.iter().copied().collect();
            if !one_by_one.is_empty() {
                let middle = rotate % one_by_one.len();
                one_by_one.rotate_left(middle);
            }
            prop_assert_eq!(&set, &one_by_one.into_iter().collect::<CoreRanges>());
            prop_assert_eq!(CoreRanges::from_normal(set.ranges()), Some(set.clone()));
            let is_normal = set.ranges() == ranges;
            prop_assert_eq!(CoreRanges::from_normal(&ranges).is_some(), is_normal);
            prop_assert_eq!(set.core_count(), cores.len());
            prop_assert_eq!(set.cores().collect::<BTreeSet<_>>(), cores);
        }

        #[test]
        fn sets_share_a_core_when_some_core_is_in_both(one in some_ranges(), two in some_ranges()) {
            let (one, two) = (CoreRanges::new(one), CoreRanges::new(two));
            let both = one.cores().any(|core| two.contains(core));
            prop_assert_eq!(one.shared_core(&two).is_some(), both);
            if let Some(core) = one.shared_core(&two) {
                prop_assert_eq!((one.contains(core), two.contains(core)), (true, true));
            }
        }
    }

    #[test]
    fn the_last_row_and_column_can_be_used() {
        let corner = CoreCoord::new(u16::MAX, u16::MAX);
        let set = CoreRanges::new([corner.into(), CoreRange::from(corner)]);
        assert_eq!(set, CoreRanges::from(corner));
        assert_eq!(set.core_count(), 1);
    }
}
