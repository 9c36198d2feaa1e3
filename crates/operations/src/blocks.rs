//! How an operation's work is cut into blocks, and which core takes which of them. The kernels'
//! `tensor.h` has the same arithmetic on the device's side.

use telltale_program_cache::{Argument, CoreCoord, CoreRange, CoreRanges};

use crate::extents::Extents;
use crate::memory_order::TILE;

/// Elements of a block: 32 KiB of numbers. With two blocks in each circular buffer any operation
/// takes at most 512 KiB of a core's L1, so that the device's common region can grow there.
pub(crate) const BLOCK_ELEMENTS: u32 = 8_192;
/// The longest row that operations on whole rows take.
pub(crate) const MAX_ROW_ELEMENTS: u32 = 2 * BLOCK_ELEMENTS;
/// Columns of a block of a tiled tensor: whole tiles.
const TILED_BLOCK_COLUMNS: u32 = BLOCK_ELEMENTS / TILE;

/// The grid that operations use: no chip has fewer columns or rows of worker cores.
const GRID_COLUMNS: u16 = 8;
const GRID_ROWS: u16 = 8;
/// The cores of the grid.
pub(crate) const MAX_CORES: u32 = GRID_COLUMNS as u32 * GRID_ROWS as u32;
/// A core gets at least this much work, in element operations: less does not pay for starting it.
const MIN_WORK_PER_CORE: u64 = 1 << 17;

/// The order of units: what is named last moves fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    MatrixRowColumn,
    ColumnMatrixRow,
    MatrixColumnRow,
    MatrixRowColumnDepth,
}

/// The blocks of some matrices of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) matrices: u32,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) block_rows: u32,
    pub(crate) block_columns: u32,
    pub(crate) order: Order,
    /// The size of the second dimension, by which a matrix number is taken apart.
    pub(crate) inner: u32,
    /// How many input blocks go into each block, with [`Order::MatrixRowColumnDepth`].
    pub(crate) depth: u32,
}

/// Which core does which units.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    pub(crate) cores: CoreRanges,
    /// For each core its first unit and their number.
    pub(crate) units: Vec<(CoreCoord, u32, u32)>,
}

// === impl Blocks ===

impl Blocks {
    /// Blocks for work on each element alone.
    pub(crate) fn of_elements(extents: Extents, tiled: bool) -> Self {
        let columns = extents.columns();
        let (block_rows, block_columns) = if tiled {
            (TILE, TILED_BLOCK_COLUMNS.min(columns))
        } else {
            let block_columns = columns.min(BLOCK_ELEMENTS);
            ((BLOCK_ELEMENTS / block_columns).max(1), block_columns)
        };
        Self::of(extents, block_rows, block_columns)
    }

    /// Blocks of whole rows.
    pub(crate) fn of_rows(extents: Extents, tiled: bool) -> Self {
        let columns = extents.columns();
        let most = (BLOCK_ELEMENTS / columns).max(1);
        // A power of two divides a tile's rows, so that no block spans two of them.
        let block_rows = if tiled { 1 << most.min(TILE).ilog2() } else { most };
        Self::of(extents, block_rows, columns)
    }

    fn of(extents: Extents, block_rows: u32, block_columns: u32) -> Self {
        Self {
            matrices: extents.matrices(),
            rows: extents.rows(),
            columns: extents.columns(),
            block_rows: block_rows.min(extents.rows()),
            block_columns,
            order: Order::MatrixRowColumn,
            inner: extents.0[1],
            depth: 1,
        }
    }

    pub(crate) fn row_blocks(&self) -> u32 {
        self.rows.div_ceil(self.block_rows)
    }

    pub(crate) fn column_blocks(&self) -> u32 {
        self.columns.div_ceil(self.block_columns)
    }

    pub(crate) fn units(&self) -> u32 {
        self.matrices * self.row_blocks() * self.column_blocks() * self.depth
    }

    pub(crate) fn block_elements(&self) -> u32 {
        self.block_rows * self.block_columns
    }

    /// The words that `plan_read` of `tensor.h` reads.
    pub(crate) fn words(&self) -> Vec<Argument> {
        let order = match self.order {
            Order::MatrixRowColumn => 0,
            Order::ColumnMatrixRow => 1,
            Order::MatrixColumnRow => 2,
            Order::MatrixRowColumnDepth => 3,
        };
        [
            self.matrices,
            self.rows,
            self.columns,
            self.block_rows,
            self.block_columns,
            order,
            self.inner,
            self.depth,
        ]
        .map(Argument::Word)
        .to_vec()
    }

    /// Cuts the units into shares of whole groups, one for each core that has enough to do.
    /// `work` is what one unit costs, in element operations.
    pub(crate) fn share(&self, group: u32, work: u64) -> Shares {
        let total = u64::from(self.units()) * work;
        let enough = u32::try_from(total / MIN_WORK_PER_CORE).unwrap_or(MAX_CORES);
        self.share_over(group, enough)
    }

    /// The same over this many cores, or as many as there are cores or groups.
    pub(crate) fn share_over(&self, group: u32, cores: u32) -> Shares {
        let groups = self.units() / group;
        let cores = cores.min(groups).clamp(1, MAX_CORES);
        let start = |core: u32| {
            let start = u64::from(groups) * u64::from(core) / u64::from(cores);
            u32::try_from(start).expect("a part of a 32-bit number") * group
        };
        let units = (0..cores)
            .map(|core| (place(core), start(core), start(core + 1) - start(core)))
            .collect();
        Shares { cores: first_cores(cores), units }
    }
}

fn place(core: u32) -> CoreCoord {
    let core = u16::try_from(core).expect("below the number of cores");
    CoreCoord::new(core % GRID_COLUMNS, core / GRID_COLUMNS)
}

fn first_cores(count: u32) -> CoreRanges {
    CoreRanges::new((0..count).map(|core| CoreRange::from(place(core))))
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_ELEMENTS, Blocks, MAX_CORES};
    use crate::extents::Extents;

    #[test]
    fn shares_are_all_units_once_and_keep_groups_together() {
        for (extents, group) in [([1, 1, 1, 1], 1), ([3, 5, 70, 900], 1), ([2, 7, 320, 64], 10)] {
            let blocks = Blocks::of_elements(Extents(extents), true);
            for cores in [1, 3, 64, 1_000] {
                let shares = blocks.share_over(group, cores);
                assert_eq!(shares.units.len(), shares.cores.core_count());
                assert!(shares.units.len() as u32 <= cores.min(MAX_CORES));
                let mut next = 0;
                for (core, first, count) in &shares.units {
                    assert!(shares.cores.contains(*core));
                    assert_eq!((*first, *count % group), (next, 0));
                    assert!(*count > 0, "a core without work");
                    next += count;
                }
                assert_eq!(next, blocks.units());
            }
        }
    }

    #[test]
    fn blocks_are_bounded_and_stay_within_a_row_of_tiles() {
        for columns in [1, 31, 64, 500, 5_000, 30_000] {
            for tiled in [false, true] {
                let extents = Extents([1, 2, 100, columns]);
                let elements = Blocks::of_elements(extents, tiled);
                assert!(elements.block_elements() <= BLOCK_ELEMENTS);
                let rows = Blocks::of_rows(extents, tiled);
                assert_eq!(rows.column_blocks(), 1);
                assert!(rows.block_elements() <= BLOCK_ELEMENTS.max(columns));
                assert!(!tiled || 32 % rows.block_rows == 0);
            }
        }
    }
}
