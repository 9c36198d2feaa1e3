//! The `Authorization` header's value, from a file that others cannot read.

use std::io;
use std::path::{Path, PathBuf};

use hyper::header::HeaderValue;

use telltale_server::secret_file;

/// The longest value.
const MAX_BYTES: usize = 4096;

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
    #[error("cannot read {path}, which has the Authorization header; create it with mode 0600")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} has mode {mode:04o}, so others can read it; run: chmod 600 {path}")]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "{path} belongs to user {owner}, neither to root nor to the service; make one of its own"
    )]
    Owner { path: PathBuf, owner: u32 },
    #[error("{path} must have one line such as Bearer WORD, of at most {MAX_BYTES} bytes")]
    Unfit { path: PathBuf },
}

/// Reads it. Read for each attempt, so that a new secret needs no restart.
pub(super) fn read(path: &Path) -> Result<HeaderValue, SecretError> {
    let text = secret_file::read(path, MAX_BYTES + 1).map_err(|fault| {
        let path = path.to_owned();
        match fault {
            secret_file::SecretFault::Read(source) => SecretError::Read { path, source },
            secret_file::SecretFault::Open { mode } => SecretError::Open { path, mode },
            secret_file::SecretFault::Owner { owner } => SecretError::Owner { path, owner },
        }
    })?;
    let fits = text.len() <= MAX_BYTES;
    let line = text.trim_ascii();
    let printable = line.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let value = HeaderValue::from_bytes(line).ok().filter(|_| fits && printable);
    let mut value =
        value.filter(|_| !line.is_empty()).ok_or(SecretError::Unfit { path: path.into() })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::{SecretError, read};
    use std::os::unix::fs::PermissionsExt;
    use telltale_harness::Scratch;

    #[test]
    fn it_is_one_line_in_a_private_file() {
        let scratch = Scratch::new();
        let path = scratch.join("secret");
        let of = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&path)
        };
        assert_eq!(of(" Bearer abc\n", 0o600).unwrap(), "Bearer abc");
        assert!(of("Bearer abc", 0o640).unwrap().is_sensitive());
        assert!(matches!(of("a", 0o644), Err(SecretError::Open { mode: 0o644, .. })));
        for unfit in ["", "\n", "a\nb", "a\u{e9}", &"x".repeat(4097)] {
            assert!(matches!(of(unfit, 0o600), Err(SecretError::Unfit { .. })), "{unfit}");
        }
        assert!(matches!(read(&scratch.join("none")), Err(SecretError::Read { .. })));
    }
}
