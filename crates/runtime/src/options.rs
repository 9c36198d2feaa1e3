//! What a runtime is started with, and which environment variables decide it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use telltale_ledger::region::writer::RegionLayout;

use crate::problem::OnProblem;

/// The variable that chooses the regions' layout.
const LAYOUT: &str = "TELLTALE_SHM_LAYOUT";
/// Variables that switch something on.
const DISABLED: &str = "TELLTALE_DISABLED";
const REGIONS: &str = "TT_METAL_SHM_STATS_ENABLED";
const ROWS: &str = "TT_METAL_SHM_STATS_PER_PID";

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
    /// Variables whose values are not understood and would have mattered; reported once when a device
    /// is opened.
    pub misread: Vec<Misread>,
    /// Say on standard error which region belongs to which device
    /// (`TT_METAL_LOGGER_LEVEL=DEBUG`).
    pub log_regions: bool,
    /// Gets what could not be done, once for each step and 16 times for metrics, instead of standard
    /// error. It is called on the thread that had the problem.
    pub on_problem: Option<OnProblem>,
}

/// How tt-metal's regions in `/dev/shm` are kept (`TT_METAL_SHM_STATS_ENABLED=1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regions {
    /// Whether this process has its own row (`TT_METAL_SHM_STATS_PER_PID`). By default it has none
    /// in layout 1 and one in layout 3, as tt-metal's own writers of these; in layout 4 always.
    pub per_pid: bool,
    /// The layout (`TELLTALE_SHM_LAYOUT`: 1, 3 or 4).
    pub layout: RegionLayout,
}

/// A variable whose value is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// Its name.
    pub variable: &'static str,
    /// The beginning of its value.
    pub value: String,
    /// What it is taken as instead.
    pub taken_as: &'static str,
    /// What it can be.
    pub choices: &'static str,
}

impl Misread {
    fn new(
        variable: &'static str,
        value: &OsStr,
        taken_as: &'static str,
        choices: &'static str,
    ) -> Self {
        let value = value.to_string_lossy().chars().take(MAX_SHOWN_CHARS).collect();
        Self { variable, value, taken_as, choices }
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, value, taken_as, choices } = self;
        write!(to, "{variable} is {value:?}, which is not {choices}, so it is taken as {taken_as}")
    }
}

impl Options {
    /// What this process's environment says.
    pub fn new(runtime_name: &str) -> Self {
        Self::from_variables(runtime_name, |name| std::env::var_os(name))
    }

    /// What the environment that `variable` stands for says. A switch is on with `1`, off with
    /// `0`, empty or unset; with anything else it is off and among [`Self::misread`].
    pub fn from_variables(runtime_name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut misread = Vec::new();
        let switch = |name, misread: &mut Vec<Misread>| {
            let value = variable(name).unwrap_or_default();
            let known = [("1", true), ("0", false), ("", false)];
            let state = known.into_iter().find(|(known, _)| value == *known);
            if state.is_none() {
                misread.push(Misread::new(name, &value, "0", "0 or 1"));
            }
            state.is_some_and(|(_, on)| on)
        };
        let disabled = switch(DISABLED, &mut misread);
        let regions = switch(REGIONS, &mut misread).then(|| {
            let asked = variable(LAYOUT).unwrap_or_default();
            let mut numbered = RegionLayout::NUMBERED.into_iter();
            let chosen = numbered.find(|(number, _)| asked == *number.to_string());
            if chosen.is_none() && !asked.is_empty() {
                misread.push(Misread::new(LAYOUT, &asked, "3", "1, 3 or 4"));
            }
            let layout = chosen.map_or_else(RegionLayout::default, |(_, layout)| layout);
            let by_default = variable(ROWS).unwrap_or_default().is_empty();
            let per_pid = match layout {
                RegionLayout::V3 if by_default => true,
                RegionLayout::V1 | RegionLayout::V3 => switch(ROWS, &mut misread),
                RegionLayout::V4 => true,
            };
            Regions { per_pid, layout }
        });
        let log_regions = variable("TT_METAL_LOGGER_LEVEL").is_some_and(|value| value == "DEBUG");
        Self {
            runtime_name: runtime_name.to_owned(),
            disabled,
            directory: None,
            root: None,
            regions,
            misread,
            log_regions,
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
            .field("misread", &self.misread)
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
        let layout = |number| ("TELLTALE_SHM_LAYOUT", number);
        let rows = |switch| ("TT_METAL_SHM_STATS_PER_PID", switch);
        let cases = [
            (vec![enabled], true, RegionLayout::V3),
            (vec![enabled, rows("1")], true, RegionLayout::V3),
            (vec![enabled, rows("0")], false, RegionLayout::V3),
            (vec![enabled, layout("3")], true, RegionLayout::V3),
            (vec![enabled, layout("1")], false, RegionLayout::V1),
            (vec![enabled, layout("1"), rows("1")], true, RegionLayout::V1),
            (vec![enabled, layout("4"), rows("0")], true, RegionLayout::V4),
        ];
        for (set, per_pid, layout) in cases {
            assert_eq!(options(&set).regions, Some(Regions { per_pid, layout }));
            assert_eq!(options(&set).misread, []);
        }
        let misread = |set: &[(&str, &str)]| {
            let found = options(set).misread.into_iter();
            found.map(|one| (one.variable, one.value)).collect::<Vec<_>>()
        };
        for asked in ["2", "x", "3 ", "04"] {
            let reported = [("TELLTALE_SHM_LAYOUT", asked.to_owned())];
            assert_eq!(misread(&[enabled, layout(asked)]), reported);
            assert_eq!(misread(&[layout(asked)]), [], "no region is asked for");
        }
        for odd in ["true", "yes", "2", "1 "] {
            let [disabled, regions, rows] = [super::DISABLED, super::REGIONS, super::ROWS];
            assert_eq!(misread(&[(disabled, odd)]), [(disabled, odd.to_owned())]);
            assert_eq!(misread(&[(regions, odd), (rows, odd)]), [(regions, odd.to_owned())]);
            assert_eq!(misread(&[enabled, (rows, odd)]), [(rows, odd.to_owned())]);
            assert!(!options(&[(disabled, odd)]).disabled);
            assert_eq!(options(&[(regions, odd)]).regions, None);
        }
        for off in ["0", ""] {
            assert_eq!(misread(&[("TELLTALE_DISABLED", off)]), []);
        }
    }
}
