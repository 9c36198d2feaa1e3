//! Files with a secret: read only where no other user can know what is in them.
//!
//! Nothing here keeps a secret or says what it is for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Permission bits of everyone who is neither the owner nor of the group.
const OTHERS: u32 = 0o007;

/// Why there is no secret.
#[derive(Debug)]
pub enum SecretFault {
    /// It cannot be read, or is no file.
    Read(io::Error),
    /// Others can read or write it.
    Open {
        /// Its permission bits.
        mode: u32,
    },
    /// It is another user's, who knows what is in it.
    Owner {
        /// Whose.
        owner: u32,
    },
}

/// The first bytes of the file at `path`, `most` at most: of one that belongs to root or to this
/// process's user and that others can neither read nor write.
///
/// A link is followed, as Kubernetes and systemd make them: what counts is the file that it leads
/// to. A pipe is not waited for.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>, SecretFault> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("flags of open fit into an int");
    let file =
        File::options().read(true).custom_flags(flags).open(path).map_err(SecretFault::Read)?;
    let found = file.metadata().map_err(SecretFault::Read)?;
    if !found.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
        return Err(SecretFault::Read(error));
    }
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    if mode & OTHERS != 0 {
        return Err(SecretFault::Open { mode });
    }
    if ![0, rustix::process::geteuid().as_raw()].contains(&owner) {
        return Err(SecretFault::Owner { owner });
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).map_err(SecretFault::Read)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{SecretFault, read};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use telltale_harness::{Scratch, needs_root};

    #[test]
    fn only_what_nobody_else_knows_is_read() {
        let scratch = Scratch::new();
        let (path, link) = (scratch.join("secret"), scratch.join("link"));
        std::fs::write(&path, "word").unwrap();
        let of_mode = |mode: u32| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&path, 3)
        };
        assert!(matches!(of_mode(0o604), Err(SecretFault::Open { mode: 0o604 })));
        assert!(matches!(of_mode(0o602), Err(SecretFault::Open { mode: 0o602 })));
        assert_eq!(of_mode(0o640).unwrap(), b"wor");
        symlink(&path, &link).unwrap();
        assert_eq!(read(&link, 9).unwrap(), b"word");
        assert!(matches!(read(scratch.path(), 9), Err(SecretFault::Read(_))), "a directory");
        let pipe = scratch.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        assert!(matches!(read(&pipe, 9), Err(SecretFault::Read(_))), "a pipe, and no wait for it");
    }

    #[test]
    fn what_somebody_else_made_is_not_read() {
        if !needs_root("server::secret_file::what_somebody_else_made_is_not_read") {
            return;
        }
        let scratch = Scratch::new();
        let path = scratch.join("secret");
        std::fs::write(&path, "word").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(61_001), None).unwrap();
        assert!(matches!(read(&path, 9), Err(SecretFault::Owner { owner: 61_001 })));
    }
}
