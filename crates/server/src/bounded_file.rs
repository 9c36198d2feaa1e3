//! Files that are read whole or not at all: what is longer than its bound is refused, since half of a
//! file may be good in itself and say something else. What is no regular file is not waited for: a pipe
//! may never have a writer, and a device may never end.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// All of the file at `path`, or of the one that a link there leads to.
///
/// # Errors
/// When it cannot be read, is no regular file, or has more than `most_bytes`.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("flags of open fit into an int");
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most_bytes) {
        return Ok(bytes);
    }
    let text = format!("it has more than {most_bytes} bytes; give a shorter one");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::io::ErrorKind;
    use std::path::Path;
    use telltale_harness::Scratch;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let scratch = Scratch::new();
        let path = scratch.join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(&scratch.join("none"), 4).unwrap_err().kind(), ErrorKind::NotFound);
        let link = scratch.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link, 4).unwrap(), b"four");
        let pipe = scratch.join("pipe");
        let (mode, kind) = (rustix::fs::Mode::from_raw_mode(0o600), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        for other in [pipe.as_path(), Path::new("/dev/zero"), scratch.path()] {
            let refused = read(other, 4).unwrap_err();
            assert_eq!(refused.to_string(), "it is no regular file", "{}", other.display());
        }
    }
}
