//! The archive: the installed tree, to be unpacked anywhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::stage::InstalledTrees;
use super::{DistError, Release};

/// How hard it is compressed: beyond this it takes far longer for a few parts in a hundred.
const LEVEL: i32 = 19;

/// Writes `telltale-VERSION-PROCESSOR-linux.tar.zst` of what is installed. Nothing of it depends on when, where or by whom
/// it is made.
pub(super) fn write(release: &Release, stage: &InstalledTrees) -> Result<PathBuf, DistError> {
    let name = format!("telltale-{}-{}-linux", release.version, release.target.name());
    let path = release.into.join(format!("{name}.tar.zst"));
    let failed = |source| DistError::File { path: path.clone(), source };
    let file = File::create(&path).map_err(failed)?;
    let encoder = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
    let mut archive = tar::Builder::new(encoder);
    let mut all = BTreeMap::new();
    for tree in stage.trees() {
        all.extend(entries(&tree)?.into_iter().map(|entry| (entry.clone(), tree.join(entry))));
    }
    for (entry, from) in all {
        let place = Path::new(&name).join(entry);
        append(&mut archive, &from, &place, release.epoch).map_err(DistError::file(&from))?;
    }
    let encoder = archive.into_inner().map_err(failed)?;
    encoder.finish().and_then(|mut file| file.flush()).map_err(failed)?;
    Ok(path)
}

/// All below a directory.
fn entries(root: &Path) -> Result<Vec<PathBuf>, DistError> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = open.pop() {
        let path = root.join(&directory);
        for entry in fs::read_dir(&path).map_err(DistError::file(&path))? {
            let entry = entry.map_err(DistError::file(&path))?;
            let name = directory.join(entry.file_name());
            if entry.file_type().map_err(DistError::file(&path))?.is_dir() {
                open.push(name.clone());
            }
            found.push(name);
        }
    }
    Ok(found)
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    from: &Path,
    place: &Path,
    epoch: u64,
) -> std::io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    let mut header = tar::Header::new_gnu();
    header.set_metadata_in_mode(&metadata, tar::HeaderMode::Deterministic);
    header.set_mtime(epoch);
    if metadata.is_symlink() {
        header.set_size(0);
        return archive.append_link(&mut header, place, fs::read_link(from)?);
    }
    header.set_mode(if metadata.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 });
    match metadata.is_dir() {
        true => archive.append_data(&mut header, place, std::io::empty()),
        false => archive.append_data(&mut header, place, File::open(from)?),
    }
}
