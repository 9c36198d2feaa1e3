//! What the answer to each question is, from what the test has started, and whether it is to be seen.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::machine::{Doing, ENDED, GROWS_BYTES_PER_SECOND, Galaxy, Workload, device_id};
use super::table::Place;

/// What is to be seen at the end of a way.
pub(super) struct Seen<'a> {
    pub(super) place: Place,
    pub(super) text: &'a str,
}

/// When a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// While no service writes the history, which is made older each time.
    WithoutService,
    /// At once.
    Now,
    /// After the others: a rule needs to have seen a minute, and growth two steps.
    AfterAMinute,
}

/// A question's answer.
pub(super) struct Answer {
    pub(super) question: &'static str,
    pub(super) moment: Moment,
    pub(super) is_seen: fn(&Galaxy, &Seen<'_>) -> bool,
}

const fn now(question: &'static str, is_seen: fn(&Galaxy, &Seen<'_>) -> bool) -> Answer {
    Answer { question, moment: Moment::Now, is_seen }
}

const fn at(
    moment: Moment,
    question: &'static str,
    is_seen: fn(&Galaxy, &Seen<'_>) -> bool,
) -> Answer {
    Answer { question, moment, is_seen }
}

/// All of them.
pub(super) const ANSWERS: [Answer; 20] = [
    now("Who holds T3:N5, and since when?", holder),
    now("Which devices does no process hold?", free_devices),
    now("How full is the memory of each device?", fullness),
    now("Which device is the hottest?", hottest),
    now("How far is T1:N0 from the temperature at which it throttles?", limit),
    now("How much data goes over the PCIe link of T1:N0?", traffic),
    now("Is a PCIe link narrower than its slot?", link),
    now("Which NUMA node is T3:N5 near?", numa),
    now("What is the command line of the process with most memory?", command_line),
    now("Which user has most memory?", users),
    now("How much processor time and host memory does the holder of T3:N5 take?", host_usage),
    now("What is in the environment of the process with most memory?", environment),
    now("What kinds of memory does the process with most memory use?", kinds),
    now("Has an allocation of the process finetune failed?", failed),
    now("Is memory held that is not used?", idle),
    now("What do two hosts look like, in one table?", hosts),
    now("How much memory did a job that has ended have at most?", peak),
    at(Moment::WithoutService, "Who held T4:N3 an hour ago?", hour_ago),
    at(Moment::AfterAMinute, "Does a process leak?", leak),
    at(Moment::AfterAMinute, "Which processes grew in the last hour?", grew),
];

impl Seen<'_> {
    /// Whether a line has all of these among its words.
    fn has(&self, words: &[&str]) -> bool {
        self.lines_with(words).next().is_some()
    }

    /// Lines with all of these among their words, as words.
    fn lines_with(&self, words: &[&str]) -> impl Iterator<Item = Vec<&str>> {
        let lines = self.text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.filter(move |line| words.iter().all(|word| line.contains(word)))
    }
}

/// Times in words such as `1m32s` or `1 m 32 s`, in seconds.
fn durations(words: &[&str]) -> Vec<u64> {
    let (mut found, mut sum, mut at) = (vec![], None, 0);
    while at < words.len() {
        let apart = words
            .get(at + 1)
            .filter(|unit| unit.len() == 1)
            .map(|unit| words[at].to_owned() + unit);
        let (seconds, taken) = match (seconds(words[at]), apart.as_deref().and_then(seconds)) {
            (Some(count), _) => (Some(count), 1),
            (None, Some(count)) => (Some(count), 2),
            (None, None) => (None, 1),
        };
        match (seconds, sum) {
            (Some(count), _) => sum = Some(sum.unwrap_or(0) + count),
            (None, _) => found.extend(sum.take()),
        }
        at += taken;
    }
    found.extend(sum);
    found
}

