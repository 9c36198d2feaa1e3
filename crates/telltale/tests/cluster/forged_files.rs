//! Another user of the machine writes into an agent's directory of the Flight Recorder's dumps what would
//! end the job if a worker's tool had written it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use telltale_harness::{needs_root, wait_until};

use crate::cluster::job::{Job, TIMEOUT, metrics};

const STRANGER: u32 = 61_055;
/// Waits for the order to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH; until test -e $STATE/finish; do sleep 0.1; done",
];
/// Reductions that both ranks have finished.
const FINISHED: u64 = 29;
/// For so long the attacked job must go on beside the one that the same dumps end.
const CALM: Duration = Duration::from_secs(30);

/// A rank's dump: reductions that it has finished, and for rank 0 one that it alone has begun.
fn dump(rank: u64) -> String {
    let one = |number: u64, state: &str, ended: &str| {
        format!(
            r#"{{"record_id":{number},"process_group":["0","default_pg"],"collective_seq_id":{number},"profiling_name":"gloo:all_reduce","time_created_ns":1000000,"input_sizes":[[16]],"input_dtypes":["Float"],"state":"{state}","time_discovered_completed_ns":{ended},"retired":false}}"#
        )
    };
    let finished = (1..=FINISHED).map(|number| one(number, "completed", "2000000"));
    let begun = (rank == 0).then(|| one(FINISHED + 1, "scheduled", "null"));
    let entries: Vec<String> = finished.chain(begun).collect();
    format!(
        r#"{{"pg_config":{{"0":{{"name":"0","desc":"default_pg","ranks":"[0, 1]"}}}},"entries":[{}]}}"#,
        entries.join(",")
    )
}

/// Writes the dumps of both ranks as a user.
fn write(user: u32, directory: &Path) {
    for rank in [0, 1] {
        let hidden = directory.join(format!(".{rank}"));
        fs::write(&hidden, dump(rank)).expect("the directory is there");
        chown(&hidden, Some(user), Some(user)).expect("root may");
        let shown = directory.join(format!("nccl_trace_rank_{rank}"));
        fs::rename(hidden, shown).expect("it is the same directory");
    }
}

/// A job of two ranks on one node, whose agent follows a directory that all may write.
fn job() -> (Job, PathBuf) {
    let mut job = Job::of_workers(1, 2, &WORKER);
    let dumps = job.path("dumps");
    fs::create_dir(&dumps).expect("it is not there yet");
    fs::set_permissions(&dumps, Permissions::from_mode(0o1777)).expect("it is our own");
    let dumps_path = dumps.to_str().expect("it is text").to_owned();
    job.add("a", &["--flight-recorder", &dumps_path]);
    job.wait_printed("a", 1, 0, "epoch 1");
    job.wait_printed("a", 1, 1, "epoch 1");
    (job, dumps)
}

#[test]
fn what_another_user_writes_beside_the_workers_dumps_is_shown_and_decides_nothing() {
    if !needs_root("telltale::cluster::what_another_user_writes_beside_the_workers_dumps") {
        return;
    }
    let (attacked, dumps) = job();
    let (control, own_dumps) = job();
    write(STRANGER, &dumps);
    write(0, &own_dumps);
    // The agent's own user says the same of the other job, which is restarted for it.
    control.wait_printed("a", 2, 0, "epoch 2");
    let began = Instant::now();
    wait_until("the attacked job to go on", TIMEOUT, || {
        assert_eq!(attacked.json(&["status"])["epoch"], 1, "{}", attacked.coordinator_log());
        began.elapsed() > CALM
    });
    assert_eq!(attacked.json(&["incidents"]).as_array().map(Vec::len), Some(0));
    let shown = metrics(&attacked.path("a").join("agent.sock"));
    let count = |outcome: &str, number: u64| {
        let line = format!("telltale_agent_records_total{{outcome=\"{outcome}\"}} {number}\n");
        assert!(shown.contains(&line), "{line} in {shown}");
    };
    // Of each rank also its group.
    count("unverified", 2 * (FINISHED + 1) + 1);
    count("taken", 0);
    let log = attacked.agent_log("a");
    let line = format!("files of user {STRANGER} are shown as unverified");
    assert!(log.contains(&line), "{log}");
    attacked.finish();
    control.finish();
}
