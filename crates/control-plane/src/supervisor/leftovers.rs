//! The record of what an agent has started, so that its next life can clear it away.
//!
//! A worker is written down by itself before it becomes the command that it is to run; so nothing
//! runs that is not in the record. Nothing is believed of a number alone: the machine's boot, the time
//! at which the process began, or the mark in its environment must fit as well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::process::{self, Origin, ProcessTable};

/// Bytes of a record that are read: some thousand lives of some ten workers.
const MAX_RECORD_BYTES: u64 = 4 << 20;

/// How long killed processes may take to be gone before that is an error.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where the kernel reports which of its lives this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file.
#[derive(Debug, Clone)]
pub(super) struct LeftoverRecord {
    path: PathBuf,
}

impl LeftoverRecord {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// Adds a worker, in one write.
    pub(super) fn add(&self, origin: &Origin) -> io::Result<()> {
        self.open(OpenOptions::new().append(true).create(true))?
            .write_all(line(origin, &boot()?).as_bytes())
    }

    /// Leaves only these workers in it. None may be added meanwhile.
    pub(super) fn keep(&self, origins: &[Origin]) -> io::Result<()> {
        self.replace(&self.path, origins)
    }

    /// Notes which descendants of workers can be known neither by a session nor by a mark. Each has
    /// its worker's mark, or how the marks of its agent begin. One process may do so at a time.
    pub(super) fn note_strays(&self, strays: &[Origin]) -> io::Result<()> {
        self.replace(&self.strays_path(), strays)
    }

    /// The latest of these notes.
    pub(super) fn strays(&self) -> io::Result<Vec<Origin>> {
        read(&self.strays_path())
    }

    fn strays_path(&self) -> PathBuf {
        self.path.with_extension("strays")
    }

    fn replace(&self, path: &Path, origins: &[Origin]) -> io::Result<()> {
        let boot = boot()?;
        let text: String = origins.iter().map(|origin| line(origin, &boot)).collect();
        let beside = path.with_extension(if path == self.path { "new" } else { "strays-new" });
        self.open_at(&beside, OpenOptions::new().write(true).create(true).truncate(true))?
            .write_all(text.as_bytes())?;
        fs::rename(beside, path)
    }

    /// Kills every process of the workers in it whose mark begins with `whose`, and returns once
    /// they are gone.
    pub(super) fn clear(&self, whose: &str) -> io::Result<()> {
        let [mut origins, mut strays] = [self.read()?, self.strays()?];
        origins.retain(|origin| origin.mark.starts_with(whose));
        strays.retain(|stray| stray.mark.starts_with(whose));
        if origins.is_empty() && strays.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let table = ProcessTable::read();
            let mut left = table.followers(&origins);
            left.extend(origins.iter().filter_map(process::leader));
            left.extend(table.still(&strays));
            // What belongs to another user cannot be ended by this one.
            left.retain(|process| process.signal(Signal::KILL));
            if left.is_empty() {
                return Ok(());
            }
            if start.elapsed() > TIMEOUT {
                let pids: Vec<String> = left.iter().map(|one| one.pid.to_string()).collect();
                return Err(io::Error::other(format!("still there: {}", pids.join(", "))));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// The workers of this boot in it.
    pub(super) fn read(&self) -> io::Result<Vec<Origin>> {
        read(&self.path)
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        self.open_at(&self.path, options)
    }

    fn open_at(&self, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        options.mode(0o600).open(path)
    }
}

/// What a file says of this boot. What is no such line is passed over: a torn write is one.
fn read(path: &Path) -> io::Result<Vec<Origin>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut text = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut text)?;
    let boot = boot()?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(|text| parse(text, &boot)).collect())
}

fn boot() -> io::Result<String> {
    fs::read_to_string(BOOT_ID).map(|text| text.trim().to_owned())
}

fn line(origin: &Origin, boot: &str) -> String {
    format!("worker {boot} {} {} {}\n", origin.leader, origin.started_ticks, origin.mark)
}

fn parse(text: &str, this_boot: &str) -> Option<Origin> {
    let mut words = text.split(' ');
    let (kind, boot) = (words.next()?, words.next()?);
    let leader = Pid::from_raw(words.next()?.parse().ok()?)?;
    let started_ticks = words.next()?.parse().ok()?;
    let mark = words.next()?.to_owned();
    let fits = kind == "worker" && boot == this_boot && !mark.is_empty() && words.next().is_none();
    fits.then_some(Origin { leader, started_ticks, mark })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_this_boot_count() {
        let scratch = telltale_harness::Scratch::new();
        let record = LeftoverRecord::at(&scratch.join("workers"));
        assert_eq!(record.read().unwrap(), [], "a record that is not there is empty");
        let origin = |pid: i32| Origin {
            leader: Pid::from_raw(pid).unwrap(),
            started_ticks: 12,
            mark: format!("node-1-{pid}"),
        };
        record.add(&origin(4)).unwrap();
        let torn = "worker another-boot 5 12 node-1-5\nworker x\n\u{0}\nworker";
        record.open(OpenOptions::new().append(true)).unwrap().write_all(torn.as_bytes()).unwrap();
        assert_eq!(record.read().unwrap(), [origin(4)]);
        record.keep(&[origin(6), origin(7)]).unwrap();
        assert_eq!(record.read().unwrap(), [origin(6), origin(7)]);
    }

    #[test]
    fn a_number_that_was_given_to_another_is_left_alone() {
        let scratch = telltale_harness::Scratch::new();
        let record = LeftoverRecord::at(&scratch.join("workers"));
        let mut stranger =
            telltale_harness::ChildGuard::spawn(std::process::Command::new("sleep").arg("600"));
        let leader = Pid::from_raw(stranger.id().try_into().unwrap()).unwrap();
        let started_ticks = process::ProcessStat::read(leader).unwrap().started_ticks;
        let earlier = Origin { leader, started_ticks: started_ticks - 1, mark: "n-1-0".to_owned() };
        record.add(&earlier).unwrap();
        record.clear("").unwrap();
        assert!(stranger.is_running());
        record.add(&Origin { started_ticks, ..earlier }).unwrap();
        record.clear("another-").unwrap();
        assert!(stranger.is_running(), "it is not that agent's");
        record.clear("n-1-").unwrap();
        assert!(!stranger.is_running());
    }
}