/// The seconds of a word such as `1m32s`.
fn seconds(word: &str) -> Option<u64> {
    word.split_inclusive(|letter: char| !letter.is_ascii_digit()).try_fold(0, |sum, part| {
        let (count, unit) = part.split_at_checked(part.len().checked_sub(1)?)?;
        let unit_seconds = match unit {
            "d" => 86_400,
            "h" => 3600,
            "m" => 60,
            "s" => 1,
            _ => return None,
        };
        Some(sum + count.parse::<u64>().ok()? * unit_seconds)
    })
}

/// Whether a time among these words is how long the workload has been there. It is somewhat less than the time since
/// it was started: it has to begin, and a snapshot is not of this moment.
fn has_its_age(words: &[&str], workload: &Workload) -> bool {
    let age = workload.started.elapsed().as_secs() + 1;
    durations(words).iter().any(|seconds| (age.saturating_sub(15)..=age).contains(seconds))
}

fn holder(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let workload = galaxy.workload("finetune");
    let pid = workload.pid();
    let all = match seen.place {
        // Of the panel of this device alone.
        Place::Page => vec![pid.as_str(), "finetune", "root"],
        _ => vec![pid.as_str(), "T3:N5", "root"],
    };
    let is_named = seen.place != Place::Page || seen.text.contains("Device T3:N5");
    is_named && seen.lines_with(&all).any(|line| has_its_age(&line, workload))
}

fn free(galaxy: &Galaxy) -> BTreeSet<String> {
    let held: Vec<usize> = galaxy.workloads.iter().map(|one| one.device).collect();
    (0..32).filter(|place| !held.contains(place)).map(device_id).collect()
}

/// The tiles of the page's map: a device and what is written there.
fn tiles(seen: &Seen<'_>) -> Vec<(String, String)> {
    let mut tray = "";
    let mut found = vec![];
    for line in seen.text.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first.split_at_checked(1) {
            Some(("T", _)) if rest.contains("in use") => tray = first,
            Some(("N", number)) if number.parse::<u8>().is_ok() => {
                found.push((format!("{tray}:{first}"), rest.to_owned()));
            }
            _ => {}
        }
    }
    found
}

fn free_devices(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let shown: BTreeSet<String> = match seen.place {
        Place::Page => {
            tiles(seen).into_iter().filter(|(_, held)| held == "0 B").map(|(id, _)| id).collect()
        }
        _ => {
            let first = seen.text.lines().filter_map(|line| line.split_whitespace().next());
            // A line about a device has a colon behind its name.
            let ids = first.filter(|word| word.contains(":N") && !word.ends_with(':'));
            ids.map(str::to_owned).collect()
        }
    };
    shown == free(galaxy)
}

/// Devices whose memory is known and stays, and how much is in use there; most of them none.
fn known_memory(galaxy: &Galaxy) -> Vec<(String, u64)> {
    let still = galaxy.workloads.iter().filter_map(|one| match one.doing {
        Doing::Keeps { mebibytes, .. } if one.device != 0 => Some((one.device(), mebibytes)),
        _ => None,
    });
    still.chain(free(galaxy).into_iter().map(|id| (id, 0))).collect()
}

/// The word that comes after a device's own and satisfies this.
fn after<'a>(seen: &'a Seen<'_>, device: &str, is_it: impl Fn(&str) -> bool) -> Option<&'a str> {
    let mut words = seen.text.split_whitespace().skip_while(|word| *word != device);
    words.find(|word| is_it(word))
}

/// Whether a device of `top` is among the idle ones of its tray, in whose row nothing is in use.
fn is_folded(seen: &Seen<'_>, device: &str) -> bool {
    let tray = format!("{}:", device.split(':').next().unwrap());
    let words = [&*tray, "idle", "process,"];
    let row = seen.lines_with(&words).next();
    let own = [device];
    let has_own = seen.lines_with(&own).any(|line| line[0] == device);
    !has_own && row.is_some_and(|row| row.windows(3).any(|words| words == ["0", "B", "of"]))
}

