//! The directories, links and files of one chip.
//!
//! A file is written elsewhere and moved to its place, so that a reader finds the old text or the
//! new one, never a part. Only what changed is written.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::boards::DriverChip;
use super::driver::FileDirectory;
use super::fault::InjectedErrno;
use super::root::{TreeError, directory, remove_tree};

/// What a file shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// An error: a link that leads nowhere and whose target names the error, because no regular
    /// file can give one. Readers under a `--root` know this form.
    Errno(InjectedErrno),
    /// A pipe without a writer.
    Hang,
}

/// The files of one chip under a root.
#[derive(Debug)]
pub(crate) struct ChipTree {
    root: PathBuf,
    /// The directory of the port that the PCI function is below, relative to `sys/devices`.
    port_path: String,
    /// The PCI function's directory, relative to `sys/devices`.
    pci_path: String,
    ordinal: u32,
    hwmon: u32,
    bus_address: String,
    files: ShownFiles<(FileDirectory, &'static str)>,
}

/// Files and what they show, of which only those that change are written.
#[derive(Debug)]
pub(crate) struct ShownFiles<K> {
    staging: PathBuf,
    shown: BTreeMap<K, Content>,
    /// Write ends of the pipes: a reader's open succeeds, and its read waits.
    pipes: BTreeMap<K, File>,
}

impl<K: Ord + Clone> ShownFiles<K> {
    /// No file yet; what is written goes through the directory `staging`.
    pub(crate) fn new(staging: PathBuf) -> Self {
        Self { staging, shown: BTreeMap::new(), pipes: BTreeMap::new() }
    }

    /// Whether a file shows this already; none where it is not there.
    fn is_shown(&self, key: &K, content: Option<&Content>) -> bool {
        self.shown.get(key) == content
    }

    /// Makes the file at `path` show this; none removes it. Its directory must be there.
    pub(crate) fn show(
        &mut self,
        key: K,
        path: &Path,
        content: Option<Content>,
    ) -> Result<(), TreeError> {
        if self.is_shown(&key, content.as_ref()) {
            return Ok(());
        }
        self.pipes.remove(&key);
        match &content {
            None => remove_file(path)?,
            Some(content) => {
                let staged = self.staging.join("next");
                if let Some(pipe) = stage(&staged, content)? {
                    self.pipes.insert(key.clone(), pipe);
                }
                std::fs::rename(&staged, path)
                    .map_err(|error| TreeError::new("replace", path, error))?;
            }
        }
        match content {
            Some(content) => self.shown.insert(key, content),
            None => self.shown.remove(&key),
        };
        Ok(())
    }

    /// Forgets files that are removed in another way.
    pub(crate) fn forget(&mut self, is_removed: impl Fn(&K) -> bool) {
        self.shown.retain(|key, _| !is_removed(key));
        self.pipes.retain(|key, _| !is_removed(key));
    }
}

impl ChipTree {
    /// Makes the directories and links of a chip; `proc` only for drivers that have it.
    pub(crate) fn create(
        root: &Path,
        staging: PathBuf,
        chip: &DriverChip,
        proc: bool,
    ) -> Result<Self, TreeError> {
        let (high, low) = (chip.pci.bus & 0xF0, chip.pci.bus & 0x0F);
        let port = format!("0000:{high:02x}:{low:02x}.1");
        let port_path = format!("pci0000:{high:02x}/{port}");
        let tree = Self {
            root: root.to_path_buf(),
            pci_path: format!("{port_path}/{}", chip.pci),
            port_path,
            ordinal: chip.ordinal,
            hwmon: chip.hwmon,
            bus_address: chip.pci.to_string(),
            files: ShownFiles::new(staging),
        };
        directories(root, &format!("sys/devices/{}", tree.pci_path))?;
        for place in [FileDirectory::Class, FileDirectory::Hwmon] {
            directories(root, &tree.inside(place))?;
            let path = tree.directory(place);
            link(&format!("../../../{}", tree.bus_address), &path.join("device"))?;
            let class = if place == FileDirectory::Class { "tenstorrent" } else { "hwmon" };
            link(&format!("../../../../../../class/{class}"), &path.join("subsystem"))?;
        }
        for (link_path, target) in tree.links() {
            link(&target, &link_path)?;
        }
        // The port stays when its chip vanishes.
        let port_link = root.join("sys/bus/pci/devices").join(port);
        link(&format!("../../../devices/{}", tree.port_path), &port_link)?;
        if proc {
            directories(root, &tree.inside(FileDirectory::Proc))?;
        }
        Ok(tree)
    }

    /// Makes a file show this; none removes it.
    pub(crate) fn show(
        &mut self,
        place: FileDirectory,
        name: &'static str,
        content: Option<Content>,
    ) -> Result<(), TreeError> {
        let key = (place, name);
        if self.files.is_shown(&key, content.as_ref()) {
            return Ok(());
        }
        let directory_path = self.directory(place);
        if place == FileDirectory::PcieCounters && content.is_some() {
            directory(&directory_path, 0o755)?;
        }
        self.files.show(key, &directory_path.join(name), content)
    }

