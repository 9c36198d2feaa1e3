//! Archives: the installed tree, to be unpacked anywhere, and what an image has of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::stage::InstalledTrees;
use super::{DistError, Release};

/// How hard it is compressed: beyond this it takes far longer for a few parts in a hundred.
const LEVEL: i32 = 19;

/// What of the programs' tree an image has: nothing in it reads pages, completions or units.
const OF_IMAGE: [&str; 3] = ["bin", "lib/telltale", "share/doc"];

/// Writes `telltale-VERSION-PROCESSOR-linux.tar.zst` of what is installed. Nothing of it depends on when, where or by whom
/// it is made.
pub(super) fn write(release: &Release, stage: &InstalledTrees) -> Result<PathBuf, DistError> {
    let name = format!("telltale-{}-{}-linux", release.version, release.target.name());
    let path = release.into.join(format!("{name}.tar.zst"));
    let mut all = BTreeMap::new();
    for tree in [&stage.programs, &stage.library, &stage.anywhere] {
        let tree = tree.join("usr");
        let found = entries(&tree)?.into_iter();
        all.extend(found.map(|entry| (Path::new(&name).join(&entry), tree.join(entry))));
    }
    let encode = |file| zstd::Encoder::new(file, LEVEL);
    let encoder = create(&path, encode)?;
    let encoder = pack(encoder, &all, release.epoch)?;
    encoder.finish().map_err(DistError::file(&path))?;
    Ok(path)
}

/// Writes `telltale-VERSION-PROCESSOR-image.tar.gz`, what `deploy/docker/Dockerfile` adds to the system of its image.
pub(super) fn image(release: &Release, stage: &InstalledTrees) -> Result<PathBuf, DistError> {
    let name = format!("telltale-{}-{}-image.tar.gz", release.version, release.target.name());
    let path = release.into.join(name);
    let tree = stage.programs.join("usr");
    let mut all = BTreeMap::new();
    for entry in entries(&tree)? {
        if OF_IMAGE.iter().any(|place| entry.starts_with(place)) {
            all.insert(Path::new("usr").join(&entry), tree.join(entry));
        }
    }
    let encode = |file| Ok(flate2::write::GzEncoder::new(file, flate2::Compression::best()));
    let encoder = pack(create(&path, encode)?, &all, release.epoch)?;
    encoder.finish().map_err(DistError::file(&path))?;
    Ok(path)
}

fn create<E>(path: &Path, encode: impl FnOnce(File) -> io::Result<E>) -> Result<E, DistError> {
    File::create(path).and_then(encode).map_err(DistError::file(path))
}

/// Packs files, each under its place in the archive.
fn pack<W: Write>(into: W, all: &BTreeMap<PathBuf, PathBuf>, epoch: u64) -> Result<W, DistError> {
    let mut archive = tar::Builder::new(into);
    for (place, from) in all {
        append(&mut archive, from, place, epoch).map_err(DistError::file(from))?;
    }
    archive.into_inner().map_err(DistError::file(Path::new("the archive")))
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
) -> io::Result<()> {
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
        true => archive.append_data(&mut header, place, io::empty()),
        false => archive.append_data(&mut header, place, File::open(from)?),
    }
}
