//! What to write instead of an option that there is not.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use telltale_emulator::MachineKind;

/// Where the options of a training script are.
const OF_SCRIPT: &str = "options of the script are behind its name: telltale train train.py --lr 1";
/// Options of nvidia-smi, by which people who come from there ask (docs/coming-from.md).
const OF_NVIDIA_SMI: [(&[&str], &str); 6] = [
    (&["-q", "--query"], "all that is known: '-d'; some fields: '--query-device'"),
    (&["-x", "--xml-format"], "for programs: '--json'"),
    (&["--query-gpu"], "fields of devices: '--query-device' (names: '--help-fields')"),
    (&["--query-compute-apps", "--query-apps"], "fields of processes: '--query-process'"),
    (&["--help-query-gpu", "--help-query-compute-apps"], "names of fields: '--help-fields'"),
    (
        &["-r", "--gpu-reset", "-p", "-e", "-a", "--power-limit", "--lock-gpu-clocks"],
        "telltale writes to no device; nvidia-smi does",
    ),
];

/// Adds to an error about an option that there is not what to write, where that is known.
pub(super) fn with_tip(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(text)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let command = std::env::args_os().nth(1).unwrap_or_default();
    let of_nvidia_smi = || {
        let known = OF_NVIDIA_SMI.iter().find(|(names, _)| names.contains(&text.as_str()));
        known.map(|(_, tip)| (*tip).to_owned())
    };
    let tip = match (text.parse::<MachineKind>(), command.to_str()) {
        (Ok(kind), _) => Some(format!("a machine is chosen with '--machine {kind}'")),
        (Err(_), Some("train")) => Some(OF_SCRIPT.to_owned()),
        (Err(_), Some("smi")) => of_nvidia_smi(),
        (Err(_), _) => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
