//! The host's parts that are no accelerators, in its tree: fans, power supplies, voltages, network
//! interfaces, InfiniBand ports and a memory controller.
//!
//! [`layout`] has which there are, [`model`] how their values move, [`text`] what each file says. Names
//! and formats are the kernel's: `Documentation/hwmon/sysfs-interface.rst`, and `sysfs-class-net`,
//! `sysfs-class-infiniband` and `sysfs-devices-edac` of `Documentation/ABI`.

mod layout;
mod model;
mod text;

use std::path::{Path, PathBuf};

use super::fault::PartFailure;
use super::root::{TreeError, remove_tree};
use super::tree::{Content, ShownFiles, directories, link, remove_file};
use layout::{Adapter, MEMORY, NICS, PORTS};
use model::PartsModel;

/// A failure of the part at a place among those of its kind.
pub(crate) type Failing = (PartFailure, usize);

/// The parts of one machine.
#[derive(Debug)]
pub(crate) struct Parts {
    root: PathBuf,
    /// N of the first `hwmonN` that is a part's.
    first_hwmon: u32,
    model: PartsModel,
    failing: Vec<Failing>,
    /// By the path below `sys/devices`.
    files: ShownFiles<String>,
}

// === impl Parts ===

impl Parts {
    /// Those of a machine under `root`, of which nothing is there yet.
    pub(crate) fn new(root: &Path, staging: PathBuf, seed: u64, first_hwmon: u32) -> Self {
        Self {
            root: root.to_path_buf(),
            first_hwmon,
            model: PartsModel::new(seed),
            failing: Vec::new(),
            files: ShownFiles::new(staging),
        }
    }

    /// Makes the parts' directories, links and files.
    pub(crate) fn lay_out(&mut self) -> Result<(), TreeError> {
        for class in ["net", "infiniband"] {
            directories(&self.root, &format!("sys/class/{class}"))?;
        }
        for hwmon in layout::hwmons(self.first_hwmon) {
            self.make_device(&hwmon.path, &hwmon.device, "hwmon", &hwmon.name)?;
        }
        for nic in &NICS {
            self.make_adapter(nic, "net")?;
        }
        for port in &PORTS {
            self.make_adapter(port, "infiniband")?;
        }
        directories(&self.root, &format!("sys/devices/{MEMORY}"))?;
        self.refresh()
    }

    /// The place of a part of this name among those that can fail so.
    pub(crate) fn place_of(name: &str, failure: PartFailure) -> Option<usize> {
        layout::names(failure.kind()).iter().position(|known| known == name)
    }

    /// Lets time pass while the chips take so many watts together.
    pub(crate) fn step(&mut self, chips_watts: u64) -> Result<(), TreeError> {
        self.model.step(chips_watts);
        self.refresh()
    }

    /// Begins a failure.
    pub(crate) fn begin(&mut self, failing: Failing, count: u32) -> Result<(), TreeError> {
        let (failure, place) = failing;
        self.model.begin(failure, place, count);
        self.failing.push(failing);
        if failure == PartFailure::NicGone {
            self.remove_adapter(&NICS[place], "net")?;
        }
        self.refresh()
    }

    /// Ends a failure that was begun. What it counted stays counted.
    pub(crate) fn end(&mut self, failing: Failing) -> Result<(), TreeError> {
        let (failure, place) = failing;
        if let Some(index) = self.failing.iter().rposition(|known| *known == failing) {
            self.failing.remove(index);
        }
        let is_over = !self.failing.contains(&failing);
        if is_over {
            self.model.end(failure, place);
        }
        if failure == PartFailure::NicGone && is_over {
            self.make_adapter(&NICS[place], "net")?;
        }
        self.refresh()
    }

    /// Brings the files up to date.
    fn refresh(&mut self) -> Result<(), TreeError> {
        let devices = self.root.join("sys/devices");
        for (path, mut text) in text::files(&self.model, &self.failing, self.first_hwmon) {
            text.push('\n');
            let at = devices.join(&path);
            self.files.show(path, &at, Some(Content::Bytes(text.into_bytes())))?;
        }
        Ok(())
    }

    /// A device of a class, with its directory below that of the hardware it is of. All paths but the
    /// class's are below `sys/devices`.
    fn make_device(
        &self,
        path: &str,
        device: &str,
        class: &str,
        name: &str,
    ) -> Result<(), TreeError> {
        directories(&self.root, &format!("sys/devices/{path}"))?;
        let device = device.rsplit('/').next().expect("a path has a last part");
        let at = self.root.join("sys/devices").join(path);
        link(&format!("../../../{device}"), &at.join("device"))?;
        let target = format!("../../devices/{path}");
        link(&target, &self.root.join("sys/class").join(class).join(name))
    }

    fn make_adapter(&self, adapter: &Adapter, class: &str) -> Result<(), TreeError> {
        let path = format!("{}/{class}/{}", adapter.path(), adapter.name);
        self.make_device(&path, &adapter.path(), class, adapter.name)?;
        for inside in layout::directories_of(class) {
            directories(&self.root, &format!("sys/devices/{path}/{inside}"))?;
        }
        let functions = self.root.join("sys/bus/pci/devices");
        for (name, path) in
            [(adapter.port, adapter.port_path()), (adapter.function, adapter.path())]
        {
            link(&format!("../../../devices/{path}"), &functions.join(name))?;
        }
        Ok(())
    }

    /// Removes an adapter as one that fell off the bus; its port stays.
    fn remove_adapter(&mut self, adapter: &Adapter, class: &str) -> Result<(), TreeError> {
        let sys = self.root.join("sys");
        remove_file(&sys.join("class").join(class).join(adapter.name))?;
        remove_file(&sys.join("bus/pci/devices").join(adapter.function))?;
        let own = adapter.path();
        self.files.forget(|path| path.strip_prefix(&own).is_some_and(|it| it.starts_with('/')));
        remove_tree(&sys.join("devices").join(own))
    }
}
