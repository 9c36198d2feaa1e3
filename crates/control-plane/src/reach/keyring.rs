//! Credentials that are read again for each connection, since they are renewed while a job runs. Files
//! that are of no use, half written say, change nothing.

use std::sync::{Arc, Mutex, PoisonError};
use tracing::error;

use telltale_schema::text::with_causes;

use super::{AccessError, ClientFiles, Credentials};

/// The files by which one proves who one is, and what was in them when they could be read last. Clones
/// share everything.
#[derive(Debug, Clone)]
pub struct Keyring(Arc<KeyringShared>);

#[derive(Debug)]
struct KeyringShared {
    access: ClientFiles,
    held: Mutex<LoadedKeys>,
}

#[derive(Debug)]
struct LoadedKeys {
    credentials: Credentials,
    /// What was reported of why the files are of no use, so as not to repeat it at each attempt.
    reported: Option<String>,
}

impl Keyring {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// When they are of no use.
    pub fn load(access: ClientFiles) -> Result<Self, AccessError> {
        let held = Mutex::new(LoadedKeys { credentials: access.load()?, reported: None });
        Ok(Self(Arc::new(KeyringShared { access, held })))
    }

    /// Reads the files again, and gives what is in them, or else what was.
    #[must_use]
    pub fn now(&self) -> Credentials {
        let read = self.0.access.load();
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(credentials) => {
                held.credentials = credentials;
                held.reported = None;
            }
            Err(error) => {
                let causes = with_causes(&error);
                let text = format!("certificates and token stay as they were: {causes}");
                if held.reported.as_ref() != Some(&text) {
                    error!("{text}");
                    held.reported = Some(text);
                }
            }
        }
        held.credentials.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use telltale_harness::Scratch;

    use super::*;

    #[test]
    fn what_is_renewed_counts_and_what_is_broken_does_not() {
        let scratch = Scratch::new();
        let (authority, token) = (scratch.join("authority.pem"), scratch.join("token"));
        let write = |text: &str, mode: u32| {
            std::fs::write(&token, text).unwrap();
            std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let words = ["the-word-of-last-year", "the-word-of-this-year"];
        write(words[0], 0o600);
        let access = ClientFiles { token_file: Some(token.clone()), ..ClientFiles::default() };
        let keyring = Keyring::load(access.clone()).unwrap();
        let shared = keyring.clone();
        let held = |keyring: &Keyring| keyring.now().token.unwrap().expose().to_owned();
        assert_eq!(held(&keyring), words[0]);
        write(words[1], 0o600);
        assert_eq!([held(&keyring), held(&shared)], [words[1]; 2]);
        write("short", 0o600);
        assert_eq!(held(&keyring), words[1]);
        write("the-word-of-next-year", 0o604);
        assert_eq!(held(&shared), words[1]);
        std::fs::remove_file(&token).unwrap();
        assert_eq!(held(&keyring), words[1]);
        // A certificate that is half written is found out before it is used.
        std::fs::write(&authority, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
        let access = ClientFiles { authority: Some(authority), ..ClientFiles::default() };
        assert!(matches!(Keyring::load(access), Err(AccessError::NoCertificate(_))));
    }
}
