//! docs/coming-from.md, performed: each command of its column "here" is run on a machine of the tool's kind, each
//! metric is scraped, and each value in Python is compared with what pynvml says of the same GPUs.

mod checks;
mod machines;
pub(crate) mod page;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use telltale_harness::exposition::{ParsedSample, parse};
use telltale_harness::{needs_pid_namespaces, python_module, python_with, wait_until};

use crate::cli::command::{Running, TIMEOUT, said};
use crate::cli::terminal::Terminal;
use crate::train::pairs as torchrun;
use checks::{CHECKS, Check, Expected};
use machines::Machine;
use page::{Pair, pairs};

const PYNVML: &str = "pynvml";
const TENSTORRENT: &str = "tt-smi";
/// Where the page has the service.
const USUAL_ADDRESS: &str = "127.0.0.1:9435";
/// The exit status of a command on a machine that is well, and of one whose source did not answer in time.
const WELL: Option<i32> = Some(0);
/// How often a view is asked to paint all of it.
const REPAINT: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
const PARTIAL: Option<i32> = Some(1);

/// The rows of commands and metrics that there are here.
fn rows() -> Vec<(Pair, String)> {
    // Those of torchrun run beside torchrun itself.
    let others = [PYNVML, torchrun::SECTION];
    let rows = pairs().into_iter().filter(|pair| !others.contains(&&*pair.section));
    let row = |pair: Pair| pair.ours.clone().map(|ours| (pair, ours));
    rows.filter_map(row).collect()
}

/// The check of a row: the longest beginning of what is written elsewhere.
fn check(pair: &Pair) -> &'static Check {
    let is_of = |check: &&Check| {
        check.0 == pair.section && pair.theirs.iter().any(|theirs| theirs.starts_with(check.1))
    };
    let found = CHECKS.iter().filter(is_of).max_by_key(|check| check.1.len());
    found.unwrap_or_else(|| panic!("no check of {:?}", pair.theirs))
}

#[test]
fn each_row_has_a_check_and_each_check_a_row() {
    let used: BTreeSet<&str> = rows().iter().map(|(pair, _)| check(pair).1).collect();
    let all: BTreeSet<&str> = CHECKS.iter().map(|check| check.1).collect();
    assert_eq!(used, all);
    let sections: BTreeSet<String> = pairs().into_iter().map(|pair| pair.section).collect();
    assert!(sections.len() >= 5, "{sections:?}");
}

#[test]
fn each_command_shows_what_is_looked_for() {
    if !needs_pid_namespaces("telltale::cli::coming_from::each_command_shows_what_is_looked_for") {
        return;
    }
    let (mut gpus, galaxy) = (Machine::of_gpus(), Machine::galaxy());
    gpus.serve();
    for (pair, ours) in rows() {
        let (_, _, Expected::Shows(words)) = check(&pair) else { continue };
        let machine = if pair.section == TENSTORRENT { &galaxy } else { &gpus };
        let pid = machine.workload.as_ref().map_or_else(String::new, |it| it.id().to_string());
        let words: Vec<String> = words.iter().map(|word| word.replace("PID", &pid)).collect();
        let is_seen = |text: &str| words.iter().all(|word| text.contains(word));
        show(machine, &ours, &is_seen).unwrap_or_else(|text| {
            panic!("{:?}: `{ours}` does not show {words:?}: {text}", pair.theirs)
        });
    }
}

/// Runs a line until it shows what is looked for; what it shows where it does not.
fn show(machine: &Machine, line: &str, is_seen: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let found = |text: String| if is_seen(&text) { Ok(()) } else { Err(text) };
    if line.contains("telltale top") {
        return on_a_terminal(machine, line, is_seen);
    }
    if let Some(address) = line.strip_prefix("curl http://") {
        let (_, path) = address.split_once('/').expect("a path");
        assert!(address.starts_with(USUAL_ADDRESS), "{line}");
        return found(get(machine, &format!("/{path}")));
    }
    if line == "telltale serve" {
        let mut serve = machines_own_service(machine, line);
        let said = serve.says("http listens on ");
        serve.end();
        return found(said);
    }
    if line.contains(" -l ") {
        return repeatedly(machine, line, is_seen);
    }
    // On a busy machine a source may not answer in time once, which the exit status says.
    let mut last = None;
    wait_until(&format!("`{line}` to have all"), TIMEOUT, || {
        let said = said(&mut machine.command(line));
        let is_well = (said.status, said.err.as_str()) == (WELL, "");
        assert!(is_well || said.status == PARTIAL, "{line}: {said:?}");
        last = Some(said.out);
        is_well
    });
    found(last.unwrap_or_default())
}

