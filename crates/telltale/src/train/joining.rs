//! Whether a node that joins others was started for the same job: every node is given the same numbers and names.

use std::time::Duration;

use telltale_control_plane::operator::Operator;
use telltale_wire::cluster::message::GetStatusResponse;

use super::TrainPlan;
use crate::exit::Failure;

/// How long a coordinator that does not answer is left alone.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Waits for the coordinator, and refuses a job that is another. What keeps it from answering is said by what follows
/// the job.
pub(super) async fn check(plan: &TrainPlan, operator: &Operator) -> Result<(), Failure> {
    loop {
        if let Ok(job) = operator.ask(async |client| client.status().await).await {
            let unlike = unlike(plan, &job);
            return if unlike.is_empty() { Ok(()) } else { Err(refused(&unlike)) };
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

fn refused(unlike: &[String]) -> Failure {
    Failure::Message(format!(
        "this node was not started for the job at its --rdzv-endpoint: {}; give all nodes of a job the same, and \
         each job an endpoint of its own",
        unlike.join(", ")
    ))
}

/// What is not the same here as on the node that runs the coordinator.
fn unlike(plan: &TrainPlan, job: &GetStatusResponse) -> Vec<String> {
    let mut unlike = Vec::new();
    let mut compare = |option: &str, here: String, there: String| {
        if here != there {
            unlike.push(format!("{option} is {here} here and {there} there"));
        }
    };
    compare("--rdzv-id", plan.job.clone(), job.job.clone());
    let workers = plan.workers.get();
    compare("--nproc-per-node", workers.to_string(), job.workers_per_node.to_string());
    // A job that may have fewer nodes has as many slots as are left.
    if !plan.nodes.is_elastic() {
        compare("--nnodes", plan.nodes.most.to_string(), job.slots.to_string());
    }
    unlike
}
