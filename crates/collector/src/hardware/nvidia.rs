//! NVIDIA's GPUs, as their driver's library reports them (NVML).
//!
//! The library is loaded when the program runs, and only where the driver is loaded. It is the one
//! place in this crate through which device nodes are opened: the library does so itself
//! (docs/decisions/0067-nvml.md). It is asked on threads that are left behind when it hangs, one question
//! of one GPU at a time.

mod complaints;
mod errors;
mod events;
mod gpu;
mod inquiry;
mod instances;
mod library;
mod nvlink;
mod part;
mod power;
mod process_use;
mod question;
mod raw_calls;
mod traffic;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use telltale_schema::chip::PciAddress;
use telltale_schema::clock::Clock;
use telltale_schema::reading::Absence;

use super::inquiry::Inquiry;
use crate::rate::SampledAt;
use crate::report::SourceReport;
use crate::source::{DeviceReading, HardwareSource, SourceReading};
use crate::timeout::TaskName;
use crate::tree::Tree;
use complaints::Complaints;
use events::XidEvents;
use gpu::{Gpu, SILENT};
use inquiry::{NvmlAnswer, NvmlInquiry};
use library::{Gpus, Library, MAX_GPUS};
use question::Question;
use users::Visibility;

/// The name of this source in a snapshot.
const SOURCE: &str = "nvidia";

/// Where the driver shows that it is loaded.
const DRIVER: &str = "proc/driver/nvidia";
/// Where the kernel lists the PCI functions that the driver has.
const FUNCTIONS: &str = "sys/bus/pci/drivers/nvidia";

/// The task that starts the library and lists the GPUs.
const LIST: TaskName = TaskName { group: u32::MAX, item: 0 };

/// Which NVML is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NvmlUse {
    /// None.
    Never,
    /// The one that this machine's loader finds, if the root is this machine's.
    #[default]
    OfThisMachine,
    /// The library at this path, whatever the root is.
    At(PathBuf),
}

/// Reads the GPUs of one machine, periodically if asked.
pub struct NvidiaSource {
    inquiry: Inquiry,
    wanted: NvmlUse,
    library: Library,
    gpus: BTreeMap<u32, Gpu>,
    events: XidEvents,
}

// === impl NvidiaSource ===

impl NvidiaSource {
    /// A source for the machine under `tree`. One question may take the first of `limits`; starting
    /// the library, and all questions together, the second each.
    pub fn new(
        tree: Arc<Tree>,
        clock: Arc<dyn Clock>,
        wanted: NvmlUse,
        limits: (Duration, Duration),
    ) -> Self {
        let path = match &wanted {
            NvmlUse::At(path) => Some(path.clone()),
            NvmlUse::Never | NvmlUse::OfThisMachine => None,
        };
        Self {
            inquiry: Inquiry::new(tree, clock, limits).with_foreign_code(),
            wanted,
            library: Library::new(path),
            gpus: BTreeMap::new(),
            events: XidEvents::default(),
        }
    }

    /// Why NVML is not asked, where it is not.
    fn not_asked(&self) -> Option<String> {
        match self.wanted {
            NvmlUse::Never => return Some(String::from("not asked, as configured")),
            NvmlUse::OfThisMachine if self.inquiry.tree.is_emulated() => {
                let root = self.inquiry.tree.path().display();
                return Some(format!(
                    "not asked, as NVML reports this machine and not the one below {root}"
                ));
            }
            NvmlUse::OfThisMachine | NvmlUse::At(_) => {}
        }
        if self.inquiry.tree.root().stat(DRIVER).is_err() {
            let place = self.inquiry.tree.display(DRIVER);
            return Some(format!("no driver of NVIDIA's is loaded (there is no {place})"));
        }
        self.all_sleep().then(|| {
            String::from("not asked, as all of its GPUs sleep and NVML would wake them up")
        })
    }

    /// Whether the kernel has put every GPU of the driver to sleep, as it does in laptops.
    fn all_sleep(&self) -> bool {
        let Ok(functions) = self.inquiry.tree.root().directory(FUNCTIONS) else { return false };
        let names = functions.names().unwrap_or_default();
        let is_function = |name: &&String| name.parse::<PciAddress>().is_ok();
        let mut functions = names.iter().filter(is_function).map(|name| {
            let status = functions.attribute(&format!("{name}/power/runtime_status"));
            status.is_ok_and(|text| text.starts_with(b"suspend"))
        });
        functions.next().is_some_and(|sleeps| sleeps && functions.all(|sleeps| sleeps))
    }

