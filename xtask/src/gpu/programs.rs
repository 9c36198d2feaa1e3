//! What the comparison runs: built here, or copied to a folder that a machine without a network can use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names in the folder.
const TELLTALE: &str = "telltale";
const PRELOAD: &str = "libtelltale_preload.so";
const NCCL: &str = "libnccl-profiler-telltale.so";
const XTASK: &str = "xtask";
const COMMIT: &str = "commit";
const README: &str = "README";

/// For the person who has the folder and no repository.
const README_TEXT: &str = include_str!("README.txt");

/// Longest text of a commit that is read.
const MAX_COMMIT_CHARACTERS: usize = 80;

/// The programs, and what they were built from.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `telltale`.
    pub telltale: PathBuf,
    /// The library of `telltale run`.
    pub preload: PathBuf,
    /// The plugin for NCCL.
    pub nccl: PathBuf,
    /// The commit they were built from.
    pub commit: String,
}

// === impl Programs ===

impl Programs {
    /// Those in a folder that [`Self::copy`] has filled.
    ///
    /// # Errors
    /// The one that is not there, and what to do.
    pub fn in_folder(folder: &Path) -> Result<Self, String> {
        let folder = folder
            .canonicalize()
            .map_err(|error| format!("cannot use {}: {error}", folder.display()))?;
        let find = |name: &str| {
            let path = folder.join(name);
            path.is_file().then_some(path).ok_or_else(|| {
                format!("{} has no {name}; fill it with cargo xtask gpu --into", folder.display())
            })
        };
        let commit = std::fs::read_to_string(find(COMMIT)?)
            .map_err(|error| format!("cannot read {}: {error}", folder.join(COMMIT).display()))?;
        let commit = commit.trim().chars().take(MAX_COMMIT_CHARACTERS);
        Ok(Self {
            telltale: find(TELLTALE)?,
            preload: find(PRELOAD)?,
            nccl: find(NCCL)?,
            commit: commit.filter(|one| !one.is_control()).collect(),
        })
    }

    /// Builds them from the repository at `root`, in release.
    ///
    /// # Errors
    /// Why cargo or git failed.
    pub fn build(root: &Path) -> Result<Self, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--message-format=json-render-diagnostics"]);
        build.args(["--package", "telltale", "--bin", TELLTALE, "--lib"]);
        build.args(["--package", "telltale-preload", "--package", "telltale-nccl-profiler"]);
        let output = build.current_dir(root).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo build failed ({})", output.status));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        Ok(Self {
            telltale: artifact(&messages, TELLTALE)?,
            preload: artifact(&messages, PRELOAD)?,
            nccl: artifact(&messages, "libnccl_profiler_telltale.so")?,
            commit: commit(root)?,
        })
    }

    /// Copies them, this program and its README to `folder`, which is made where it is not there.
    ///
    /// # Errors
    /// Which file could not be written.
    pub fn copy(&self, xtask: &Path, folder: &Path) -> Result<(), String> {
        let failed = |path: &Path, error| format!("cannot write {}: {error}", path.display());
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let files = [
            (&*self.telltale, TELLTALE),
            (&self.preload, PRELOAD),
            (&self.nccl, NCCL),
            (xtask, XTASK),
        ];
        for (from, name) in files {
            let to = folder.join(name);
            // A program that runs cannot be written to, but another one can take its name.
            let _ = std::fs::remove_file(&to);
            std::fs::copy(from, &to).map_err(|error| failed(&to, error))?;
        }
        for (name, text) in
            [(COMMIT, format!("{}\n", self.commit)), (README, README_TEXT.to_owned())]
        {
            let to = folder.join(name);
            std::fs::write(&to, text).map_err(|error| failed(&to, error))?;
        }
        Ok(())
    }
}

/// The file of this name that cargo built.
fn artifact(messages: &str, name: &str) -> Result<PathBuf, String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["reason"] == "compiler-artifact")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|path| path.as_str().map(PathBuf::from))
        .find(|path| path.file_name().is_some_and(|file| file == name))
        .ok_or_else(|| format!("cargo built no {name}"))
}

/// The commit of the working tree, and whether it was edited.
fn commit(root: &Path) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).current_dir(root);
    let output = git.output().map_err(|error| format!("cannot run git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("git describe failed ({})", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::artifact;
    use std::path::PathBuf;

    #[test]
    fn a_file_is_found_in_what_cargo_reports() {
        let messages = "not json\n\
            {\"reason\":\"build-finished\",\"success\":true}\n\
            {\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/release/libx.rlib\",\"/t/release/libx.so\"]}\n";
        assert_eq!(artifact(messages, "libx.so"), Ok(PathBuf::from("/t/release/libx.so")));
        assert_eq!(artifact(messages, "x").unwrap_err(), "cargo built no x");
    }
}
