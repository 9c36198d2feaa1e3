//! The numbers by which the process knows a chip's cores, and the debug streams that their kernels
//! print to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use telltale_debug_stream::Stream;
use telltale_debug_stream::cores::{self, DeviceCores, NoCoresLeft};
use telltale_program_cache::CoreCoord;

use crate::kernels::Printer;

/// See the module.
#[derive(Debug)]
pub(super) struct Prints {
    grid: (u16, u16),
    cores: DeviceCores,
    refused: Arc<AtomicU64>,
}

impl Prints {
    /// Takes a number for each core of a grid of so many columns and rows.
    pub(super) fn of(grid: (u16, u16)) -> Result<Self, NoCoresLeft> {
        let cores = cores::take(u32::from(grid.0) * u32::from(grid.1))?;
        Ok(Self { grid, cores, refused: Arc::default() })
    }

    /// What the device's thread prints with, row by row.
    pub(super) fn printers(&self) -> Box<[Printer]> {
        let streams = self.streams();
        streams.map(|one| Printer::new(one.publisher(), Arc::clone(&self.refused))).collect()
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = &'static Stream> + use<> {
        self.cores.streams()
    }

    pub(super) fn logical_core(&self, core: CoreCoord) -> Option<u32> {
        let (columns, rows) = self.grid;
        let inside = core.x < columns && core.y < rows;
        let place = u32::from(core.y) * u32::from(columns) + u32::from(core.x);
        inside.then(|| self.cores.first() + place)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}