/// Another service, in a runtime directory of its own.
fn machines_own_service(machine: &Machine, line: &str) -> crate::cli::serve::Serving {
    let other = machine.place.join("other");
    std::fs::create_dir_all(&other).unwrap();
    let line = format!("XDG_RUNTIME_DIR={0} TELLTALE_STATE_DIR={0}/state {line}", other.display());
    crate::cli::serve::Serving::start(&mut machine.command(&line))
}

fn on_a_terminal(
    machine: &Machine,
    line: &str,
    is_seen: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let test = "telltale::cli::coming_from::each_command_shows_what_is_looked_for";
    let locale = if line.starts_with("LC_ALL=") { "LANG=C" } else { "LC_ALL=C.UTF-8" };
    let line = format!("env {locale} {}", machine.line(line));
    let Some(mut terminal) = Terminal::start(test, (120, 40), &line, &machine.place) else {
        return Ok(());
    };
    let began = Instant::now();
    let mut asked = began;
    while !is_seen(&terminal.text()) {
        if began.elapsed() > TIMEOUT {
            return Err(terminal.text());
        }
        // Cells that were right before are not sent again. A view that is asked too often paints nothing.
        if asked.elapsed() > REPAINT {
            terminal.type_in(b"\x0c");
            asked = Instant::now();
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    terminal.type_in(b"q");
    let (status, text) = terminal.end();
    if status == WELL { Ok(()) } else { Err(format!("{status:?}: {text}")) }
}

/// A line that goes on until Ctrl-C, whose exit status is then that of success.
fn repeatedly(machine: &Machine, line: &str, is_seen: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let mut running = Running::start(&mut machine.command(line));
    let mut shown = String::new();
    // Two rounds.
    for _ in 0..2 {
        let mut round = String::new();
        while !is_seen(&round) {
            round.push_str(&running.line());
            round.push('\n');
            if round.len() > 1 << 16 {
                return Err(round);
            }
        }
        shown.push_str(&round);
    }
    running.child.interrupt();
    if running.status() == WELL { Ok(()) } else { Err(shown) }
}

/// What the machine's service answers.
fn get(machine: &Machine, path: &str) -> String {
    let (_, address) = machine.service.as_ref().expect("a service runs");
    let mut stream = TcpStream::connect(address.as_str()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

/// A metric as the page writes it: its name, a label, and what its value is multiplied by.
struct Scaled<'a> {
    name: &'a str,
    label: Option<(&'a str, &'a str)>,
    factor: f64,
}

impl<'a> Scaled<'a> {
    fn parse(text: &'a str) -> Self {
        let mut words = text.split(' ');
        let metric = words.next().unwrap();
        let factor = match (words.next(), words.next().map(str::parse::<f64>)) {
            (None, None) => 1.0,
            (Some("*"), Some(Ok(number))) => number,
            (Some("/"), Some(Ok(number))) => 1.0 / number,
            _ => panic!("{text} is no metric with a factor"),
        };
        let (name, label) = match metric.split_once('{') {
            None => (metric, None),
            Some((name, label)) => {
                let (key, value) = label.trim_end_matches('}').split_once('=').expect("a label");
                (name, Some((key, value.trim_matches('"'))))
            }
        };
        Self { name, label, factor }
    }

    /// The value of the first GPU.
    fn value(&self, samples: &[ParsedSample]) -> Option<f64> {
        let has = |sample: &&ParsedSample, key: &str, value: &str| {
            sample.labels.get(key).is_some_and(|found| found == value)
        };
        let mut own = samples.iter().filter(|sample| sample.name == self.name);
        let found = own.find(|sample| {
            let label = self.label.is_none_or(|(key, value)| has(sample, key, value));
            label && has(sample, "device", "0000:41:00.0")
        });
        found.map(|sample| sample.value * self.factor)
    }
}

#[test]
fn each_metric_has_the_value_that_its_counterpart_would_have() {
    let test =
        "telltale::cli::coming_from::each_metric_has_the_value_that_its_counterpart_would_have";
    if !needs_pid_namespaces(test) {
        return;
    }
    let mut gpus = Machine::of_gpus();
    gpus.serve();
    let scrape = || -> Vec<ParsedSample> {
        let families = parse(&get(&gpus, "/metrics"), false).unwrap();
        families.into_iter().flat_map(|family| family.samples).collect()
    };
    let value = |name: &str| Scaled::parse(name).value(&scrape());
    // Errors are counted from the second collection on.
    let counted = "telltale_device_xid_errors_total";
    wait_until("errors to be counted", TIMEOUT, || value(counted) == Some(0.0));
    gpus.fail_once();
    wait_until("an error", TIMEOUT, || value(counted) == Some(1.0));
    let samples = scrape();
    for (pair, ours) in rows() {
        let (_, _, Expected::Value(expected)) = check(&pair) else { continue };
        let value = Scaled::parse(&ours).value(&samples);
        let is_it = value.is_some_and(|value| (value - expected).abs() < 1e-6 * expected.max(1.0));
        assert!(is_it, "{:?}: `{ours}` is {value:?}, not {expected}", pair.theirs);
    }
}

/// A program that prints whether each pair is equal, and how it is not.
fn comparison(pairs: &[(String, String)]) -> String {
    let text = page::text();
    let (_, block) = text.split_once("```python\n").expect("a block");
    let (block, _) = block.split_once("```").unwrap();
    let mut program = format!("{block}\nfrom pynvml import *\nnvmlInit()\n");
    program.push_str("handle = nvmlDeviceGetHandleByIndex(0)\n");
    for (theirs, ours) in pairs {
        program.push_str(&format!("print({ours} == {theirs}, {ours}, {theirs})\n"));
    }
    program
}

#[test]
fn each_value_in_python_is_the_one_that_pynvml_reads() {
    let test = "telltale::cli::coming_from::each_value_in_python_is_the_one_that_pynvml_reads";
    let Some(python) = python_with(test, "pynvml") else { return };
    if !needs_pid_namespaces(test) {
        return;
    }
    let pairs = pairs().into_iter().filter(|pair| pair.section == PYNVML);
    let pairs: Vec<(String, String)> =
        pairs.filter_map(|pair| Some((pair.theirs[0].clone(), pair.ours?))).collect();
    assert!(pairs.len() > 10, "{pairs:?}");
    let gpus = Machine::of_gpus();
    std::fs::write(gpus.place.join("compare.py"), comparison(&pairs)).unwrap();
    let module = python_module();
    let line =
        format!("PYTHONPATH={} {} compare.py", module.display(), python.get_program().display());
    let said = said(&mut gpus.command(&line));
    assert_eq!((said.status, said.err.as_str()), (WELL, ""), "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), pairs.len(), "{said:?}");
    for (line, (theirs, ours)) in lines.iter().zip(&pairs) {
        assert!(line.starts_with("True "), "{theirs} and {ours}: {line}");
    }
}

#[test]
fn the_options_of_nvitop_and_torchrun_are_theirs() {
    let test = "telltale::cli::coming_from::the_options_of_nvitop_and_torchrun_are_theirs";
    for (tool, modules, arguments) in [
        ("nvitop", "nvitop", ["-m", "nvitop", "--help"]),
        ("torchrun", "torch", ["-m", "torch.distributed.run", "--help"]),
    ] {
        let is_of_tool = |line: &String| line.split(' ').next() == Some(tool);
        let lines = pairs().into_iter().flat_map(|pair| pair.theirs).filter(is_of_tool);
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            continue;
        }
        let Some(mut python) = python_with(test, modules) else { return };
        let help = help(python.args(arguments));
        for line in &lines {
            // What follows a script is the script's.
            let own = line.split(' ').take_while(|word| !word.ends_with(".py"));
            for option in own.filter(|word| word.starts_with('-')) {
                let option = option.split('=').next().unwrap();
                let is_there = help.split([' ', ',', '[', ']', '\n']).any(|word| word == option);
                assert!(is_there, "{tool} has no {option}, which `{line}` has: {help}");
            }
        }
    }
}

fn help(command: &mut Command) -> String {
    let said = said(command);
    assert_eq!(said.status, WELL, "{said:?}");
    said.out
}
