//! Shell scripts: what a linter says of them.

use std::process::Command;

use crate::deploy::files::{deploy, in_repository, is_silent, tool};

#[test]
fn shellcheck_has_nothing_to_say() {
    let test = "deploy::shellcheck_has_nothing_to_say";
    let scripts = [
        deploy("install.sh"),
        deploy("slurm/telltale-health"),
        deploy("kubernetes/telltale-check"),
        in_repository(".ci/run"),
    ];
    let Some(output) = tool(test, Command::new("shellcheck").args(scripts)) else { return };
    is_silent(&output);
}