fn fullness(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    known_memory(galaxy).into_iter().all(|(id, mebibytes)| match seen.place {
        Place::Top if mebibytes == 0 && is_folded(seen, &id) => true,
        Place::Top => {
            let percent = (mebibytes as f64 / (12.0 * 1024.0) * 100.0).round();
            after(seen, &id, |word| word.ends_with('%')) == Some(&format!("{percent}%"))
        }
        Place::Page => {
            let amount = if mebibytes == 0 { "0 B".to_owned() } else { format!("{mebibytes} MiB") };
            tiles(seen).contains(&(id, amount)) && seen.text.contains("a full bar is 12.0 GiB")
        }
        Place::Shell if mebibytes == 0 => seen.has(&[&id, "0", "12.0"]),
        Place::Shell => seen.has(&[&id, &format!("{mebibytes}.0"), "12.0"]),
    })
}

fn hottest(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let working = galaxy.workload("pretrain").device();
    match seen.place {
        Place::Page => seen.lines_with(&["Hottest"]).any(|line| line.last() == Some(&&*working)),
        Place::Top => {
            // The rows of devices, and those of idle ones, which end with their least and greatest temperature.
            let rows = seen.lines_with(&["C"]).filter(|line| line[0].starts_with('T'));
            let degrees = rows.filter_map(|line| {
                let at = line.iter().position(|word| *word == "C")?;
                Some((line[0].to_owned(), line[at - 1].parse::<u32>().ok()?))
            });
            let degrees: Vec<(String, u32)> = degrees.collect();
            let all = (0..32).map(device_id);
            let own = degrees.iter().find(|(id, _)| *id == working);
            let are_seen = all
                .into_iter()
                .all(|id| is_folded(seen, &id) || degrees.iter().any(|(other, _)| *other == id));
            let is_hotter = |own: &(String, u32)| {
                degrees.iter().filter(|(id, _)| *id != working).all(|(_, other)| *other < own.1)
            };
            are_seen && own.is_some_and(is_hotter)
        }
        Place::Shell => {
            let degrees = |place| {
                let words: Vec<&str> = seen.text.split_whitespace().collect();
                let at = words.iter().position(|word| *word == device_id(place))?;
                let unit = words[at..].iter().position(|word| *word == "C")?;
                words[at + unit - 1].parse::<u32>().ok()
            };
            let all: Option<Vec<u32>> = (0..32).map(degrees).collect();
            all.is_some_and(|all| all[1..].iter().all(|other| *other < all[0]))
        }
    }
}

/// A file of the emulated driver of this device.
fn file(galaxy: &Galaxy, device: usize, name: &str) -> String {
    let device = format!("m/sys/class/tenstorrent/tenstorrent!{device}/device");
    let device: PathBuf = galaxy.place.join(device);
    let direct = device.join(name);
    let path = if direct.exists() {
        direct
    } else {
        let sensors = fs::read_dir(device.join("hwmon")).unwrap().next().unwrap().unwrap();
        sensors.path().join(name)
    };
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")).trim().to_owned()
}

fn limit(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let degrees: f64 = file(galaxy, 0, "temp1_max").parse::<f64>().unwrap() / 1000.0;
    match seen.place {
        Place::Page => seen.has(&["T1:N0", "/", &format!("{degrees:.1}"), "°C"]),
        _ => seen.text.lines().any(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            fields[0] == "T1:N0" && fields[2].parse() == Ok(degrees)
        }),
    }
}

fn traffic(_: &Galaxy, seen: &Seen<'_>) -> bool {
    // Its device works, so that something goes over the link.
    if seen.place == Place::Top {
        let rates = seen.lines_with(&["T1:N0", "received", "sent"]);
        return rates
            .map(|line| line.iter().filter(|word| is_rate(word)).count())
            .any(|it| it == 2);
    }
    let moves = |which| {
        let words = ["PCIe", which, "now,"];
        seen.lines_with(&words).any(|line| line.iter().any(|word| is_rate(word)))
    };
    seen.text.contains("Device T1:N0") && moves("received") && moves("sent")
}

