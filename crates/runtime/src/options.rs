//! What a runtime is started with, and which environment variables decide it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use telltale_ledger::region::writer::RegionLayout;

use crate::problem::OnProblem;

/// The variable that chooses the regions' layout.
pub(crate) const LAYOUT_VARIABLE: &str = "TELLTALE_SHM_LAYOUT";

/// As much of a variable's value as is shown to a person.
const MAX_SHOWN_CHARS: usize = 32;

/// How Telltale is to work in this process. [`Options::new`] reads the environment once.
#[derive(Clone)]
pub struct Options {
    /// Name and version of the runtime that records, such as `tt-metal 0.62`.
    pub runtime_name: String,
    /// Record nothing and start nothing (`TELLTALE_DISABLED=1`).
    pub disabled: bool,
    /// Where the ledger and the endpoint go, whatever the environment says.
    pub directory: Option<PathBuf>,
    /// The root of an emulated machine: its `run/tt` is the runtime directory unless
    /// [`Self::directory`] says otherwise, and its `dev/shm` holds the regions.
    pub root: Option<PathBuf>,
    /// Which tt-metal regions to keep up to date; none unless asked for.
    pub regions: Option<Regions>,
    /// What `TELLTALE_SHM_LAYOUT` says, where regions are asked for and it names no layout that is
    /// written; told once when a device is opened.
    pub unknown_layout: Option<String>,
    /// Say on standard error which region belongs to which device
    /// (`TT_METAL_LOGGER_LEVEL=DEBUG`).
    pub log_regions: bool,
    /// Gets what could not be done, once for each step, instead of standard error. It is called
    /// on the thread that had the problem.
    pub on_problem: Option<OnProblem>,
}

/// How tt-metal's regions in `/dev/shm` are kept (`TT_METAL_SHM_STATS_ENABLED=1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    /// Whether this process has its own row (`TT_METAL_SHM_STATS_PER_PID=1`).
    pub per_pid: bool,
    /// The layout (`TELLTALE_SHM_LAYOUT`, 1 or 3).
    pub layout: RegionLayout,
}

impl Options {
    /// What this process's environment says.
    pub fn new(runtime_name: &str) -> Self {
        Self::from_variables(runtime_name, |name| std::env::var_os(name))
    }

    /// What the environment that `variable` stands for says. A variable that is set to anything
    /// but `1` is off.
    pub fn from_variables(runtime_name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let is = |name: &str, wanted: &str| variable(name).is_some_and(|value| value == wanted);
        let asked = variable(LAYOUT_VARIABLE).unwrap_or_default();
        let (layout, is_known) = match asked.to_str() {
            Some("" | "1") => (RegionLayout::V1, true),
            Some("3") => (RegionLayout::V3, true),
            Some(_) | None => (RegionLayout::V1, false),
        };
        let regions = is("TT_METAL_SHM_STATS_ENABLED", "1")
            .then(|| Regions { per_pid: is("TT_METAL_SHM_STATS_PER_PID", "1"), layout });
        let unknown_layout = (regions.is_some() && !is_known)
            .then(|| asked.to_string_lossy().chars().take(MAX_SHOWN_CHARS).collect());
        Self {
            runtime_name: runtime_name.to_owned(),
            disabled: is("TELLTALE_DISABLED", "1"),
            directory: None,
            root: None,
            regions,
            unknown_layout,
            log_regions: is("TT_METAL_LOGGER_LEVEL", "DEBUG"),
            on_problem: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Options")
            .field("runtime_name", &self.runtime_name)
            .field("disabled", &self.disabled)
            .field("directory", &self.directory)
            .field("root", &self.root)
            .field("regions", &self.regions)
            .field("unknown_layout", &self.unknown_layout)
            .field("log_regions", &self.log_regions)
            .field("on_problem", &self.on_problem.as_ref().map(|_| "set"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, RegionLayout, Regions};

    #[test]
    fn variables_decide() {
        let options = |set: &[(&str, &str)]| {
            Options::from_variables("test", |name| {
                set.iter().find(|(found, _)| *found == name).map(|(_, value)| value.into())
            })
        };
        let plain = options(&[("TELLTALE_DISABLED", "0"), ("TT_METAL_SHM_STATS_PER_PID", "1")]);
        assert_eq!((plain.disabled, plain.regions, plain.log_regions), (false, None, false));
        assert!(options(&[("TELLTALE_DISABLED", "1")]).disabled);
        assert!(options(&[("TT_METAL_LOGGER_LEVEL", "DEBUG")]).log_regions);
        let enabled = ("TT_METAL_SHM_STATS_ENABLED", "1");
        let cases = [
            (vec![enabled], false, RegionLayout::V1),
            (vec![enabled, ("TT_METAL_SHM_STATS_PER_PID", "1")], true, RegionLayout::V1),
            (vec![enabled, ("TELLTALE_SHM_LAYOUT", "3")], false, RegionLayout::V3),
            (vec![enabled, ("TELLTALE_SHM_LAYOUT", "1")], false, RegionLayout::V1),
        ];
        for (set, per_pid, layout) in cases {
            assert_eq!(options(&set).regions, Some(Regions { per_pid, layout }));
            assert_eq!(options(&set).unknown_layout, None);
        }
        for asked in ["2", "x", "3 "] {
            let layout = ("TELLTALE_SHM_LAYOUT", asked);
            assert_eq!(options(&[enabled, layout]).unknown_layout.as_deref(), Some(asked));
            assert_eq!(options(&[layout]).unknown_layout, None);
        }
    }
}
