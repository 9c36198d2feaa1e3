//! Torchrun's rows of docs/coming-from.md: both commands of each, run beside each other in the same directory.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use telltale_harness::ChildGuard;

use crate::cli::coming_from::page::pairs;
use crate::cluster::training::{PYTHON, turn};
use crate::train::fixture::{Place, TIMEOUT};

/// The heading of the rows.
pub(crate) const SECTION: &str = "torchrun";

/// What each of the rows runs: which rank it is, of how many, and its arguments.
const SCRIPT: &str = "\
import os, sys
names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'TORCHELASTIC_MAX_RESTARTS')
with open('found-' + os.environ['RANK'], 'w') as file:
    print(*(os.environ[name] for name in names), *sys.argv[1:], file=file)
";
/// The same of a program.
const PROGRAM: &str = "#!/bin/sh
echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $TORCHELASTIC_MAX_RESTARTS \"$@\" >found-$RANK
";
/// Debian's torchrun does not start with this Python without the paths of its output.
const TORCHRUN: &str = "#!/bin/sh
exec python3 -m torch.distributed.run --redirects=9:1 --tee=9:1 \"$@\"
";
/// How often torchrun is tried.
const ATTEMPTS: usize = 3;
/// Of the node that has the endpoint, and of the other one.
const NODE_RANKS: [&str; 2] = ["--node_rank=0", "--node_rank=1"];

/// A directory with what the rows name.
fn prepared() -> Place {
    let place = Place::new();
    let write = |name: &str, text: &str| {
        fs::write(place.path(name), text).expect("a file");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.path(name), mode).expect("it was written");
    };
    for directory in ["bin", "package"] {
        fs::create_dir(place.path(directory)).expect("a directory");
    }
    write("train.py", SCRIPT);
    write("package/__init__.py", "");
    write("package/train.py", SCRIPT);
    write("program", PROGRAM);
    write("bin/torchrun", TORCHRUN);
    let ours = Path::new(env!("CARGO_BIN_EXE_telltale"));
    std::os::unix::fs::symlink(ours, place.path("bin/telltale")).expect("a link");
    place
}

/// Runs a line, on two nodes where it says so; what each rank found, if it ended well.
fn run(line: &str) -> Result<Vec<String>, String> {
    let place = prepared();
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has free ports");
    let port = listener.local_addr().expect("an address").port().to_string();
    drop(listener);
    let line = line.replace("=head", "=127.0.0.1").replace("29400", &port);
    let nodes = if line.contains(NODE_RANKS[0]) { 2 } else { 1 };
    let started: Vec<ChildGuard> = NODE_RANKS[..nodes]
        .iter()
        .map(|rank| {
            let mut shell: Command = place.command("sh");
            shell.args(["-c", &line.replace(NODE_RANKS[0], rank)]).env("PYTHON_EXEC", PYTHON);
            let path = std::env::var("PATH").unwrap_or_default();
            shell.env("PATH", format!("{}:/usr/bin:{path}", place.path("bin").display()));
            ChildGuard::spawn(shell.stdin(Stdio::null()).stdout(Stdio::null()))
        })
        .collect();
    for mut one in started {
        let status = one.wait_within(&format!("the end of `{line}`"), TIMEOUT);
        if !status.success() {
            return Err(format!("{line}: {status}"));
        }
    }
    let ranks = (0..).map(|rank| place.read(&format!("found-{rank}")));
    Ok(ranks.take_while(|found| !found.is_empty()).collect())
}

/// The same for torchrun, whose own timeouts may be too short for a machine that is busy with other tests.
fn run_theirs(line: &str) -> Vec<String> {
    let mut outcomes = (0..ATTEMPTS).map(|_| run(line));
    outcomes.find_map(Result::ok).unwrap_or_else(|| panic!("{line} fails {ATTEMPTS} times"))
}

#[test]
fn each_command_does_what_torchrun_does() {
    let Some(_turn) = turn("train::pairs::each_command_does_what_torchrun_does") else { return };
    let rows: Vec<_> = pairs().into_iter().filter(|pair| pair.section == SECTION).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let [theirs] = &row.theirs[..] else { panic!("one of theirs: {row:?}") };
        let Some(ours) = &row.ours else { continue };
        let (expected, found) = (run_theirs(theirs), run(ours).unwrap());
        assert!(expected.len() > 1, "{theirs} has several ranks");
        assert_eq!(found, expected, "{theirs}\n{ours}");
    }
}
