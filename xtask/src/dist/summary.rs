//! What was made: its checksums, and a table for who made it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::stage::InstalledTrees;
use super::{DistError, Release};

/// The programs and libraries whose sizes are of interest, by their place in the installed trees.
const SIZES: [&str; 4] =
    ["bin/telltale", "bin/telltale-serve", "bin/telltale-agent", "lib/libtelltale.so"];

/// Writes the checksums, as `sha256sum --check` reads them.
pub(super) fn checksums(release: &Release, made: &[PathBuf]) -> Result<PathBuf, DistError> {
    let mut text = String::new();
    for path in made {
        let bytes = fs::read(path).map_err(DistError::file(path))?;
        let sum = Sha256::digest(&bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hexadecimal = sum.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let _ = writeln!(text, "{hexadecimal}  {name}");
    }
    let name = format!("telltale-{}-{}.sha256", release.version, release.target.name());
    let path = release.into.join(name);
    fs::write(&path, text).map_err(DistError::file(&path))?;
    Ok(path)
}

/// Prints it.
pub(super) fn print(
    stage: &InstalledTrees,
    made: &[PathBuf],
    took: Duration,
) -> Result<(), DistError> {
    let row = |path: &Path, name: &str| {
        let size = fs::metadata(path).map_err(DistError::file(path))?.len();
        println!("{:>8.2} MB  {name}", megabytes(size));
        Ok::<(), DistError>(())
    };
    for name in SIZES {
        for tree in [&stage.programs, &stage.library] {
            let path = tree.join("usr").join(name);
            if path.exists() {
                row(&path, name)?;
            }
        }
    }
    for path in made {
        row(path, &path.display().to_string())?;
    }
    println!("made in {:.0} s", took.as_secs_f64());
    Ok(())
}

/// For a table: two decimals are shown.
#[allow(clippy::cast_precision_loss)]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
