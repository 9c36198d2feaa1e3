//! What a chip's file shows, given what is wrong with it.

use super::driver::{Attribute, DriverView, FileDirectory};
use super::fault::{Fault, InjectedErrno};
use super::tree::Content;

/// What a file shows under these faults; none when one of them removes it.
pub(crate) fn content(
    attribute: &Attribute,
    view: &DriverView<'_>,
    faults: &[&Fault],
) -> Option<Content> {
    let resetting = |fault: &&Fault| matches!(fault, Fault::Reset { .. });
    if attribute.from_firmware && faults.iter().any(resetting) {
        return Some(Content::Errno(InjectedErrno::NoData));
    }
    // Faults name files of the chip: its port's have the same names and stay as they are.
    let faults = if attribute.place == FileDirectory::Port { &[] } else { faults };
    faulty(attribute.name, faults).unwrap_or_else(|| {
        let mut text = (attribute.text)(view);
        text.push('\n');
        Some(Content::Bytes(text.into_bytes()))
    })
}

/// The list of processes under these faults.
pub(crate) fn pids_content(true_lines: String, faults: &[&Fault]) -> Option<Content> {
    faulty("pids", faults).unwrap_or_else(|| {
        let lines = faults.iter().fold(true_lines, |lines, fault| match fault {
            Fault::Pids { lines: wrong, .. } => wrong.apply(&lines),
            _ => lines,
        });
        Some(Content::Bytes(lines.into_bytes()))
    })
}

/// What the last fault of this one file makes of it; none if no fault is about it.
#[expect(clippy::option_option, reason = "no fault, and a fault that removes the file")]
fn faulty(name: &str, faults: &[&Fault]) -> Option<Option<Content>> {
    let about = |fault: &&&Fault| fault.attribute() == Some(name);
    match faults.iter().rev().find(about)? {
        Fault::Missing { .. } => Some(None),
        Fault::Error { errno, .. } => Some(Some(Content::Errno(*errno))),
        Fault::Garbage { garbage, .. } => Some(Some(Content::Bytes(garbage.bytes(name)))),
        Fault::Hang { .. } => Some(Some(Content::Hang)),
        Fault::Reset { .. }
        | Fault::Vanish { .. }
        | Fault::OldDriver
        | Fault::Pids { .. }
        | Fault::Link { .. }
        | Fault::Stop { .. }
        | Fault::Trip { .. }
        | Fault::Raise { .. }
        | Fault::Part { .. } => None,
    }
}
