//! What a person or a script sees of a coordinator's answers: the same fields and words in the
//! command's JSON, on the coordinator's page, and in sentences.
//!
//! Made of the messages as they came; nothing here asks or decides. Times are nanoseconds or, with a
//! date, milliseconds since the Unix epoch. What is not known is left out.

mod evidence;
mod hang;
mod incident;
mod matrix;
mod node;
mod status;
mod steps;
mod words;

pub use evidence::{EvidenceView, SuspectView, VerdictView};
pub use hang::{HangView, StackView};
pub use incident::{EventView, ExplanationView, FinishedWorkerView, IncidentView};
pub(crate) use incident::{failed_starts, hook_sentence};
pub use matrix::{CellView, MatrixView};
pub use node::{ActivityView, DeviceView, NodeView, ProcessView, WorkerView};
pub use status::StatusView;
pub use steps::{
    AnalysisView, JobStepsView, LinkView, LostView, RankView, StageView, StepTimeView, WaitView,
};
pub(crate) use words::{Suspicion, held, waiting};
pub use words::{age, duration, end as worker_end, mode, mode_of};
