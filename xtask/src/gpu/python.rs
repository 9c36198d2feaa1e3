//! The Python of this machine, and scripts that it runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The exit status of a script that this Python cannot run.
pub(super) const CANNOT: i32 = 77;

/// The one that `TELLTALE_PYTHON` names, else `python3`.
pub(super) fn program() -> OsString {
    std::env::var_os("TELLTALE_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Writes a script: what is compiled in needs no repository.
pub(super) fn write(place: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = place.join(name);
    std::fs::write(&path, text)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}
