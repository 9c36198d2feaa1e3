//! Three production jobs, and what was published about them: how much slower they were than they might
//! have been, and by what (tests/data/stragglers/README.md).

#![allow(clippy::unwrap_used, reason = "in a test, the panic is the report")]

mod trace;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use telltale_steps::attribution::Attribution;
use telltale_steps::{Processors, Role, Roles, Typical, what_if};

use crate::published::trace::{Job, data};

/// What was published about a job.
struct Published(Value);

impl Published {
    fn of(name: &str) -> Self {
        let text = fs::read_to_string(data(&format!("result-{name}.json"))).unwrap();
        Self(serde_json::from_str(&text).unwrap())
    }

    fn by(&self, field: &str) -> BTreeMap<String, f64> {
        let map = self.0[field].as_object().unwrap();
        map.iter().map(|(key, value)| (key.clone(), value.as_f64().unwrap())).collect()
    }

    /// S: the mean of the replayed steps over the mean of the typical ones.
    fn slowdown(&self) -> f64 {
        let mean = |field| {
            let steps = self.by(field);
            steps.values().sum::<f64>() / steps.len() as f64
        };
        mean("step_t_nodelay") / mean("step_t_noblk")
    }
}

fn assert_near(what: &str, ours: f64, published: f64, within: f64) {
    let error = (ours / published - 1.0).abs();
    println!("{what}: {ours:.4}, published {published:.4}");
    assert!(error <= within, "{what}: {ours}, published {published}");
}

#[test]
fn slowdowns_are_the_published_ones() {
    for name in ["AR", "ST", "SE"] {
        let job = Job::read(name, |_| (0, 0));
        let published = Published::of(name);
        let typical = Typical::of(&job.steps, &job.kinds);
        let slowdown = what_if::slowdown(&job.steps, &job.kinds, &typical);
        assert_near(name, slowdown.ratio(), published.slowdown(), 0.01);
        let replayed = published.by("step_t_nodelay");
        for step in &job.steps {
            let ours = step.replay(|one| one.work_ns as f64) / 1e9;
            assert_near("step", ours, replayed[&step.number().to_string()], 0.03);
        }
        let stages = what_if::by_part(&job.steps, &typical, |one| Some(job.stage(one.rank)));
        for (stage, ratio) in published.by("blocking_decompose_by_stage") {
            assert_near("stage", stages[&stage.parse().unwrap()], ratio, 0.02);
        }
        let replicas = what_if::by_part(&job.steps, &typical, |one| Some(job.replica(one.rank)));
        for (replica, ratio) in published.by("blocking_decompose_by_dp_rank") {
            assert_near("replica", replicas[&replica.parse().unwrap()], ratio, 0.02);
        }
        let kinds = what_if::by_part(&job.steps, &typical, |one| Some(job.kinds.name(one.kind)));
        for (kind, ratio) in published.by("blocking_decompose_by_optype") {
            // The published analysis has what is sent and what is received as one.
            if let Some(ours) = kinds.get(kind.as_str()) {
                assert_near(&kind, *ours, ratio, 0.02);
            }
        }
    }
}

#[test]
fn clocks_that_differ_change_nothing() {
    for name in ["ST", "SE"] {
        let job = Job::read(name, |rank| (rank, i64::from(rank) * 123_456_789_000 - 7_000_000_000));
        let typical = Typical::of(&job.steps, &job.kinds);
        let slowdown = what_if::slowdown(&job.steps, &job.kinds, &typical);
        assert_near(name, slowdown.ratio(), Published::of(name).slowdown(), 0.01);
    }
}

/// Where the time of a job's first steps goes.
fn lost(job: &Job, steps: usize) -> Attribution {
    let steps = &job.steps[..steps.min(job.steps.len())];
    Attribution::of(steps, &job.kinds, &Roles::of(&steps[0], &job.kinds), &Processors::default())
}

#[test]
fn a_slow_worker_is_named_by_the_end_of_its_second_step() {
    let job = Job::read("AR", |_| (0, 0));
    for steps in [2, 10, job.steps.len()] {
        let lost = lost(&job, steps);
        let ranks: Vec<u32> = lost.ranks.iter().map(|one| one.rank).collect();
        assert_eq!(ranks, [0], "after {steps} steps");
        assert_near("how slow", lost.ranks[0].slowness.ratio, 2.5, 0.1);
        let part = lost.ranks[0].slowness.cost_ns / lost.lost_ns();
        assert!(part > 0.9, "it costs nearly all that is lost, not {part}");
        assert_eq!(lost.links, [], "after {steps} steps");
    }
}

#[test]
fn a_stage_with_more_to_do_is_no_slow_worker() {
    let job = Job::read("ST", |_| (0, 0));
    for steps in [2, 10, job.steps.len()] {
        let lost = lost(&job, steps);
        assert_eq!((&lost.ranks[..], &lost.links[..]), (&[][..], &[][..]), "after {steps} steps");
        let slowest = &lost.roles[0];
        assert_eq!(slowest.role, Role(3), "the last stage");
        assert!(slowest.ratio > 1.6, "{slowest:?}");
        if steps == job.steps.len() {
            assert_near("how slow", slowest.ratio, 1.63, 0.01);
            for (kind, ratio) in [("forward-compute", 2.07), ("backward-compute", 1.42)] {
                let ours = slowest.kinds.iter().find(|(name, _)| **name == *kind).unwrap().1;
                assert_near(kind, ours, ratio, 0.01);
            }
        }
        let part = lost.roles_ns / lost.lost_ns();
        assert!(part > 0.8, "it costs most of what is lost, not {part}");
    }
}

#[test]
fn what_varies_with_the_data_is_nobodys_fault() {
    let job = Job::read("SE", |_| (0, 0));
    for steps in [2, 10, job.steps.len()] {
        let lost = lost(&job, steps);
        assert_eq!((&lost.ranks[..], &lost.links[..]), (&[][..], &[][..]), "after {steps} steps");
        let others = [lost.roles_ns, lost.ranks_ns, lost.noise_ns, lost.links_ns];
        assert!(others.iter().all(|one| *one < lost.data_ns), "after {steps} steps: {lost:?}");
    }
}