/// Whether it is the unit of a rate, of more than some bytes.
fn is_rate(word: &str) -> bool {
    word.trim_end_matches(',').ends_with("iB/s")
}

fn link(_: &Galaxy, seen: &Seen<'_>) -> bool {
    seen.text
        .lines()
        .any(|line| line.contains("3.0 x4 of 4.0 x8") || line.contains("PCIe lanes 4 of 8"))
}

fn numa(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let node = file(galaxy, 21, "numa_node");
    seen.text.contains("Device T3:N5")
        && seen.lines_with(&["NUMA", "node"]).any(|row| row.last() == Some(&&*node))
}

/// The line of the table of `top` below its heading.
fn first_process<'a>(seen: &'a Seen<'_>) -> Option<&'a str> {
    let mut lines = seen.text.lines().skip_while(|line| !line.contains(" PID USER "));
    lines.nth(1)
}

fn command_line(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let workload = galaxy.workload("notebook");
    let whole = "notebook replay notebook.trace --device 0";
    match seen.place {
        Place::Top => first_process(seen).is_some_and(|line| {
            line.split_whitespace().next() == Some(&workload.pid()) && line.contains(whole)
        }),
        _ => {
            let first = seen.text.lines().skip_while(|line| !line.starts_with("Pid ")).nth(1);
            first.is_some_and(|line| {
                line.split_whitespace().next() == Some(&workload.pid()) && line.contains(whole)
            })
        }
    }
}

fn users(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    // As the tree has them: a user, how many processes, and sums.
    let place = |user: &str| {
        let mut lines = seen.text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.position(|line| line.len() > 3 && line[0] == "-" && line[1] == user)
    };
    let sum: u64 = galaxy.workloads.iter().filter(|one| one.user == "ada").map(mebibytes).sum();
    let sum = format!("{:.1}", sum as f64 / 1024.0);
    let (Some(ada), Some(root)) = (place("ada"), place("root")) else { return false };
    ada < root && seen.has(&["-", "ada", "(2)", &sum, "GiB"])
}

fn mebibytes(workload: &Workload) -> u64 {
    match workload.doing {
        Doing::Keeps { mebibytes, .. } => mebibytes,
        _ => 0,
    }
}

/// A line of `/proc/PID/status` in its first word.
fn status(workload: &Workload, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", workload.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn host_usage(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let workload = galaxy.workload("finetune");
    let resident = (status(workload, "VmRSS:") * 1024) as f64;
    let is_it = |words: &[&str]| {
        // Processor time as `3 %`, and behind it what is in RAM.
        let Some(place) = words.iter().rposition(|word| *word == "%") else { return false };
        let has_time = words[place - 1].parse::<f64>().is_ok();
        let Some([number, unit]) = words.get(place + 1..place + 3) else { return false };
        has_time && bytes(number, unit).is_some_and(|it| (it - resident).abs() < resident * 0.25)
    };
    seen.lines_with(&[&workload.pid(), &workload.device()]).any(|words| is_it(&words))
}

fn environment(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let workload = galaxy.workload("notebook");
    let all = fs::read(format!("/proc/{}/environ", workload.pid())).unwrap();
    let all = String::from_utf8(all).unwrap();
    // What fits into a line of the page, of the first that fit onto it.
    let mut variables = all.split('\0').filter(|one| !one.is_empty() && one.len() < 80).take(10);
    seen.text.contains(&format!("Process {} notebook", workload.pid()))
        && variables.all(|variable| seen.text.contains(variable))
}

