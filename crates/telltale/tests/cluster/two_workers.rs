//! Nodes with two workers each: every worker has its place, and what becomes of one is the whole job's
//! concern.

use rustix::process::{Signal, test_kill_process};
use telltale_harness::wait_until;

use crate::cluster::job::{Job, TIMEOUT, signal};

/// Says where it is, and waits for the order to finish.
const WORKER: [&str; 3] = [
    "bash",
    "-c",
    "echo pid $$ epoch $TELLTALE_EPOCH rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of \
     $LOCAL_WORLD_SIZE, node $GROUP_RANK; until test -e $STATE/finish; do sleep 0.1; done",
];
/// Each rank with its node, and its number there.
const PLACES: [(&str, u32, u32); 4] = [("a", 0, 0), ("a", 1, 1), ("b", 2, 0), ("b", 3, 1)];

fn wait_everybody(job: &Job, epoch: u64) {
    for (node, rank, local) in PLACES {
        let slot = u32::from(node == "b");
        let place = format!("epoch {epoch} rank {rank} of 4, local {local} of 2, node {slot}\n");
        job.wait_printed(node, epoch, rank, &place);
    }
}

#[test]
fn when_one_of_two_workers_is_killed_all_of_both_nodes_start_again() {
    let mut job = Job::of_workers(2, 2, &WORKER);
    ["a", "b"].into_iter().for_each(|node| job.add(node, &[]));
    wait_everybody(&job, 1);
    let workers = PLACES.map(|(node, rank, _)| job.worker(node, 1, rank));
    signal(workers[3], Signal::KILL);
    wait_everybody(&job, 2);
    for (worker, (node, rank, _)) in workers.into_iter().zip(PLACES) {
        assert!(test_kill_process(worker).is_err(), "rank {rank} of epoch 1 is left on {node}");
    }
    // What workers print comes out of their agent with their rank in front.
    for (node, rank, _) in PLACES {
        let lines = [1, 2].map(|epoch| {
            let worker =
                if epoch == 1 { workers[rank as usize] } else { job.worker(node, 2, rank) };
            format!("[{rank}] pid {worker} epoch {epoch} rank {rank} of 4, ")
        });
        wait_until(&format!("{node} to pass on what rank {rank} prints"), TIMEOUT, || {
            let output = job.agent_output(node);
            lines.iter().all(|line| output.lines().any(|one| one.starts_with(line)))
        });
    }
    job.finish();
}
