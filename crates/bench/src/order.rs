//! Which of its functions a service and a full-screen view execute, as callgrind sees it: those that
//! are to lie side by side in the program, so that few pages of it are resident.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::{BusyMachine, Size};
use crate::screen::Shown;
use crate::serve::Asker;
use crate::served::ours;

/// Workloads that are looked at. More take callgrind longer and have nothing else executed.
const WORKLOADS: u64 = 8;
/// How often the service is scraped and asked, and how long it collects in between.
const ROUNDS: (usize, Duration) = (4, Duration::from_secs(15));
/// What is typed into the view in each of these rounds: to the next tab, two rows down, one up.
const KEYS: &[u8] = b"\t\x1b[B\x1b[B\x1b[A";
/// What ends the view.
const QUIT: &[u8] = b"q";
/// How long a program under callgrind may take to end and to write what it saw.
const PATIENCE: Duration = Duration::from_secs(120);

/// A function's name, as the linker knows it, and the instructions that it executed itself.
type Executed = Vec<(String, u64)>;

/// Has a service and a view beside it run under callgrind over an emulated machine, and gives the
/// names of the functions of `telltale` that they executed, in the order in which they are to lie.
///
/// # Errors
/// When valgrind is not installed, or the machine, the service or the view cannot be started.
pub fn record(worker: &Path, telltale: &Path) -> io::Result<Vec<String>> {
    let busy = BusyMachine::start(worker, Size::Eight, WORKLOADS)?;
    let telltale = telltale.canonicalize()?;
    let (of_service, of_view) = (
        Callgrind::of(&telltale, busy.root(), "service")?,
        Callgrind::of(&telltale, busy.root(), "view")?,
    );
    let mut service = ours(&of_service.script, &busy, &[])?;
    let mut asker = Asker::connect(busy.root())?;
    let mut command = Command::new(&of_view.script);
    command.arg("top").arg("--root").arg(busy.root()).env("XDG_CONFIG_HOME", busy.root());
    let mut view = Shown::start(&mut command, None)?;
    let mut body = Vec::new();
    for _ in 0..ROUNDS.0 {
        thread::sleep(ROUNDS.1);
        service.scrape(&mut body)?;
        asker.ask(true)?;
        asker.ask(false)?;
        view.press(KEYS)?;
    }
    view.press(QUIT)?;
    let pid = i32::try_from(service.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a child has a pid"), Signal::TERM)?;
    Ok(laid(&of_service.executed()?, &of_view.executed()?))
}

/// A program that is run by way of callgrind.
struct Callgrind {
    /// What is started in the program's place.
    script: PathBuf,
    /// Where callgrind writes what it saw, at the program's end.
    seen: PathBuf,
    telltale: PathBuf,
}

impl Callgrind {
    fn of(telltale: &Path, directory: &Path, name: &str) -> io::Result<Self> {
        let seen = directory.join(format!("callgrind-{name}.out"));
        let script = directory.join(format!("{name}-under-callgrind"));
        let text = format!(
            "#!/bin/sh\nexec valgrind --tool=callgrind --demangle=no --callgrind-out-file='{}' \
             '{}' \"$@\"\n",
            seen.display(),
            telltale.display()
        );
        fs::write(&script, text)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(Self { script, seen, telltale: telltale.to_owned() })
    }

    /// What was executed of the program, once it has ended.
    fn executed(&self) -> io::Result<Executed> {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(&self.seen).unwrap_or_default();
            // The last line of a file that is whole.
            if text.lines().next_back().is_some_and(|line| line.starts_with("totals:")) {
                return Ok(executed(&text, &self.telltale.display().to_string()));
            }
            if began.elapsed() > PATIENCE {
                let seen = self.seen.display();
                return Err(io::Error::other(format!("callgrind wrote nothing to {seen}")));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// The order of what each executed: first what is the view's alone, the busiest last, then what both
/// have, then what is the service's alone, the busiest first. So all of each is in one piece.
fn laid(service: &Executed, view: &Executed) -> Vec<String> {
    let names = |executed: &Executed| -> HashSet<String> {
        executed.iter().map(|(name, _)| name.clone()).collect()
    };
    let (of_service, of_view) = (names(service), names(view));
    let alone = view.iter().rev().filter(|(name, _)| !of_service.contains(name));
    let (both, rest): (Vec<_>, Vec<_>) =
        service.iter().partition(|(name, _)| of_view.contains(name));
    alone.chain(both).chain(rest).map(|(name, _)| name.clone()).collect()
}

/// The functions of `object` with instructions of their own, those with the most first.
/// The format is callgrind's, version 1: names are told once and are numbers from then on.
fn executed(text: &str, object: &str) -> Executed {
    let (mut functions, mut objects) = (HashMap::new(), HashMap::new());
    let mut instructions: HashMap<String, u64> = HashMap::new();
    let (mut function, mut is_ours, mut is_call) = (String::new(), false, false);
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "fn" => function = named(&mut functions, value),
                "cfn" => drop(named(&mut functions, value)),
                "ob" => is_ours = named(&mut objects, value) == object,
                "cob" => drop(named(&mut objects, value)),
                _ => {}
            }
            // The line behind it has what the call cost, not the function itself.
            is_call = key == "calls";
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if let Some(cost) = cost.filter(|_| is_ours && !is_call) {
                *instructions.entry(function.clone()).or_default() += cost;
            }
            is_call = false;
        }
    }
    let mut found: Vec<(String, u64)> = instructions.into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

/// The name in `(NUMBER) NAME`, or the one that had this number before. Recursion adds a cycle's
/// number to a name, behind an apostrophe.
fn named(names: &mut HashMap<String, String>, value: &str) -> String {
    let (number, name) = value.split_once(' ').unwrap_or((value, ""));
    if !name.is_empty() {
        let name = name.split('\'').next().unwrap_or(name);
        names.insert(number.to_owned(), name.to_owned());
    }
    names.get(number).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{executed, laid};

    #[test]
    fn functions_of_the_program_are_found_with_what_they_cost_themselves() {
        let text = "\
            version: 1\npositions: line\nevents: Ir\n\n\
            ob=(1) /bin/telltale\nfl=(1) a.rs\nfn=(1) few\n10 5\n+2 1\n\
            cob=(2) /lib/libc.so.6\ncfn=(2) malloc\ncalls=1 0\n11 900\n\n\
            fn=(3) many'2\n20 60\n* 1\n\n\
            ob=(2)\nfn=(2)\n0 900\n\n\
            ob=(1)\nfn=(3)\n21 7\ntotals: 974\n";
        assert_eq!(executed(text, "/bin/telltale"), named(&[("many", 68), ("few", 6)]));
    }

    #[test]
    fn what_each_executes_is_in_one_piece() {
        let service =
            named(&[("both, most", 9), ("service, more", 5), ("both", 2), ("service", 1)]);
        let view = named(&[("both", 7), ("view, more", 6), ("both, most", 5), ("view", 1)]);
        let order = ["view", "view, more", "both, most", "both", "service, more", "service"];
        assert_eq!(laid(&service, &view), order);
    }

    fn named(executed: &[(&str, u64)]) -> super::Executed {
        executed.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect()
    }
}
