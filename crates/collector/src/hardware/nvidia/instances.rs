//! The parts of a GPU in MIG mode: its instances, each with memory and cores of its own.
//!
//! What NVML calls a MIG device is a compute instance. Those of one GPU instance share its memory,
//! and each of them says to have all of it; so a part is a GPU instance, with the users of all its
//! compute instances, and the memory once.

use std::collections::BTreeMap;

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::MemoryInfo;

use super::library::{Said, word};
use super::raw_calls::gpu_instance_id;
use super::users::{User, Visibility, users};

/// MIG devices of one GPU that are checked; no GPU has more than seven.
const MAX_MIG_DEVICES: u32 = 64;
/// `NVML_DEVICE_MIG_ENABLE`.
const ENABLED: u32 = 1;

/// One GPU instance.
#[derive(Debug)]
pub(super) struct Instance {
    /// The driver's number for it, unique within the GPU.
    pub(super) id: u32,
    pub(super) model: Option<String>,
    /// Of its compute instance, where there is one that has all of it.
    pub(super) uuid: Option<String>,
    pub(super) memory: Said<MemoryInfo>,
    pub(super) users: Said<Vec<User>>,
}

/// The instances of a GPU by their numbers; none where it is not divided.
pub(super) fn instances(gpu: &Device<'_>, visibility: &Visibility) -> Said<Vec<Instance>> {
    let mode = match gpu.mig_mode() {
        Ok(mode) => mode.current,
        Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let most = if mode == ENABLED { gpu.mig_device_count()? } else { 0 };
    let mut found: BTreeMap<u32, Instance> = BTreeMap::new();
    for index in 0..most.min(MAX_MIG_DEVICES) {
        let device = match gpu.mig_device_by_index(index) {
            Ok(device) => device,
            // A number that is free.
            Err(NvmlError::NotFound | NvmlError::InvalidArg) => continue,
            Err(error) => return Err(error),
        };
        let id = gpu_instance_id(&device)?;
        let users = users(&device, visibility);
        match found.get_mut(&id) {
            None => {
                found.insert(id, Instance::of(&device, id, users));
            }
            Some(shared) => shared.add(users),
        }
    }
    Ok(found.into_values().collect())
}

// === impl Instance ===

impl Instance {
    fn of(device: &Device<'_>, id: u32, users: Said<Vec<User>>) -> Self {
        let model = device.name().ok().and_then(|name| word(&name)).map(|name| whole(&name));
        let uuid = device.uuid().ok().and_then(|uuid| word(&uuid));
        Self { id, model, uuid, memory: device.memory_info(), users }
    }

    /// Another compute instance of it.
    fn add(&mut self, more: Said<Vec<User>>) {
        self.uuid = None;
        match (&mut self.users, more) {
            (Ok(users), Ok(more)) => {
                for user in more {
                    let known = user
                        .pid
                        .and_then(|pid| users.iter_mut().find(|known| known.pid == Some(pid)));
                    match known {
                        Some(known) => known.bytes = known.bytes.max(user.bytes),
                        None => users.push(user),
                    }
                }
            }
            (users @ Ok(_), Err(error)) => *users = Err(error),
            (Err(_), _) => {}
        }
    }
}

/// The name of the GPU instance in that of a compute instance: `MIG 2g.20gb` of `MIG 1c.2g.20gb`.
fn whole(name: &str) -> String {
    match name.rsplit_once("MIG ") {
        Some((gpu, profile)) => match profile.split_once("c.") {
            Some((count, rest)) if count.parse::<u8>().is_ok() => format!("{gpu}MIG {rest}"),
            _ => name.to_owned(),
        },
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_part_has_the_name_of_the_gpu_instance() {
        let cases = [
            ("NVIDIA H200 MIG 1g.18gb", "NVIDIA H200 MIG 1g.18gb"),
            ("NVIDIA H200 MIG 1c.2g.35gb", "NVIDIA H200 MIG 2g.35gb"),
            ("NVIDIA H200 MIG 1g.18gb+me", "NVIDIA H200 MIG 1g.18gb+me"),
            ("NVIDIA H200", "NVIDIA H200"),
        ];
        for (name, expected) in cases {
            assert_eq!(whole(name), expected);
        }
    }
}
