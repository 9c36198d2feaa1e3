//! The service's token: clients that send it see everything. Kept in a file that only the service
//! and who may be it can read.

use std::io;
use std::path::{Path, PathBuf};

use crate::secret_file;

/// The shortest token; a random one of this length cannot be tried out.
pub const LEAST_TOKEN_BYTES: usize = 16;
/// The longest token.
pub const MOST_TOKEN_BYTES: usize = 256;

/// The word before a token in an `authorization` header (RFC 6750).
const SCHEME: &str = "bearer";

/// A secret that stands for everything the service knows.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {path}; create it, for example from /dev/urandom")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Others can read the file.
    #[error(
        "the token file {path} has mode {mode:04o}, so others can read it; run: chmod 600 {path}"
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user made the file, and so knows what is in it.
    #[error(
        "the token file {path} belongs to user {owner}, neither to root nor to the service; make \
         one of its own"
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The file holds something else.
    #[error(
        "the token file {path} must hold one word of {LEAST_TOKEN_BYTES} to {MOST_TOKEN_BYTES} \
         printable ASCII characters"
    )]
    Unfit {
        /// The file.
        path: PathBuf,
    },
}

impl std::fmt::Debug for Token {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Token(withheld)")
    }
}

impl Token {
    /// The token in this file, without white space around it.
    ///
    /// # Errors
    /// When the file cannot be read, others can read it or made it, or it holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = secret_file::read(path, MOST_TOKEN_BYTES * 2).map_err(|fault| {
            let path = path.to_owned();
            match fault {
                secret_file::SecretFault::Read(source) => TokenError::Read { path, source },
                secret_file::SecretFault::Open { mode } => TokenError::Open { path, mode },
                secret_file::SecretFault::Owner { owner } => TokenError::Owner { path, owner },
            }
        })?;
        let word = text.trim_ascii();
        let fits = (LEAST_TOKEN_BYTES..=MOST_TOKEN_BYTES).contains(&word.len());
        if !fits || !word.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::Unfit { path: path.into() });
        }
        Ok(Self(word.to_vec()))
    }

    /// The word itself, for a client that sends it.
    ///
    /// # Panics
    /// Never: a token is ASCII.
    pub fn expose(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a token is printable ASCII")
    }

    /// Whether an `authorization` header carries this token. Takes as long for a wrong one as for
    /// the right one of the same length.
    pub fn is_in(&self, header: &str) -> bool {
        let Some((scheme, word)) = header.split_once(' ') else { return false };
        let word = word.trim_ascii().as_bytes();
        if !scheme.eq_ignore_ascii_case(SCHEME) || word.len() != self.0.len() {
            return false;
        }
        let differing = word.iter().zip(&self.0).fold(0, |sum, (one, two)| sum | (one ^ two));
        std::hint::black_box(differing) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, TokenError};
    use telltale_harness::Scratch;

    const WORD: &str = "0123456789abcdef";

    fn read(text: &str, mode: u32) -> Result<Token, TokenError> {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new();
        let path = scratch.join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Token::read(&path)
    }

    #[test]
    fn a_token_is_one_word_in_a_private_file() {
        assert_eq!(read(&format!(" {WORD}\n"), 0o640).unwrap().expose(), WORD);
        assert!(matches!(read(WORD, 0o644), Err(TokenError::Open { mode: 0o644, .. })));
        for unfit in
            ["", "short", "two words are no token", "sixteen-\u{e9}-letters", &"x".repeat(257)]
        {
            assert!(matches!(read(unfit, 0o600), Err(TokenError::Unfit { .. })), "{unfit}");
        }
        let missing = Token::read(std::path::Path::new("/nowhere/token"));
        assert!(matches!(missing, Err(TokenError::Read { .. })));
    }

    #[test]
    fn only_the_same_word_after_bearer_is_the_token() {
        let token = read(WORD, 0o600).unwrap();
        for right in [format!("Bearer {WORD}"), format!("bearer  {WORD}")] {
            assert!(token.is_in(&right), "{right}");
        }
        let other = "0123456789abcdeF";
        for wrong in [
            WORD.to_owned(),
            format!("Basic {WORD}"),
            format!("Bearer {other}"),
            format!("Bearer {WORD}0"),
        ] {
            assert!(!token.is_in(&wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(withheld)");
    }
}
