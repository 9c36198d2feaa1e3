//! The variables of a process that say how a job is set up.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;

use crate::bounds::bounded;

/// Variables that are kept, by the start of their names.
const ALLOWED: [&str; 23] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "OMP_NUM_THREADS",
    "NCCL_",
    "GLOO_",
    "FI_",
    "UCX_",
    "TORCH_NCCL_",
    "TORCH_FR_",
    "TORCH_DISTRIBUTED_DEBUG",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "NEURON_RT_",
    "TT_VISIBLE_DEVICES",
];
/// Parts of names that no allowed variable may have.
const SECRET: [&str; 6] = ["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "AUTH"];
/// Variables that hold a rank, as launchers set them; the first that is there counts.
const RANKS: [&str; 5] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];
/// Variables that are kept.
const MAX_VARIABLES: usize = 128;

pub(super) fn allowed(variables: &HashMap<OsString, OsString>) -> BTreeMap<String, String> {
    let texts =
        variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let kept = texts.filter(|(name, _)| {
        let is_allowed = ALLOWED.iter().any(|allowed| {
            if allowed.ends_with('_') { name.starts_with(allowed) } else { name == allowed }
        });
        is_allowed && !SECRET.iter().any(|part| name.to_uppercase().contains(part))
    });
    let kept: BTreeMap<_, _> = kept.map(|(name, value)| (bounded(name), bounded(value))).collect();
    kept.into_iter().take(MAX_VARIABLES).collect()
}

/// The rank that a process's launcher gave it.
pub(crate) fn rank(pid: u32) -> Option<u32> {
    let variables = variables(pid)?;
    RANKS.iter().find_map(|name| number(&variables, name))
}

/// The Slurm job that a process belongs to.
pub(crate) fn slurm_job(pid: u32) -> Option<u32> {
    number(&variables(pid)?, "SLURM_JOB_ID")
}

fn number(variables: &HashMap<OsString, OsString>, name: &str) -> Option<u32> {
    variables.get(&OsString::from(name))?.to_str()?.trim().parse().ok()
}

fn variables(pid: u32) -> Option<HashMap<OsString, OsString>> {
    procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.environ().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_left_out_and_so_is_a_secret_below_an_allowed_name() {
        let given = [
            ("RANK", "3"),
            ("RANKING", "x"),
            ("NCCL_DEBUG", "INFO"),
            ("NCCL_AUTH_TOKEN", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("HF_TOKEN", "x"),
            ("PATH", "/bin"),
        ];
        let variables = given.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let kept = allowed(&variables.into_iter().collect());
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["NCCL_DEBUG", "RANK"]);
    }
}
