//! The graphs of the full-screen view begin with what the service recorded before it was opened.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{ChildGuard, Scratch, wait_until};
use telltale_runtime::MemoryKind;

use crate::cli::chosen::holding;
use crate::cli::command::{TIMEOUT, said, telltale};
use crate::cli::terminal::Terminal;

const GIB: u64 = 1 << 30;
/// The DRAM of the emulated device.
const CAPACITY: f64 = 12.0 * GIB as f64;
/// How full a cell of a graph is without a Unicode locale, in eighths.
const LEVELS: [char; 9] = [' ', '.', '.', ':', ':', '=', '=', '#', '#'];

/// Runs of equal characters.
fn runs(graph: &str) -> Vec<(char, usize)> {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for cell in graph.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == cell => *count += 1,
            _ => runs.push((cell, 1)),
        }
    }
    runs
}

/// What the history has of the device's DRAM, a cell a second.
fn recorded(state: &Path) -> String {
    let mut history = telltale();
    history.args(["history", "--metric", "device_memory_space_used_bytes", "--since", "1m"]);
    let said = said(history.args(["--step", "1", "--json", "--state-dir"]).arg(state));
    let answer: Value = serde_json::from_str(&said.out).unwrap_or_default();
    let dram = |one: &&Value| one["label"] == serde_json::json!(["space", "dram"]);
    let series = answer["series"].as_array().and_then(|all| all.iter().find(dram));
    let means = series.and_then(|one| one["mean"].as_array()).cloned().unwrap_or_default();
    let cell = |mean: f64| LEVELS[(mean / CAPACITY * 8.0).round() as usize];
    means.iter().filter_map(Value::as_f64).map(cell).collect()
}

/// The cells of graphs in what a terminal was sent; those of bars have no colons.
fn painted(text: &str) -> impl Iterator<Item = &str> {
    text.split(|cell: char| !LEVELS[1..].contains(&cell)).filter(|run| run.contains(".:"))
}

#[test]
fn graphs_begin_with_what_the_service_recorded() {
    let place = Scratch::new();
    let (root, state) = (place.join("m"), place.join("state"));
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    let devices = holding(&root, &[(0, 3 * GIB)]);
    let mut serve = telltale();
    serve.args(["serve", "--http", "off", "--interval", "0.1", "--root"]).arg(&root);
    serve.arg("--state-dir").arg(&state).env("TELLTALE_HISTORY_WRITE_SECONDS", "1");
    let _service = ChildGuard::spawn(serve.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut level = ['.', ':', '='].into_iter();
    for address in 1..=3 {
        let level = level.next().unwrap();
        wait_until("the history to have that much", TIMEOUT, || {
            runs(&recorded(&state)).last().is_some_and(|(last, count)| *last == level && *count > 2)
        });
        if address < 3 {
            devices[0].allocate(MemoryKind::Dram, address * 4 * GIB, 3 * GIB);
        }
    }
    let program = env!("CARGO_BIN_EXE_telltale");
    let line = format!(
        "sh -c 'env LC_ALL=C XDG_CONFIG_HOME={0}/c {program} top -w 1 --theme monochrome --root \
         {0}/m; echo ended with $?'",
        place.path().display()
    );
    let test = "graphs_begin_with_what_the_service_recorded";
    let Some(mut terminal) = Terminal::start(test, (160, 40), &line, &place) else { return };
    let is_whole = |run: &&str| runs(run).iter().map(|(level, _)| *level).eq(['.', ':', '=']);
    wait_until("the filled graph", TIMEOUT, || painted(&terminal.text()).any(|it| is_whole(&it)));
    let text = terminal.text();
    let graph = painted(&text).find(is_whole).unwrap();
    let (graph, recorded) = (runs(graph), runs(&recorded(&state)));
    // The spans of two answers may be half of one apart, and memory goes on as it is.
    for ((level, count), (expected, seconds)) in graph.iter().zip(&recorded).take(2) {
        assert!(level == expected && count.abs_diff(*seconds) <= 1, "{graph:?}: {recorded:?}");
    }
    terminal.type_in(b"q");
    wait_until("its end", TIMEOUT, || terminal.text().contains("ended with 0"));
}