    /// The GPUs, or why there is nothing to ask; the error is already reported.
    fn list(&mut self, report: &mut SourceReport) -> Result<Gpus, Option<String>> {
        match self.inquiry.run_long((LIST, self.library.clone()), Library::gpus) {
            Some(Ok(gpus)) => {
                if gpus.count > MAX_GPUS {
                    let detail = format!("{} GPUs, {MAX_GPUS} are looked at", gpus.count);
                    report.error("nvml", Absence::Implausible, detail);
                }
                Ok(gpus)
            }
            Some(Err(none)) => match none.is_not_here() {
                Some(why) => {
                    self.gpus.clear();
                    Err(Some(why))
                }
                None => {
                    let (reason, detail) = none.failure();
                    self.forget(reason, &detail);
                    report.error("nvml", reason, detail);
                    Err(None)
                }
            },
            None => {
                for gpu in self.gpus.values_mut() {
                    gpu.forget_users(Absence::TimedOut, SILENT);
                }
                report.error("nvml", Absence::TimedOut, SILENT);
                Err(None)
            }
        }
    }

    fn forget(&mut self, reason: Absence, detail: &str) {
        for gpu in self.gpus.values_mut() {
            gpu.forget(reason, detail);
        }
    }

    /// Asks every GPU everything.
    fn ask(&mut self, gpus: Gpus, report: &mut SourceReport) {
        let indices = 0..gpus.count.min(MAX_GPUS);
        self.gpus.retain(|index, _| indices.contains(index));
        let visibility = Visibility::of(Arc::clone(&self.inquiry.tree));
        let mut tasks = Vec::new();
        for (index, handle) in indices.clone().zip(gpus.handles) {
            match handle {
                Ok(device) => {
                    let gpu = self.gpus.entry(index).or_insert_with(|| Gpu::new(index));
                    self.events.follow(&device, &mut gpu.xid, &self.inquiry.clock);
                    tasks.extend((0..).zip(Question::ALL).map(|(item, question)| {
                        let (device, visibility) = (Arc::clone(&device), visibility.clone());
                        let clock = Arc::clone(&self.inquiry.clock);
                        let inquiry = NvmlInquiry { device, question, visibility, clock };
                        (TaskName { group: index, item }, inquiry)
                    }));
                }
                Err(error) => match self.gpus.get_mut(&index) {
                    Some(gpu) => gpu.refuse(&error, report),
                    // Without a handle there is no way to know which it is.
                    None => Gpu::new(index).refuse(&error, report),
                },
            }
        }
        let names: Vec<(u32, u32)> =
            tasks.iter().map(|(name, _)| (name.group, name.item)).collect();
        let answers = self.inquiry.run(tasks, NvmlInquiry::answer);
        let mut by_gpu: BTreeMap<u32, Vec<Option<NvmlAnswer>>> = BTreeMap::new();
        for ((index, _), answer) in names.into_iter().zip(answers) {
            by_gpu.entry(index).or_default().push(answer);
        }
        let clock = &self.inquiry.clock;
        let moment = SampledAt { at: clock.now(), monotonic_ns: clock.monotonic_ns() };
        for (index, answers) in by_gpu {
            if let Some(gpu) = self.gpus.get_mut(&index) {
                take(gpu, answers, moment, gpus.driver_version.as_deref(), report);
            }
        }
    }

    /// Those that are known, each name once: two GPUs at one address are distinguished by number.
    fn devices(&self) -> Vec<DeviceReading> {
        let mut names = BTreeSet::new();
        let mut devices = Vec::with_capacity(self.gpus.len());
        for (index, gpu) in &self.gpus {
            let device = gpu.device.clone();
            let is_new = names.insert(device.identity.display_id());
            if is_new {
                devices.push(device);
                devices.extend(gpu.parts.values().cloned());
            } else {
                let identity = Gpu::new(*index).device.identity;
                devices.push(DeviceReading { identity, ..device });
            }
        }
        devices
    }
}

/// Hands a GPU its answers, in the order of the questions.
fn take(
    gpu: &mut Gpu,
    answers: Vec<Option<NvmlAnswer>>,
    moment: SampledAt,
    driver_version: Option<&str>,
    report: &mut SourceReport,
) {
    let mut complaints = Complaints::of(gpu.device.identity.display_id(), report);
    for (question, answer) in Question::ALL.into_iter().zip(answers) {
        gpu.take(question, answer, moment.at, &mut complaints);
    }
    gpu.settle(moment.monotonic_ns, &mut complaints);
    if let Some(version) = driver_version.and_then(library::word) {
        gpu.device.telemetry.firmware.insert(String::from("driver_version"), version);
    }
}

impl HardwareSource for NvidiaSource {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self) -> SourceReading {
        let mut inquiry = self.inquiry.begin();
        let mut absent = self.not_asked();
        if absent.is_some() {
            self.gpus.clear();
        } else {
            match self.list(&mut inquiry.report) {
                Ok(gpus) => {
                    let none = gpus.count == 0;
                    absent = none.then(|| String::from("NVIDIA's driver has no GPU"));
                    self.ask(gpus, &mut inquiry.report);
                }
                Err(why) => absent = why,
            }
        }
        let devices = self.devices();
        self.inquiry.reported(inquiry, SOURCE, devices, absent)
    }
}
