//! The arguments of `telltale man`.

use std::path::PathBuf;

use clap::Args;

/// What follows the options.
pub(super) const MAN_HELP: &str = "\
Writes a page for telltale and for each command, in section 1, dated $SOURCE_DATE_EPOCH if it is
set.

Examples:
  telltale man --output /usr/share/man/man1
  telltale man --output . && man ./telltale-serve.1";

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Directory of the pages; made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}
