//! Which directory is the runtime directory: a named one, the installed one, or a private one.
//!
//! The environment is a value, so that tests and servers decide for themselves what it holds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, accessat, mkdirat};
use rustix::io::Errno;

use super::{DirectoryError, Purpose, RuntimeDirectory};

/// The directory that an installation makes.
pub const INSTALLED_DIRECTORY: &str = "/run/tt";

/// What the choice depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEnvironment {
    /// `TT_METRICS_SOCKET_DIR`.
    pub socket_dir: Option<OsString>,
    /// `XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<OsString>,
    /// The effective user id, for the private directory's name.
    pub uid: u32,
    /// Where the installed directory is: [`INSTALLED_DIRECTORY`], except in tests.
    pub installed: PathBuf,
    /// Where the private directory is if nothing else is: `/tmp`, except in tests.
    pub temporary: PathBuf,
}

impl DirectoryEnvironment {
    /// That of this process.
    pub fn of_this_process() -> Self {
        Self {
            socket_dir: std::env::var_os("TT_METRICS_SOCKET_DIR"),
            xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR"),
            uid: rustix::process::geteuid().as_raw(),
            installed: INSTALLED_DIRECTORY.into(),
            temporary: "/tmp".into(),
        }
    }
}

impl RuntimeDirectory {
    /// The directory a process leaves its ledger and endpoint in: `explicit`, else
    /// `TT_METRICS_SOCKET_DIR`, else `/run/tt` if it exists and is usable, else
    /// `$XDG_RUNTIME_DIR/telltale`, else `/tmp/telltale-<uid>`. The last two are created.
    pub fn for_writing(
        explicit: Option<&Path>,
        environment: &DirectoryEnvironment,
    ) -> Result<Self, DirectoryError> {
        if let Some(path) = named(explicit, environment) {
            return Self::open(&path, Purpose::Writing);
        }
        if let Ok(installed) = Self::open(&environment.installed, Purpose::Writing)
            && is_writable(&installed)
        {
            return Ok(installed);
        }
        if let Some(path) = in_xdg_directory(environment)
            && let Ok(private) = make_private(&path)
        {
            return Ok(private);
        }
        make_private(&in_temporary_directory(environment))
    }

    /// The directories to search for others' ledgers and endpoints in: `explicit`, else
    /// `<root>/run/tt` under an emulated machine's root, else the one that the environment names,
    /// else all that exist of those in which [`Self::for_writing`] may have put a process: each
    /// tries in turn what it can write to. None is created; one that exists and is refused is an
    /// error in its place.
    pub fn for_reading(
        explicit: Option<&Path>,
        root: Option<&Path>,
        environment: &DirectoryEnvironment,
    ) -> Vec<Result<Self, DirectoryError>> {
        let (paths, all) = Self::reading_candidates(explicit, root, environment);
        let opened = paths.iter().map(|(path, is_private)| {
            if *is_private {
                Self::open_private(path, Purpose::Reading)
            } else {
                Self::open(path, Purpose::Reading)
            }
        });
        if !all {
            return opened.collect();
        }
        opened.filter(|one| !one.as_ref().is_err_and(DirectoryError::is_missing)).collect()
    }

    /// Where [`Self::for_reading`] looks, whether or not there is a directory.
    pub fn places_for_reading(
        explicit: Option<&Path>,
        root: Option<&Path>,
        environment: &DirectoryEnvironment,
    ) -> Vec<PathBuf> {
        let (paths, _) = Self::reading_candidates(explicit, root, environment);
        paths.into_iter().map(|(path, _)| path).collect()
    }

    /// Paths with whether each must be private, and whether some of them may be missing.
    fn reading_candidates(
        explicit: Option<&Path>,
        root: Option<&Path>,
        environment: &DirectoryEnvironment,
    ) -> (Vec<(PathBuf, bool)>, bool) {
        let under_root = root.map(|root| root.join("run/tt"));
        let one = explicit.map(Path::to_path_buf).or(under_root);
        if let Some(path) = one.or_else(|| named(None, environment)) {
            return (vec![(path, false)], false);
        }
        let private = in_xdg_directory(environment)
            .into_iter()
            .chain([in_temporary_directory(environment)])
            .map(|path| (path, true));
        ([(environment.installed.clone(), false)].into_iter().chain(private).collect(), true)
    }
}

fn named(explicit: Option<&Path>, environment: &DirectoryEnvironment) -> Option<PathBuf> {
    let variable = environment.socket_dir.as_ref().filter(|value| !value.is_empty());
    explicit.map(Path::to_path_buf).or_else(|| variable.map(PathBuf::from))
}

fn in_xdg_directory(environment: &DirectoryEnvironment) -> Option<PathBuf> {
    let directory = environment.xdg_runtime_dir.as_ref().filter(|value| !value.is_empty())?;
    // The base directory specification says that a relative path is invalid.
    let directory = Path::new(directory);
    directory.is_absolute().then(|| directory.join("telltale"))
}

fn in_temporary_directory(environment: &DirectoryEnvironment) -> PathBuf {
    environment.temporary.join(format!("telltale-{}", environment.uid))
}

fn is_writable(directory: &RuntimeDirectory) -> bool {
    // "." asks about the directory that was opened, whatever has its path now.
    accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

fn make_private(path: &Path) -> Result<RuntimeDirectory, DirectoryError> {
    match mkdirat(rustix::fs::CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => RuntimeDirectory::open_private(path, Purpose::Writing),
        Err(error) => Err(DirectoryError::Create { path: path.into(), source: error.into() }),
    }
}
