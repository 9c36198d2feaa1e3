//! Processor time that a worker wanted and did not get, since its control group's quota was used up.
//!
//! Such a worker computes slowly whatever its model is. That is how one that does work of its own, as a stage of a
//! pipeline without replicas, is distinguished from one that has more to do. How long its threads were ready while others ran
//! (`schedstat`) is not counted: on a machine that is busy for moments that names innocents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::WorkerProcess;
use telltale_cluster::observation::Withheld;
use telltale_cluster::rank::Rank;

/// Bytes that are read of a file that the kernel writes in a few lines.
const MAX_BYTES: u64 = 4096;
/// The same of `/proc/self/mountinfo`, which in containers is long.
const MAX_MOUNTS_BYTES: u64 = 1 << 20;
/// Control groups above each other that are checked.
const MAX_DEPTH: usize = 16;

/// Where control groups are, and in which unit they say how long they were throttled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Groups {
    root: PathBuf,
    is_unified: bool,
}

/// What has been withheld from a worker since it began.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// While each control group that it is in was throttled.
    throttled: BTreeMap<PathBuf, Duration>,
}

/// The latest look at each worker.
#[derive(Debug, Default)]
pub(super) struct Processor {
    before: BTreeMap<(Rank, u32), (Instant, Sums)>,
}

impl Processor {
    /// What was withheld from each worker since the last poll; nothing of a worker that is new, or of which the system
    /// says nothing.
    pub(super) fn sample(&mut self, processes: &[WorkerProcess], now: Instant) -> Vec<Withheld> {
        let before = std::mem::take(&mut self.before);
        let mut found = Vec::new();
        for process in processes {
            let sums = Sums::of(process.pid);
            let key = (process.rank, process.pid);
            if let Some((at, earlier)) = before.get(&key)
                && let Some(withheld) = sums.since(earlier)
            {
                let elapsed = now.duration_since(*at).max(Duration::from_millis(1));
                let part = (withheld.as_secs_f64() / elapsed.as_secs_f64()).min(1.0);
                found.push(Withheld::of(process.rank, part));
            }
            self.before.insert(key, (now, sums));
        }
        found
    }
}

impl Sums {
    fn of(pid: u32) -> Self {
        static GROUPS: OnceLock<Option<Groups>> = OnceLock::new();
        let groups = GROUPS.get_or_init(|| {
            Groups::find(&read(Path::new("/proc/self/mountinfo"), MAX_MOUNTS_BYTES)?)
        });
        let own = read(Path::new(&format!("/proc/{pid}/cgroup")), MAX_BYTES);
        let throttled = match (groups, own) {
            (Some(groups), Some(own)) => groups.throttled(&own),
            _ => BTreeMap::new(),
        };
        Self { throttled }
    }

    /// The most of all groups: those above throttle all that are below.
    fn since(&self, earlier: &Self) -> Option<Duration> {
        let throttled = self.throttled.iter().filter_map(|(group, now)| {
            earlier.throttled.get(group).map(|then| now.saturating_sub(*then))
        });
        throttled.max()
    }
}

impl Groups {
    /// The unified hierarchy, or that of the processor's controller, by `/proc/self/mountinfo` (proc(5)).
    fn find(mounts: &str) -> Option<Self> {
        let mut unified = None;
        for line in mounts.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let Some(root) = place.split(' ').nth(4).map(PathBuf::from) else { continue };
            let mut kind = kind.split(' ');
            match (kind.next(), kind.nth(1)) {
                (Some("cgroup"), Some(options)) if options.split(',').any(|one| one == "cpu") => {
                    return Some(Self { root, is_unified: false });
                }
                (Some("cgroup2"), _) => unified = Some(Self { root, is_unified: true }),
                _ => {}
            }
        }
        unified
    }

    /// How long each group that a process is in was throttled, by its `/proc/<pid>/cgroup` (cgroups(7)).
    fn throttled(&self, own: &str) -> BTreeMap<PathBuf, Duration> {
        let path = own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = match self.is_unified {
                true => controllers.is_empty(),
                false => controllers.split(',').any(|one| one == "cpu"),
            };
            is_it.then_some(path)
        });
        let relative =
            Path::new(path.unwrap_or_default()).strip_prefix("/").unwrap_or(Path::new(""));
        // A process of another namespace has a path with `..`, which leads nowhere here.
        if relative.components().any(|one| !matches!(one, Component::Normal(_))) {
            return BTreeMap::new();
        }
        let groups = relative.ancestors().take(MAX_DEPTH).map(|group| self.root.join(group));
        groups
            .filter_map(|group| {
                let text = read(&group.join("cpu.stat"), MAX_BYTES)?;
                Some((group, self.throttled_for(&text)?))
            })
            .collect()
    }

    /// How long, by a group's `cpu.stat`: in microseconds in the unified hierarchy, else in nanoseconds.
    fn throttled_for(&self, text: &str) -> Option<Duration> {
        let name = if self.is_unified { "throttled_usec " } else { "throttled_time " };
        let number = text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()?;
        let unit = if self.is_unified { Duration::from_micros } else { Duration::from_nanos };
        Some(unit(number))
    }
}

fn read(path: &Path, most: u64) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_kinds_are_found() {
        let first = "30 23 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n\
                     31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let found = Groups::find(first).unwrap();
        assert_eq!(
            (found.root.to_str().unwrap(), found.is_unified),
            ("/sys/fs/cgroup/cpu,cpuacct", false)
        );
        assert_eq!(
            found.throttled_for("nr_throttled 2\nthrottled_time 1500\n"),
            Some(Duration::from_nanos(1500))
        );
        let second = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw,nsdelegate\n";
        let found = Groups::find(second).unwrap();
        assert_eq!((found.root.to_str().unwrap(), found.is_unified), ("/sys/fs/cgroup", true));
        assert_eq!(
            found.throttled_for("usage_usec 9\nthrottled_usec 7\n"),
            Some(Duration::from_micros(7))
        );
        assert_eq!(found.throttled_for("usage_usec 9\n"), None);
        assert!(found.throttled("0::/../../elsewhere\n").is_empty());
        assert_eq!(Groups::find("30 23 0:26 / / rw - ext4 /dev/sda rw\nshort\n"), None);
    }

    #[test]
    fn what_is_withheld_is_what_a_group_was_throttled_for_since() {
        let group = PathBuf::from("/sys/fs/cgroup/job");
        let sums = |throttled_ms| Sums {
            throttled: BTreeMap::from([(group.clone(), Duration::from_millis(throttled_ms))]),
        };
        assert_eq!(sums(1500).since(&sums(700)), Some(Duration::from_millis(800)));
        assert_eq!(sums(700).since(&sums(1500)), Some(Duration::ZERO));
        // It was moved to another group.
        assert_eq!(sums(700).since(&Sums::default()), None);
    }

    #[test]
    fn a_worker_is_known_from_the_second_sample_on() {
        let own = WorkerProcess { rank: Rank(3), pid: std::process::id() };
        let gone = WorkerProcess { rank: Rank(4), pid: u32::MAX };
        let mut processor = Processor::default();
        assert_eq!(processor.sample(&[own, gone], Instant::now()), []);
        let found = processor.sample(&[own, gone], Instant::now() + Duration::from_secs(1));
        assert!(found.iter().all(|one| one.rank == Rank(3) && one.part() <= 1.0), "{found:?}");
    }
}
