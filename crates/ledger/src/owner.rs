//! Whose ledger it is: the process as it knows itself.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use telltale_schema::clock::Timestamp;
use telltale_schema::process::{ProcessIdentity, ProcessStat, parse_boot_id};

/// What a ledger's header says of its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOwner {
    /// Which process.
    pub identity: ProcessIdentity,
    /// Its effective user id, which is the file's owner.
    pub uid: u32,
    /// Its short name; cut to 64 bytes in the file.
    pub name: String,
    /// Name and version of the runtime that records; cut to 64 bytes in the file.
    pub runtime: String,
    /// When recording began.
    pub started_at: Timestamp,
}

/// Why this process does not know who it is.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}; mount a proc file system at /proc")]
pub struct IdentityError {
    path: &'static str,
    #[source]
    source: io::Error,
}

/// The longest text that is read from a file under `/proc` here.
const LONGEST_TEXT_BYTES: u64 = 4096;

impl LedgerOwner {
    /// This process. Opens four files under `/proc`.
    pub fn of_this_process(runtime: &str, started_at: Timestamp) -> Result<Self, IdentityError> {
        let name = read("/proc/self/comm")?;
        Ok(Self {
            identity: identity_of_this_process()?,
            uid: rustix::process::geteuid().as_raw(),
            name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned(),
            runtime: runtime.to_owned(),
            started_at,
        })
    }
}

/// The identity of this process.
pub fn identity_of_this_process() -> Result<ProcessIdentity, IdentityError> {
    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    const STAT: &str = "/proc/self/stat";
    const NAMESPACE: &str = "/proc/self/ns/pid";
    let malformed = |path| IdentityError { path, source: io::ErrorKind::InvalidData.into() };
    let boot_id = read(BOOT_ID)?;
    let boot_id =
        parse_boot_id(&String::from_utf8_lossy(&boot_id)).ok_or_else(|| malformed(BOOT_ID))?;
    let stat = read(STAT)?;
    let ProcessStat { start_time_ticks, .. } =
        ProcessStat::parse(&stat).ok_or_else(|| malformed(STAT))?;
    let pid_namespace =
        fs::metadata(NAMESPACE).map_err(|source| IdentityError { path: NAMESPACE, source })?.ino();
    Ok(ProcessIdentity { boot_id, pid_namespace, pid: std::process::id(), start_time_ticks })
}

fn read(path: &'static str) -> Result<Vec<u8>, IdentityError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(LONGEST_TEXT_BYTES).read_to_end(&mut bytes))
        .map_err(|source| IdentityError { path, source })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::identity_of_this_process;

    #[test]
    fn this_process_knows_itself() {
        let identity = identity_of_this_process().unwrap();
        assert_eq!(identity.pid, std::process::id());
        assert!(identity.start_time_ticks > 0 && identity.pid_namespace > 0);
        assert_ne!(identity.boot_id, [0; 16]);
    }
}
