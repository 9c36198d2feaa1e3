//! The module that reports PyTorch's collectives (`clients/python`), as this program carries it.
//!
//! It is written into the state directory, where Python finds it through `PYTHONPATH` and imports it by
//! itself, so that a script needs no change and nothing has to be installed. Nothing here knows what
//! it does.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::python;

/// Its files, by their places in `clients/python`.
macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../clients/python/", $path)))),*]
    };
}

/// What Python imports by itself; the rest is found from it.
const AUTOLOAD: &str = "autoload";
const FILES: &[(&str, &str)] = files![
    "autoload/sitecustomize.py",
    "telltale_ccl/__init__.py",
    "telltale_ccl/_compute.py",
    "telltale_ccl/_cuda.py",
    "telltale_ccl/_gradients.py",
    "telltale_ccl/_hooks.py",
    "telltale_ccl/_on_import.py",
    "telltale_ccl/_patches.py",
    "telltale_ccl/_post.py",
    "telltale_ccl/_record.py",
    "telltale_ccl/_spans.py",
    "telltale_ccl/_steps.py",
];

/// Why a command's workers cannot be given the module.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShimError {
    /// Python is configured not to look where it is.
    #[error(
        "with {option:?} Python does not look for the module that reports collectives; leave it out, or leave out --shim"
    )]
    Blind {
        /// The option.
        option: OsString,
    },
}

/// Whether the workers of a command can be given the module. What is no Python may start one.
///
/// # Errors
/// When the command is a Python that ignores `PYTHONPATH` or `sitecustomize`.
pub fn can_have_shim(command: &[OsString]) -> Result<(), ShimError> {
    match python::blind_option(command).filter(|_| python::is_python(command)) {
        Some(option) => Err(ShimError::Blind { option: option.clone() }),
        None => Ok(()),
    }
}

/// Writes the module below `state`, and says what to put in front of `PYTHONPATH`. What another
/// version has left there goes.
pub(super) fn write(state: &Path) -> io::Result<PathBuf> {
    let place = state.join("shim");
    match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for (path, text) in FILES {
        let path = place.join(path);
        let directory = path.parent().expect("each file is in a directory");
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        std::fs::write(path, text)?;
    }
    Ok(place.join(AUTOLOAD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use telltale_harness::Scratch;

    #[test]
    fn every_file_of_the_module_is_carried_and_written() {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
        let mut there = BTreeSet::new();
        for directory in ["autoload", "telltale_ccl"] {
            for entry in std::fs::read_dir(clients.join(directory)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name.ends_with(".py") {
                    there.insert(format!("{directory}/{name}"));
                }
            }
        }
        let carried: BTreeSet<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(carried, there);
        let state = Scratch::new();
        std::fs::create_dir_all(state.join("shim/telltale_ccl")).unwrap();
        std::fs::write(state.join("shim/telltale_ccl/_old.py"), "of another version").unwrap();
        assert_eq!(write(state.path()).unwrap(), state.join("shim/autoload"));
        for (path, text) in FILES {
            let written = std::fs::read_to_string(state.join("shim").join(path)).unwrap();
            assert_eq!(&written, text, "{path}");
        }
        assert!(!state.join("shim/telltale_ccl/_old.py").exists());
    }

    #[test]
    fn a_python_that_does_not_look_is_refused() {
        let check = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            can_have_shim(&words).is_ok()
        };
        assert!(check("python3 a.py -S") && check("./train.sh -S") && check("bash -c x"));
        assert!(!check("python3 -S a.py") && !check("/usr/bin/python3.11 -uI -m job"));
    }
}