fn kinds(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let workload = galaxy.workload("notebook");
    match seen.place {
        Place::Top => {
            let pane = seen.text.lines().skip_while(|line| !line.contains("1 Details"));
            let pane: Vec<Vec<&str>> =
                pane.map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
            let row = |kind: &str| pane.iter().find(|line| line.first() == Some(&kind));
            pane.get(1).is_some_and(|line| line.first() == Some(&&*workload.pid()))
                && row("dram").is_some_and(|line| line.starts_with(&["dram", "2.0", "GiB"]))
                && row("l1").is_some_and(|line| line.starts_with(&["l1", "16.0", "KiB"]))
        }
        _ => {
            seen.has(&[&format!("({})", workload.pid())])
                && seen.lines_with(&["T1:N0", "dram", "2.00", "GiB", "live,"]).count() == 1
                && seen.lines_with(&["T1:N0", "l1", "16.0", "KiB", "live,"]).count() == 1
        }
    }
}

fn failed(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let pid = galaxy.workload("finetune").pid();
    match seen.place {
        Place::Page => {
            seen.has(&[&format!("({pid})")]) && seen.has(&["T3:N5", "dram", "1", "failed"])
        }
        _ => {
            let heading = format!("Process {pid} finetune");
            let of_it = seen.text.lines().skip_while(|line| *line != heading);
            let mut rows = of_it.map(|line| line.split_whitespace().collect::<Vec<_>>());
            let row = rows.find(|row| row.starts_with(&["T3:N5", "dram"]));
            row.is_some_and(|row| row.last() == Some(&"1"))
        }
    }
}

fn idle(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let pid = galaxy.workload("notebook").pid();
    seen.text.lines().any(|line| line.contains("idle_memory") && has_number(line, &pid))
}

/// Whether a number stands in a line, not as a part of a longer one.
fn has_number(line: &str, number: &str) -> bool {
    line.split(|letter: char| !letter.is_ascii_digit()).any(|one| one == number)
}

fn leak(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let pid = galaxy.workload("leaky").pid();
    seen.text.lines().any(|line| line.contains("memory_leak") && has_number(line, &pid))
}

fn grew(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    // The pid of each process and how much its DRAM changed: behind the least, the mean and the most.
    let rows = seen.lines_with(&["memory", "live", "space", "dram"]).filter_map(|row| {
        let at = row.iter().position(|word| *word == "dram")?;
        Some((row[0], bytes(row.get(at + 7)?, row.get(at + 8)?)?))
    });
    let rows: Vec<(&str, f64)> = rows.collect();
    let change = |one: &Workload| Some(rows.iter().find(|(pid, _)| *pid == one.pid())?.1);
    let leaky = galaxy.workload("leaky");
    let could_take = (leaky.started.elapsed().as_secs_f64() + 1.0) * GROWS_BYTES_PER_SECOND;
    let keep = galaxy.workloads.iter().filter(|one| matches!(one.doing, Doing::Keeps { .. }));
    keep.map(change).all(|by| by == Some(0.0))
        && change(leaky).is_some_and(|by| by > 0.0 && by <= could_take)
        && rows.is_sorted_by(|one, other| one.1 >= other.1)
}

/// The bytes of `+1.5` and `MiB`.
fn bytes(number: &str, unit: &str) -> Option<f64> {
    let exponent = ["B", "KiB", "MiB", "GiB"].iter().position(|known| *known == unit)?;
    Some(number.parse::<f64>().ok()? * 1024f64.powi(i32::try_from(exponent).ok()?))
}

fn hosts(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    let mut all = galaxy.hosts.iter();
    all.all(|host| ["251732099", "251732099R"].iter().all(|id| seen.has(&[host, id])))
}

fn peak(_: &Galaxy, seen: &Seen<'_>) -> bool {
    let (_, device, most, _) = ENDED;
    seen.has(&[&device_id(device), "dram", &format!("{most}.0"), "MiB"])
}

fn hour_ago(galaxy: &Galaxy, seen: &Seen<'_>) -> bool {
    seen.has(&[&galaxy.ended_pid, &device_id(ENDED.1), ENDED.0])
}
