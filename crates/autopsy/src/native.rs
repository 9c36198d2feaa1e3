//! Native stacks: each thread is stopped for as long as its registers and its stack take to copy, and
//! the copies are unwound afterwards, while it goes on.

mod modules;
mod names;
#[allow(unsafe_code)]
mod stopped;
mod symbols;
mod unwound;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) use stopped::{Refused, Tracer};

use crate::evidence::NativeFrame;
use modules::Modules;

/// Native stacks of some threads, and why others have none.
#[derive(Debug, Default)]
pub(crate) struct NativeStacks {
    pub(crate) by_thread: BTreeMap<u32, Vec<NativeFrame>>,
    pub(crate) refused: Vec<(u32, Refused)>,
    pub(crate) longest_stop: Duration,
}

/// Takes the stacks of these threads until the deadline.
pub(crate) fn stacks(
    tracer: &mut Tracer,
    pid: u32,
    threads: &[u32],
    deadline: Instant,
) -> NativeStacks {
    let mut stacks = NativeStacks::default();
    let mut copies = Vec::new();
    for tid in threads {
        if Instant::now() >= deadline {
            stacks.refused.push((*tid, Refused::NoTime));
            continue;
        }
        match tracer.copy(pid, *tid) {
            Ok(copy) => {
                stacks.longest_stop = stacks.longest_stop.max(copy.stopped);
                copies.push((*tid, copy));
            }
            Err(refused) => stacks.refused.push((*tid, refused)),
        }
    }
    if !copies.is_empty() {
        let modules = Modules::of(pid);
        let unwound = copies.iter().map(|(tid, copy)| (*tid, modules.unwind(copy))).collect();
        stacks.by_thread = symbols::named(&modules, unwound);
    }
    stacks
}
