//! The control group of a process: memory, pressure, and whether one of its processes was killed for want
//! of memory (cgroup v2, by the kernel's documentation in admin-guide/cgroup-v2).

use std::fs;
use std::path::PathBuf;

use procfs::process::Process;
use serde::{Deserialize, Serialize};

use crate::bounds::bounded;

/// What a control group reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ControlGroup {
    /// Its path below the hierarchy's root.
    pub path: String,
    /// Bytes in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The limit in bytes, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Processes of it that were killed for want of memory, since it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory_kills: Option<u64>,
    /// The kernel's lines of pressure that are not at rest, such as `memory some avg10=12.00 …`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pressure: Vec<String>,
}

impl ControlGroup {
    pub(super) fn of(process: &Process) -> Option<Self> {
        let groups = process.cgroups().ok()?;
        let group = groups.0.into_iter().find(|group| group.hierarchy == 0)?;
        // Another process's path is relative to this one's namespace, and may climb out of it.
        let inside = group.pathname.trim_start_matches('/').to_owned();
        if inside.split('/').any(|part| part == "..") {
            return None;
        }
        let folder = PathBuf::from("/sys/fs/cgroup").join(inside);
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse().ok();
        let kills = read("memory.events").and_then(|events| {
            let line = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
            line.trim().parse().ok()
        });
        let pressure = ["cpu", "io", "memory"].into_iter().flat_map(|resource| {
            let lines = read(&format!("{resource}.pressure")).unwrap_or_default();
            let lines: Vec<String> =
                lines.lines().map(|line| format!("{resource} {line}")).collect();
            lines
        });
        Some(Self {
            path: bounded(&group.pathname),
            memory_bytes: number("memory.current"),
            memory_limit_bytes: number("memory.max"),
            out_of_memory_kills: kills,
            pressure: pressure
                .filter(|line| !line.contains("avg10=0.00"))
                .map(|line| bounded(&line))
                .collect(),
        })
    }
}