    /// Removes the list of processes and its directory.
    pub(crate) fn remove_proc(&mut self) -> Result<(), TreeError> {
        self.files.forget(|(place, _)| *place == FileDirectory::Proc);
        remove_tree(&self.directory(FileDirectory::Proc))
    }

    /// Makes the directory of the list of processes.
    pub(crate) fn make_proc(&self) -> Result<(), TreeError> {
        directories(&self.root, &self.inside(FileDirectory::Proc))
    }

    /// Removes everything.
    pub(crate) fn remove(mut self) -> Result<(), TreeError> {
        for (link_path, _) in self.links() {
            remove_file(&link_path)?;
        }
        self.remove_proc()?;
        remove_tree(&self.directory(FileDirectory::Pci))
    }

    fn links(&self) -> [(PathBuf, String); 3] {
        let Self { ordinal, hwmon, pci_path, bus_address, .. } = self;
        let sys = self.root.join("sys");
        [
            (
                sys.join(format!("class/tenstorrent/tenstorrent!{ordinal}")),
                format!("../../devices/{pci_path}/tenstorrent/tenstorrent!{ordinal}"),
            ),
            (
                sys.join(format!("class/hwmon/hwmon{hwmon}")),
                format!("../../devices/{pci_path}/hwmon/hwmon{hwmon}"),
            ),
            (
                sys.join(format!("bus/pci/devices/{bus_address}")),
                format!("../../../devices/{pci_path}"),
            ),
        ]
    }

    fn directory(&self, place: FileDirectory) -> PathBuf {
        self.root.join(self.inside(place))
    }

    /// The directory of a place, relative to the root.
    fn inside(&self, place: FileDirectory) -> String {
        let Self { ordinal, hwmon, pci_path, port_path, .. } = self;
        match place {
            FileDirectory::Class => {
                format!("sys/devices/{pci_path}/tenstorrent/tenstorrent!{ordinal}")
            }
            FileDirectory::PcieCounters => format!(
                "sys/devices/{pci_path}/tenstorrent/tenstorrent!{ordinal}/pcie_perf_counters"
            ),
            FileDirectory::Hwmon => format!("sys/devices/{pci_path}/hwmon/hwmon{hwmon}"),
            FileDirectory::Pci => format!("sys/devices/{pci_path}"),
            FileDirectory::Port => format!("sys/devices/{port_path}"),
            FileDirectory::Proc => format!("proc/driver/tenstorrent/{ordinal}"),
        }
    }
}

/// Makes all directories on the way from `root` to `inside`.
pub(crate) fn directories(root: &Path, inside: &str) -> Result<(), TreeError> {
    let mut path = root.to_path_buf();
    for part in inside.split('/') {
        path.push(part);
        directory(&path, 0o755)?;
    }
    Ok(())
}

/// Makes or replaces a file that never changes.
pub(crate) fn write_file(staging: &Path, path: &Path, text: &str) -> Result<(), TreeError> {
    let staged = staging.join("next");
    stage(&staged, &Content::Bytes(text.as_bytes().to_vec()))?;
    std::fs::rename(&staged, path).map_err(|error| TreeError::new("replace", path, error))
}

/// Makes a symbolic link; one that is there stays.
pub(crate) fn link(target: &str, path: &Path) -> Result<(), TreeError> {
    match symlink(target, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(TreeError::new("make the link", path, error))
        }
        _ => Ok(()),
    }
}

/// Removes a file or a link; absent is fine.
pub(crate) fn remove_file(path: &Path) -> Result<(), TreeError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(TreeError::new("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// Makes the file at `path`; for a pipe, gives its write end.
fn stage(path: &Path, content: &Content) -> Result<Option<File>, TreeError> {
    let failed = |error| TreeError::new("write", path, error);
    match content {
        Content::Bytes(bytes) => {
            remove_file(path)?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o444)
                .open(path)
                .map_err(failed)?;
            file.write_all(bytes).map_err(failed)?;
            file.set_permissions(Permissions::from_mode(0o444)).map_err(failed)?;
            Ok(None)
        }
        Content::Errno(errno) => {
            remove_file(path)?;
            link(&format!("errno:{}", errno.name()), path)?;
            Ok(None)
        }
        Content::Hang => {
            remove_file(path)?;
            let mode = Mode::from_raw_mode(0o444);
            mknodat(CWD, path, FileType::Fifo, mode, 0).map_err(|error| failed(error.into()))?;
            std::fs::set_permissions(path, Permissions::from_mode(0o644)).map_err(failed)?;
            // Opened for both directions, or this open would wait for a reader.
            let pipe = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).expect("a small flag"))
                .open(path)
                .map_err(failed)?;
            std::fs::set_permissions(path, Permissions::from_mode(0o444)).map_err(failed)?;
            Ok(Some(pipe))
        }
    }
}
