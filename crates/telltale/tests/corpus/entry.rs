//! One version's directory, unpacked.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;
use telltale_harness::Scratch;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

/// One version's files, without compression, where a test may write.
pub(crate) struct Entry {
    pub(crate) name: String,
    place: Scratch,
}

impl Entry {
    /// All versions.
    pub(crate) fn all() -> Vec<Self> {
        let directories = fs::read_dir(HERE).unwrap().map(Result::unwrap);
        let entries: Vec<Self> = directories
            .filter(|found| found.file_type().unwrap().is_dir())
            .map(|found| {
                let place = Scratch::new();
                unpack(&found.path(), place.path());
                Self { name: found.file_name().into_string().unwrap(), place }
            })
            .collect();
        assert!(!entries.is_empty(), "{HERE} has no version");
        entries
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{}: {name}: {error}", self.name))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> T {
        serde_json::from_slice(&self.bytes(name))
            .unwrap_or_else(|error| panic!("{}: {name}: {error}", self.name))
    }

    /// The program, looking at nothing but what it is told.
    pub(crate) fn telltale(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_telltale"));
        command.env_clear().env("HOME", self.place.path()).env("LANG", "C.UTF-8");
        command.stdin(std::process::Stdio::null());
        command
    }
}

fn unpack(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for found in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = found.file_name().into_string().unwrap();
        if found.file_type().unwrap().is_dir() {
            unpack(&found.path(), &to.join(name));
            continue;
        }
        let mut file = File::open(found.path()).unwrap();
        let mut bytes = Vec::new();
        match name.strip_suffix(".gz") {
            Some(plain) => {
                MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
                fs::write(to.join(plain), bytes).unwrap();
            }
            None => {
                file.read_to_end(&mut bytes).unwrap();
                fs::write(to.join(name), bytes).unwrap();
            }
        }
    }
}
