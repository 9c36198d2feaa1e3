//! `telltale.operations.ProgramCache`: what a chip's program cache did and holds.

use std::sync::Arc;

use pyo3::prelude::*;
use telltale_program_cache::{CacheCounts, CacheMode};

use super::opened::SharedChip;

/// The program cache of a chip. Its numbers are those of the moment when they are asked for.
#[pyclass(frozen, module = "telltale.operations")]
pub(crate) struct ProgramCache {
    shared: Arc<SharedChip>,
}

impl ProgramCache {
    pub(super) fn of(shared: &Arc<SharedChip>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    fn counts(&self, py: Python<'_>) -> PyResult<CacheCounts> {
        Ok(self.shared.open(py)?.session.cache().counts())
    }
}

#[pymethods]
impl ProgramCache {
    /// Calls that found their program.
    #[getter]
    fn hits(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.counts(py)?.hits)
    }

    /// Calls that did not.
    #[getter]
    fn misses(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.counts(py)?.misses)
    }

    /// Hits that were compared with a new description, in checking mode.
    #[getter]
    fn checks(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.counts(py)?.checks)
    }

    /// Programs that were dropped to make room.
    #[getter]
    fn evictions(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.counts(py)?.evictions)
    }

    /// The operations of the programs that it holds, sorted.
    #[getter]
    fn programs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = self.shared.open(py)?.session.cache().names();
        Ok(names.into_iter().map(|name| name.into_owned()).collect())
    }

    /// `on`, `off` or `check`.
    #[getter]
    fn mode(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.shared.open(py)?.session.cache().mode().to_string())
    }

    /// Drops all programs.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let open = self.shared.open(py)?;
        py.detach(move || open.session.cache().clear());
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        if !self.shared.is_open() {
            return Ok("<ProgramCache of a closed chip>".to_owned());
        }
        let counts = self.counts(py)?;
        let mode = self.shared.open(py)?.session.cache().mode();
        let mode = if mode == CacheMode::On { String::new() } else { format!(", {mode}") };
        let number = |count: u64, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let hits = number(counts.hits, "hit", "hits");
        let misses = number(counts.misses, "miss", "misses");
        let programs = number(counts.entries, "program", "programs");
        Ok(format!("<ProgramCache {hits}, {misses}, {programs}{mode}>"))
    }
}
