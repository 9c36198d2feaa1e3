//! How busy each process keeps a GPU: the share of the last second in which its kernels ran on the
//! multiprocessors (SM), as `nvidia-smi pmon` shows it.
//!
//! NVML samples all processes several times a second, and reports those with samples newer than a time
//! that are not zero. So a user of the GPU without a sample was idle.

use std::collections::BTreeMap;

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;
use telltale_schema::clock::Clock;

use super::library::Said;
use super::raw_calls::{ProcessSample, process_samples};

/// How long samples count.
const SECOND_US: u64 = 1_000_000;

/// The share of each process by its pid; none where what was said cannot be true.
pub(super) type ProcessUse = BTreeMap<u32, Option<f64>>;

/// Asks for it.
pub(super) fn process_use(device: &Device<'_>, clock: &dyn Clock) -> Said<ProcessUse> {
    let since_us = (clock.now().0 / 1000).saturating_sub(SECOND_US);
    match process_samples(device, since_us) {
        Ok(samples) => Ok(latest(&samples, since_us)),
        // No process has a sample.
        Err(NvmlError::NotFound) => Ok(ProcessUse::new()),
        Err(error) => Err(error),
    }
}

/// The latest of each process. Drivers fill lists up with samples that are older than
/// what was asked for.
fn latest(samples: &[ProcessSample], since_us: u64) -> ProcessUse {
    let mut latest: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    let is_one = |sample: &&ProcessSample| sample.pid != 0 && sample.timeStamp > since_us;
    for sample in samples.iter().filter(is_one) {
        let known = latest.entry(sample.pid).or_default();
        *known = (*known).max((sample.timeStamp, sample.smUtil));
    }
    let ratio = |percent: u32| (percent <= 100).then(|| f64::from(percent) / 100.0);
    latest.into_iter().map(|(pid, (_, percent))| (pid, ratio(percent))).collect()
}

#[cfg(test)]
mod tests {
    use super::{ProcessSample, latest};

    #[test]
    fn the_latest_sample_of_each_process_counts_and_absurd_ones_are_unknown() {
        let sample = |pid, at, sm| ProcessSample {
            pid,
            timeStamp: at,
            smUtil: sm,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        };
        let samples = [
            sample(7, 30, 50),
            sample(7, 20, 90),
            sample(8, 10, 40),
            sample(9, 30, 101),
            sample(0, 30, 10),
            sample(6, 11, 100),
        ];
        let found: Vec<(u32, Option<f64>)> = latest(&samples, 10).into_iter().collect();
        assert_eq!(found, [(6, Some(1.0)), (7, Some(0.5)), (9, None)]);
    }
}
