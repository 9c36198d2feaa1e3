//! Where a host's files are, as the commands of `telltale` know it too.

use std::path::PathBuf;

use telltale_client::usual_sockets;
use telltale_sources::PastPlace;

/// Where the files of the host are, and its runtime directory; none for the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostPlace {
    pub(crate) root: Option<PathBuf>,
    pub(crate) runtime_dir: Option<PathBuf>,
}

impl HostPlace {
    /// What was named, else what the environment names.
    pub(crate) fn named(root: Option<PathBuf>, runtime_dir: Option<PathBuf>) -> Self {
        Self {
            root: root.or_else(|| variable("TELLTALE_ROOT")),
            runtime_dir: runtime_dir.or_else(|| variable("TELLTALE_RUNTIME_DIR")),
        }
    }

    /// Where its service may be.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        usual_sockets(self.runtime_dir.as_deref(), self.root.as_deref())
    }

    /// Its history.
    pub(crate) fn past(self, state_dir: Option<PathBuf>) -> PastPlace {
        let state_dir = state_dir.or_else(|| variable("TELLTALE_STATE_DIR"));
        let sockets = self.sockets();
        PastPlace { state_dir, root: self.root, sockets }
    }
}

/// The path in a variable. One that is empty is as if it were not set.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
