//! Options of torchrun that are not understood, and what is safe by default.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use telltale_cluster::rank::WorkersPerNode;
use telltale_control_plane::supervisor::{can_be_warm, can_have_shim};

use crate::arguments::TrainArguments;
use crate::arguments::torchrun::{Answer, OtherOptions};
use crate::exit::{self, Failure};

/// The variable by which workers that are started ahead import no more than is known to be safe
/// (`control-plane/src/supervisor/python/sitecustomize.py`).
const WARM_IMPORTS: &str = "TELLTALE_WARM_IMPORTS";
/// Memory that is free for each worker that is started ahead, or none is: PyTorch and its like need some hundred MiB.
const WARM_BYTES: u64 = 1 << 30;

/// Whether workers are started ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warm {
    /// None is.
    Off,
    /// With imports that are known to be safe.
    Known,
    /// With all imports of the script that are installed.
    All,
}

/// Variables of torchrun that stand for no option and are refused, each with what to do instead.
const REFUSED_VARIABLES: [(&str, &str); 2] = [
    (
        "TORCHELASTIC_ENABLE_FILE_TIMER",
        "take it and the timers of torch.distributed.elastic out: a worker that stops is reported \
         after `--hang-after` seconds",
    ),
    (
        "TORCHELASTIC_HEALTH_CHECK_PORT",
        "take it out, and let what asked that port run `telltale cluster status`",
    ),
];

/// Refuses what is refused, each with what to write instead; says what changes nothing, if that is wanted.
pub(super) fn check(others: &OtherOptions, says_all: bool) -> Result<(), Failure> {
    let mut refused = Vec::new();
    for given in &others.given {
        match given.option.answer {
            Answer::Refused(instead) => {
                refused.push(format!("{} is not supported; {instead}", given.name()));
            }
            Answer::NotNeeded(why) if says_all => {
                exit::tell(&format!("telltale: {} changes nothing: {why}", given.name()));
            }
            Answer::NotNeeded(_) | Answer::Understood => {}
        }
    }
    let is_set =
        |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    let variables = REFUSED_VARIABLES.iter().filter(|(name, _)| is_set(name));
    refused.extend(variables.map(|(name, instead)| format!("{name} is not supported; {instead}")));
    if refused.is_empty() { Ok(()) } else { Err(Failure::Usage(refused.join("\ntelltale: "))) }
}

/// Whether workers are given the module that reports collectives: by default where they can.
pub(super) fn has_shim(arguments: &TrainArguments, command: &[OsString]) -> Result<bool, Failure> {
    Ok(!arguments.no_shim && can_have_shim(command).is_ok())
}

// === impl Warm ===

impl Warm {
    pub(super) fn of(
        arguments: &TrainArguments,
        command: &[OsString],
        workers: WorkersPerNode,
    ) -> Result<Self, Failure> {
        let can = can_be_warm(command);
        if arguments.warm {
            return can.map(|()| Self::All).map_err(|error| Failure::because(&error));
        }
        let is_safe = !arguments.no_warm && arguments.max_restarts > 0 && can.is_ok();
        let is_known = is_safe && has_room(workers);
        Ok(if is_known { Self::Known } else { Self::Off })
    }

    pub(super) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The variable for workers, if they need one.
    pub(super) fn variable(self) -> Option<(OsString, OsString)> {
        (self == Self::Known).then(|| (WARM_IMPORTS.into(), OsStr::new("known").into()))
    }
}

/// Whether there is memory for as many workers again.
fn has_room(workers: WorkersPerNode) -> bool {
    free_memory() >= WARM_BYTES.saturating_mul(workers.get().into())
}

/// Bytes that are free: of the host, or less where a control group has a limit.
fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = available.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    let of_host = kibibytes.map_or(0, |number: u64| number.saturating_mul(1024));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups =
        groups.lines().filter_map(|line| free_in_group(Path::new("/sys/fs/cgroup"), line));
    of_groups.fold(of_host, u64::min)
}

/// Bytes that are free in a control group as /proc/self/cgroup names it, and in those that it is in.
fn free_in_group(mounted: &Path, line: &str) -> Option<u64> {
    let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
    let (mounted, limit, used) = match controllers {
        "" => (mounted.to_owned(), "memory.max", "memory.current"),
        _ if controllers.split(',').any(|one| one == "memory") => {
            (mounted.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    let read = |group: &Path, name: &str| -> Option<u64> {
        fs::read_to_string(mounted.join(group).join(name)).ok()?.trim().parse().ok()
    };
    let groups = Path::new(group.trim_start_matches('/')).ancestors();
    let free = |group| Some(read(group, limit)?.saturating_sub(read(group, used)?));
    groups.filter_map(free).min()
}

#[cfg(test)]
mod tests {
    use telltale_harness::Scratch;

    use super::*;

    #[test]
    fn memory_is_free_as_far_as_each_control_group_has_it() {
        let place = Scratch::new();
        let group = |path: &str, files: [(&str, &str); 2]| {
            fs::create_dir_all(place.join(path)).unwrap();
            files.iter().for_each(|(name, text)| {
                fs::write(place.join(path).join(name), text).unwrap();
            });
        };
        group("a", [("memory.max", "1000\n"), ("memory.current", "400\n")]);
        group("a/b", [("memory.max", "max\n"), ("memory.current", "300\n")]);
        group("memory/c", [("memory.limit_in_bytes", "50\n"), ("memory.usage_in_bytes", "60\n")]);
        let free = |line| free_in_group(place.path(), line);
        assert_eq!(free("0::/a/b"), Some(600));
        assert_eq!(free("0::/"), None);
        assert_eq!(free("5:cpu,memory:/c"), Some(0));
        assert_eq!(free("4:cpuset:/c"), None);
        assert_eq!(free("garbage"), None);
    }
}
