//! The arguments of `telltale man`.

use std::path::PathBuf;

use clap::Args;

/// What follows the options.
pub(super) const MAN_HELP: &str = "\
One page for telltale and one for each of its commands, in section 1. They have the date of
$SOURCE_DATE_EPOCH if it is set, and none otherwise, so that packages can be built again bit by bit.

Examples:
  telltale man --output /usr/share/man/man1
  telltale man --output . && man ./telltale-serve.1";

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The directory, which must be there
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}
