//! The pictures of the documents: which of those that the tests of the command have made go where.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Replaces each picture in `documents` by the one of the same name in `made`, and gives their names. Other pictures
/// in `made` stay where they are.
///
/// # Errors
/// When a directory or file cannot be read or written, and [`io::ErrorKind::NotFound`] with the name when `made` has
/// no such picture, or none that was written since `begun`. Nothing is replaced then.
pub fn replace(documents: &Path, made: &Path, begun: SystemTime) -> io::Result<Vec<String>> {
    let files: Vec<PathBuf> =
        std::fs::read_dir(documents)?.map(|file| Ok(file?.path())).collect::<io::Result<_>>()?;
    let pictures = files.iter().filter(|file| file.extension().is_some_and(|it| it == "png"));
    let mut names: Vec<String> =
        pictures.filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    for name in &names {
        let written = std::fs::metadata(made.join(name)).and_then(|file| file.modified());
        if !written.is_ok_and(|at| at >= begun) {
            let message =
                format!("{name} was not made: no test of cli::pictures does, or it was skipped");
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
    }
    for name in &names {
        std::fs::copy(made.join(name), documents.join(name))?;
    }
    Ok(names)
}
