//! The same script under torchrun and under `telltale train`: what it finds differs only where that is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use telltale_harness::ChildGuard;

use crate::cluster::training::{PYTHON, turn};
use crate::train::fixture::{Place, TIMEOUT};

/// Writes down what a worker finds.
const SCRIPT: &str = "\
import json, os, sys
found = dict(os.environ, argv=' '.join(sys.argv[1:]), unbuffered=str(sys.stdout.write_through), cwd=os.getcwd())
with open(sys.argv[1] + os.environ['RANK'], 'w') as file:
    json.dump(found, file)
";
/// What has another value, and why that may be.
const OTHER_VALUES: [&str; 8] = [
    "argv",
    // Torchrun's agent holds the store; here rank 0 does, at a port of its own for each epoch.
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_ERROR_FILE",
    // The module that reports collectives.
    "PYTHONPATH",
    "_",
];
/// What only one of them sets, beside `TELLTALE_`.
const ONLY_HERE: [&str; 2] = ["PYTHONPATH", "TORCH_NCCL_ASYNC_ERROR_HANDLING"];

fn found(place: &Place, by: &str) -> [BTreeMap<String, String>; 2] {
    ["0", "1"].map(|rank| {
        let text = place.read(&format!("{by}-{rank}"));
        serde_json::from_str(&text).expect("each rank writes what it finds")
    })
}

#[test]
fn a_script_finds_what_it_finds_under_torchrun() {
    let Some(_turn) = turn("train::torchrun::a_script_finds_what_it_finds") else { return };
    let place = Place::new();
    std::fs::write(place.path("script.py"), SCRIPT).expect("a script");
    let options = ["--standalone", "--nproc_per_node=2", "--max_restarts=3", "--role=trainer"];
    let mut torchrun = place.command(PYTHON);
    torchrun.args(["-m", "torch.distributed.run"]).args(options);
    // Debian's does not start with this Python without the output path.
    torchrun.args(["--redirects=9:1", "--tee=9:1", "script.py", "torchrun-", "--lr", "1"]);
    let mut torchrun = ChildGuard::spawn(torchrun.stdout(Stdio::null()).stderr(Stdio::null()));
    assert!(torchrun.wait_within("torchrun to end", TIMEOUT).success());
    let arguments = [&options[..], &["--", "script.py", "train-", "--lr", "1"]].concat();
    let ended = place.start_with(&arguments, &[("PYTHON_EXEC", PYTHON)]).wait();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    for (theirs, ours) in found(&place, "torchrun").iter().zip(&found(&place, "train")) {
        let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<BTreeSet<_>>();
        let missing: Vec<String> = names(theirs).difference(&names(ours)).cloned().collect();
        assert_eq!(missing, Vec::<String>::new());
        let is_meant = |name: &&String| {
            name.starts_with("TELLTALE_") || ["PYTHON_EXEC"].contains(&name.as_str())
        };
        let more: Vec<String> = names(ours)
            .difference(&names(theirs))
            .filter(|name| !is_meant(name))
            .cloned()
            .collect();
        assert_eq!(more, ONLY_HERE);
        let others = theirs.iter().filter(|(name, value)| ours.get(*name) != Some(value));
        let others: Vec<_> = others
            .filter(|(name, _)| !OTHER_VALUES.contains(&name.as_str()))
            .map(|(name, value)| (name, value, &ours[name]))
            .collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
