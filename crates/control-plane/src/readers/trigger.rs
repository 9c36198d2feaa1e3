//! Asks PyTorch for its Flight Recorder's dump when a job seems to hang.
//!
//! Its `ProcessGroupNCCL` makes a pipe for each rank and writes a dump when anything is written into it
//! (`DumpPipe` in `ProcessGroupNCCL.hpp`).

use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use telltale_cluster::intake::formats::TRIGGER_PREFIX;
use telltale_cluster::rank::Rank;

/// Asks these ranks. Those that have no pipe are passed over, and nothing is waited for: a pipe that
/// nothing reads cannot be opened.
pub(crate) fn ask_for_dumps(directory: &Path, ranks: impl Iterator<Item = Rank>) {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for rank in ranks {
        let path = directory.join(format!("{TRIGGER_PREFIX}{}.pipe", rank.0));
        let Ok(pipe) = open(&path, flags, Mode::empty()) else { continue };
        let is_pipe = |mode| FileType::from_raw_mode(mode) == FileType::Fifo;
        if fstat(&pipe).is_ok_and(|status| is_pipe(status.st_mode)) {
            // A full pipe was asked already.
            let _ = rustix::io::write(&pipe, b"dump\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::Command;

    use telltale_harness::Scratch;

    use super::*;

    #[test]
    fn a_pipe_that_is_read_is_written_to_and_nothing_else_is() {
        let place = Scratch::new();
        let path = |rank: u32| place.join(format!("{TRIGGER_PREFIX}{rank}.pipe"));
        // As PyTorch does: rank 0's is read, nothing reads rank 1's, rank 2's is a file, rank 3 has none.
        for rank in [0, 1] {
            assert!(Command::new("mkfifo").arg(path(rank)).status().unwrap().success());
        }
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let mut reader =
            fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path(0)).unwrap();
        fs::write(path(2), "as it was").unwrap();
        ask_for_dumps(place.path(), (0..4).map(Rank));
        let mut asked = String::new();
        reader.read_to_string(&mut asked).unwrap();
        assert_eq!(asked, "dump\n");
        assert_eq!(fs::read_to_string(path(2)).unwrap(), "as it was");
        assert!(!path(3).exists());
    }
}
