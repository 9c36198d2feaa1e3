//! What loaded programs take up on the chip: their kernels' code, the cores' region for circular
//! buffers, their semaphores.
//!
//! Programs share: equal kernels are there once, and the region for circular buffers is as large
//! as the program needs that needs most. Everything is freed with the last program.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use telltale_schema::memory::MemoryKind;

use super::memory::{Allocation, OpenChip};
use crate::client::DeviceError;
use crate::kernels::{LoadedKernel, SEMAPHORES};

/// A semaphore's place in a core's memory, as large as the network moves at once.
const SEMAPHORE_BYTES: u64 = 16;

/// The programs on a chip.
pub(super) struct Residents {
    chip: Arc<OpenChip>,
    shared: Mutex<ResidenceShared>,
}

#[derive(Default)]
struct ResidenceShared {
    /// By the address of the loaded kernel, which its allocation keeps loaded.
    kernels: HashMap<(usize, MemoryKind), Weak<KernelCode>>,
    semaphores: Weak<Allocation>,
    /// How many programs need how many bytes on each core.
    needs: BTreeMap<u64, usize>,
    region: Option<Allocation>,
}

/// A kernel's code on every core.
struct KernelCode {
    allocation: Allocation,
    _kernel: Arc<LoadedKernel>,
}

/// One program's share; dropping it frees what no other program needs.
pub(super) struct Residence {
    kernels: Vec<Arc<KernelCode>>,
    _semaphores: Option<Arc<Allocation>>,
    region: Option<RegionNeed>,
}

struct RegionNeed {
    residents: Arc<Residents>,
    bytes_per_core: u64,
}

impl Residents {
    pub(super) fn new(chip: Arc<OpenChip>) -> Self {
        Self { chip, shared: Mutex::default() }
    }

    /// The code of `kernels` on every core.
    pub(super) fn kernels(
        &self,
        kernels: &[Arc<LoadedKernel>],
        kind: MemoryKind,
    ) -> Result<Residence, DeviceError> {
        let mut shared = self.lock();
        shared.kernels.retain(|_, code| code.strong_count() > 0);
        let mut resident = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            let key = (Arc::as_ptr(kernel).addr(), kind);
            let found = shared.kernels.get(&key).and_then(Weak::upgrade);
            let code = match found {
                Some(code) => code,
                None => {
                    let bytes = kernel.code_bytes() * self.cores();
                    let allocation = self.chip.allocate(kind, bytes)?;
                    let _kernel = Arc::clone(kernel);
                    let code = Arc::new(KernelCode { allocation, _kernel });
                    shared.kernels.insert(key, Arc::downgrade(&code));
                    code
                }
            };
            resident.push(code);
        }
        Ok(Residence { kernels: resident, _semaphores: None, region: None })
    }

    /// Makes sure that the cores' semaphores are there.
    pub(super) fn semaphores(&self, residence: &mut Residence) -> Result<(), DeviceError> {
        let mut shared = self.lock();
        let found = match shared.semaphores.upgrade() {
            Some(found) => found,
            None => {
                let bytes = SEMAPHORE_BYTES * SEMAPHORES as u64 * self.cores();
                Arc::new(self.chip.allocate(MemoryKind::L1Small, bytes)?)
            }
        };
        shared.semaphores = Arc::downgrade(&found);
        residence._semaphores = Some(found);
        Ok(())
    }

    /// Makes sure that the region for circular buffers has this much on each core.
    pub(super) fn circular_buffers(
        self: &Arc<Self>,
        residence: &mut Residence,
        bytes_per_core: u64,
    ) -> Result<(), DeviceError> {
        let mut shared = self.lock();
        *shared.needs.entry(bytes_per_core).or_default() += 1;
        // From here on a failure takes the need back.
        let need = RegionNeed { residents: Arc::clone(self), bytes_per_core };
        let result = self.resize(&mut shared);
        drop(shared);
        result?;
        residence.region = Some(need);
        Ok(())
    }

    fn resize(&self, shared: &mut ResidenceShared) -> Result<(), DeviceError> {
        let needed = shared.needs.last_key_value().map_or(0, |(bytes, _)| bytes * self.cores());
        let has = shared.region.as_ref().map_or(0, Allocation::bytes);
        if needed == has {
            return Ok(());
        }
        // The old region makes room for the new one; its content is undefined between two runs.
        shared.region = None;
        if needed > 0 {
            shared.region = Some(self.chip.allocate(MemoryKind::Cb, needed)?);
        }
        Ok(())
    }

    fn cores(&self) -> u64 {
        self.chip.description().facts.worker_cores.into()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ResidenceShared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Residence {
    /// Its kernels' code on all cores.
    pub(super) fn code_bytes(&self) -> u64 {
        self.kernels.iter().map(|code| code.allocation.bytes()).sum()
    }

    /// Its kernels' code and its circular buffers on all cores.
    pub(super) fn bytes(&self) -> u64 {
        let region = self.region.as_ref();
        self.code_bytes() + region.map_or(0, |need| need.bytes_per_core * need.residents.cores())
    }
}

impl Drop for RegionNeed {
    fn drop(&mut self) {
        let mut shared = self.residents.lock();
        if let Some(programs) = shared.needs.get_mut(&self.bytes_per_core) {
            *programs -= 1;
            if *programs == 0 {
                shared.needs.remove(&self.bytes_per_core);
            }
        }
        // It becomes smaller or as large as it was. Another process may have taken the place in
        // between; then the region is not accounted for until a program needs it again.
        let _ = self.residents.resize(&mut shared);
    }
}
