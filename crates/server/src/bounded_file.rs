//! Files that are read whole or not at all: what is longer than its bound is refused, since half of a
//! file may be good in itself and say something else.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All of the file at `path`.
///
/// # Errors
/// When it cannot be read, or has more than `most_bytes`.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
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
    use telltale_harness::Scratch;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let scratch = Scratch::new();
        let path = scratch.join("file");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(read(&scratch.join("none"), 4).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
