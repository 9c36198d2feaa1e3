//! What tables and the full-screen view can be painted with here.

use super::finding::Finding;
use crate::output::StandardOutput;

/// Checks the locale. That there is none with UTF-8 is no fault: everything is shown in ASCII.
pub(super) fn check(output: &StandardOutput, findings: &mut Vec<Finding>) {
    findings.push(match output.style().unicode {
        true => Finding::works("terminal", "the locale has UTF-8"),
        false => {
            Finding::works("terminal", "the locale has no UTF-8: tables and graphs are in ASCII")
                .mended_by("export LC_ALL=C.UTF-8")
        }
    });
}
