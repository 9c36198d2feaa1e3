//! A ZIP archive with the smallest members that any reader of its format takes.
//!
//! PyPA's `wheel` compresses as Python's `zipfile` does. Zopfli finds what is shortest in the same format, in a minute
//! instead of seconds, and a wheel is a fiftieth smaller for it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::DistError;

/// Five rounds of Zopfli. Ten more take half as long again for a ten-thousandth.
const LEVEL: i64 = 14;

/// Writes the archive again: the same members in the same order, with the same times and modes.
pub(super) fn recompress(archive: &Path) -> Result<(), DistError> {
    let smaller = archive.with_extension("smaller");
    rewritten(archive, &smaller).map_err(DistError::file(archive))?;
    fs::rename(&smaller, archive).map_err(DistError::file(archive))
}

fn rewritten(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = ZipArchive::new(File::open(from)?)?;
    let mut to = ZipWriter::new(File::create(to)?);
    for number in 0..from.len() {
        let mut member = from.by_index(number)?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .last_modified_time(member.last_modified().unwrap_or_default())
            .unix_permissions(member.unix_mode().unwrap_or(0o644));
        let name = member.name()?.into_owned();
        to.start_file(name, options)?;
        io::copy(&mut member, &mut to)?;
    }
    to.finish()?.sync_all()
}
