//! Four ranks of `programs.py`, and what the command says of them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, MutexGuard, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, compile_c, port_for_later};

use crate::cli::command::{Said, TIMEOUT, said, telltale};
use crate::cluster::training::{PYTHON, turn};

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hangs/programs.py");
pub(crate) const RANKS: u32 = 4;
/// What the others need to come to the operation that they wait in.
const SETTLING: Duration = Duration::from_millis(2500);

/// A stand-in of a device's library, whose work never ends.
static LIBRARY: LazyLock<(Scratch, PathBuf)> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let source = scratch.join("device.c");
    let code =
        "#include <unistd.h>\nint cudaStreamSynchronize(void *s) { (void)s; for (;;) pause(); }\n";
    std::fs::write(&source, code).unwrap();
    let library = compile_c(&source, &scratch.join("libdevice.so"), &["-shared", "-fPIC"]);
    (scratch, library)
});

/// Four ranks of which one hangs.
pub(crate) struct HungJob {
    ranks: Vec<ChildGuard>,
    _turn: MutexGuard<'static, ()>,
}

impl HungJob {
    /// Starts one, and waits until it hangs; nothing where there is no PyTorch.
    pub(crate) fn start(test: &str, kind: &str, culprit: u32) -> Option<Self> {
        let turn = turn(test)?;
        let port = port_for_later().to_string();
        let rank = |rank: u32| {
            let mut command = Command::new(PYTHON);
            command.args([SCRIPT, kind, &culprit.to_string()]);
            let set = [
                ("RANK", rank.to_string()),
                ("LOCAL_RANK", rank.to_string()),
                ("WORLD_SIZE", RANKS.to_string()),
                ("MASTER_ADDR", "127.0.0.1".to_owned()),
                ("MASTER_PORT", port.clone()),
                ("HF_TOKEN", "never to be seen".to_owned()),
            ];
            command.envs(set).env("OMP_NUM_THREADS", "1").env("HANG_LIBRARY", &LIBRARY.1);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            ChildGuard::spawn(&mut command)
        };
        let mut ranks: Vec<ChildGuard> = (0..RANKS).map(rank).collect();
        wait_for_hang(&mut ranks[culprit as usize]);
        Some(Self { ranks, _turn: turn })
    }

    /// The process ids, in the order of the ranks.
    pub(crate) fn pids(&self) -> impl Iterator<Item = String> {
        self.ranks.iter().map(|rank| rank.id().to_string())
    }

    /// What the command says of it.
    pub(crate) fn explained(&self) -> Explained {
        let began = Instant::now();
        let said = said(telltale().args(["autopsy", "--json", "--pause", "1"]).args(self.pids()));
        Explained::new(&said, began.elapsed())
    }
}

/// What the command said.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) status: Option<i32>,
    pub(crate) report: Value,
    pub(crate) took: Duration,
}

impl Explained {
    pub(crate) fn new(said: &Said, took: Duration) -> Self {
        let report = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{error}: {} {}", said.out, said.err));
        Self { status: said.status, report, took }
    }

    pub(crate) fn culprits(&self) -> Vec<u64> {
        let culprits = self.report["explanation"]["culprits"].as_array();
        culprits.into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    pub(crate) fn kind(&self) -> &str {
        self.report["explanation"]["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn sentence(&self) -> &str {
        self.report["explanation"]["sentence"].as_str().unwrap_or_default()
    }

    /// The rank whose stack is unlike all others', which is what one finds by folding stacks alone.
    pub(crate) fn odd_one_out(&self) -> Option<u64> {
        let folded = self.report["explanation"]["folded"].as_array()?;
        let mut alone = folded
            .iter()
            .filter(|one| one["processes"].as_array().is_some_and(|all| all.len() == 1));
        let odd = alone.next()?["processes"][0].as_u64();
        odd.filter(|_| alone.next().is_none())
    }

    /// The longest that a thread was stopped, in microseconds.
    pub(crate) fn longest_stop_us(&self) -> u64 {
        let processes = self.report["processes"].as_array().into_iter().flatten();
        let samples = processes.flat_map(|one| one["samples"].as_array().into_iter().flatten());
        samples.filter_map(|sample| sample["stopped_us"].as_u64()).max().unwrap_or(0)
    }

    /// Whether the sentence names a line of the script that is marked with this kind.
    pub(crate) fn names_line_of(&self, kind: &str) -> bool {
        let script = std::fs::read_to_string(SCRIPT).unwrap();
        let marked = script.lines().zip(1..).filter(|(line, _)| {
            let marks = line.split_once("# here:").map(|(_, marks)| marks.split_whitespace());
            marks.is_some_and(|mut marks| marks.any(|mark| mark == kind))
        });
        let name = Path::new(SCRIPT).file_name().unwrap().to_str().unwrap();
        let sentence = self.sentence();
        // The culprit's part follows that of those who wait.
        let last = sentence.rsplit_once("; ").map_or(sentence, |(_, last)| last);
        let names = |number: usize| {
            let line = format!("{name}:{number}");
            last.match_indices(&line).any(|(at, found)| {
                !last[at + found.len()..].starts_with(|next: char| next.is_ascii_digit())
            })
        };
        marked.map(|(_, number)| number).any(names)
    }
}

fn wait_for_hang(rank: &mut ChildGuard) {
    let output = rank.child().stdout.take().unwrap();
    let (sender, hangs) = mpsc::channel();
    // Read to its end: who writes to a closed pipe is ended by that.
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line == "hangs" {
                let _ = sender.send(());
            }
        }
    });
    hangs.recv_timeout(TIMEOUT).expect("the rank comes to where it hangs");
    thread::sleep(SETTLING);
}
