//! The view of a machine that a demo has set up: without this host's service, job and settings, and ended by
//! the demo as well as by its keys.

use std::time::{Duration, Instant};

use telltale_smi::screen::{Availability, Pane, SMALLEST, ViewSettings};

use super::{Opening, Wake, is_possible};
use crate::arguments::{HardwareArguments, HistoryPlace, LocationArguments, ScreenArguments};
use crate::exit::Failure;
use crate::output::StandardOutput;

/// What is shown, and until when.
pub(crate) struct StagedView {
    pub(crate) place: LocationArguments,
    /// The time from one snapshot to the next.
    pub(crate) period: Duration,
    /// The pane below at the start.
    pub(crate) pane: Pane,
    /// What is shown in the place of the host's name.
    pub(crate) host: &'static str,
    /// What is said in the last row until the first key.
    pub(crate) welcome: String,
    /// When it ends by itself, if it does.
    pub(crate) until: Option<Instant>,
}

/// What ends a view beside its keys and signals.
pub(super) struct Ending<'a> {
    pub(super) until: Option<Instant>,
    /// Asked at least once a second; true when it must end.
    pub(super) is_over: &'a mut dyn FnMut() -> Result<bool, Failure>,
}

/// Whether the view can be shown here, at its whole size.
pub(crate) fn fits(output: &StandardOutput) -> bool {
    let (columns, rows) = SMALLEST;
    let is_large = output.style().width.is_some_and(|width| width >= columns.into())
        && output.rows().is_some_and(|count| count >= rows.into());
    is_possible(output) && is_large
}

impl StagedView {
    /// Shows it until it is ended. `is_over` is asked at least once a second.
    pub(crate) fn run(
        self,
        is_over: &mut dyn FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let screen = ScreenArguments {
            readonly: false,
            theme: None,
            coordinator: Vec::new(),
            coordinator_token_file: None,
            coordinator_authority: None,
            events: None,
        };
        // A history of this host would be another machine's.
        let history = HistoryPlace { state_dir: self.place.root.clone() };
        let opening = Opening {
            place: &self.place,
            period: self.period,
            filter: None,
            screen: &screen,
            hosts: None,
            history: &history,
            hardware: &HardwareArguments { no_nvml: true },
            replay: None,
            staged: Some(&self),
        };
        let ending = Ending { until: self.until, is_over };
        opening.run_until(&StandardOutput::detect(), Some(ending))
    }

    /// The settings at the start; none are kept.
    pub(super) fn settings(&self) -> ViewSettings {
        ViewSettings { pane: self.pane, ..ViewSettings::default() }
    }

    /// What there is beside snapshots.
    pub(super) fn beside() -> [Wake; 2] {
        let why = |what: &str| format!("No {what}: this demo has none.");
        [
            Wake::Cluster(
                Box::new(Availability::Absent(why("job"))),
                Availability::Known(Vec::new()),
            ),
            Wake::Tail(Availability::Absent(why("capture"))),
        ]
    }
}
