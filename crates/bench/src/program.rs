//! Dispatching one program through the cache, beside the original proposal's flow and beside a key
//! and an update written by hand.
//!
//! A back end on paper stands for the device: what is timed is describing, finding and updating.
//! Results are processor time of the thread, so other load spoils them less; on an idle machine it
//! is the time that passes.

mod by_hand;
mod look_up;
mod paper;
pub mod shape;

use std::hint::black_box;
use std::io;

use telltale_program_cache::{FlatDescriptor, KeyEncoder, ProgramArguments};

use self::by_hand::ByHand;
use self::shape::{
    Addresses, Attributes, MatrixProduct, flat_at, nested_at, operand_specs, seed_specs,
    with_dispatch,
};
use crate::pinning::Pinned;
use crate::sample::{Contender, Effort, Measurements, interleave, processor_time_ns};
use crate::seed::{ProgramByHand, ProgramFlow, WordAccess};
use crate::table::{Row, Table, Target, Unit};

/// Dispatches in one repeat of a full run, for what takes microseconds.
const FLOWS: u64 = 20_000;
/// The same for what takes less.
const HITS: u64 = 400_000;

const FLOW_NS: f64 = 1000.0;
const FLOW_TIMES_BETTER: f64 = 5.0;
const OWN_PART_NS: f64 = 200.0;
const HIT_NS: f64 = 250.0;
const FLAT_KEY_NS: f64 = 80.0;
const NESTED_KEY_NS: f64 = 300.0;

/// Fills the table.
///
/// # Errors
/// What the kernel answers to pinning a thread.
pub fn table(effort: Effort) -> io::Result<Table> {
    let mut rows = Vec::new();
    {
        let _pinned = Pinned::to(0)?;
        rows.extend(flow_rows(effort));
        rows.extend(hit_rows(effort));
        rows.extend(key_rows(effort));
    }
    rows.extend(look_up::rows(effort));
    let same = same_words();
    Ok(Table {
        heading: "program: one program of 2,304 argument words, dispatched repeatedly"
            .to_owned(),
        rows,
        remarks: vec![
            "baseline of the flow: the original proposal in C++, which compares nothing".to_owned(),
            "baselines of the hit: by hand in C++ (no equality, no lock) with the words of each core \
             in vectors of vectors, as upstream has them; idealised in C++ (pointers to them are \
             kept) and in Rust (they are in one row; equality and a lock)"
                .to_owned(),
            format!("all of them leave the same words in the program: {same}"),
        ],
    })
}

/// Times `count` calls, each with the addresses of its turn.
fn timed(count: u64, mut dispatch: impl FnMut(Addresses)) -> f64 {
    processor_time_ns(count, || {
        let mut at = Addresses::FIRST;
        for _ in 0..count {
            dispatch(black_box(at));
            at = at.after(1);
        }
    })
}

/// What a device would do with a program: something that the compiler cannot see.
#[inline(always)]
fn enqueue(program: &mut ProgramArguments) {
    black_box(program.words().as_ptr());
}

fn row(what: &str, ours: &Measurements, baseline: Option<&Measurements>, target: Target) -> Row {
    let (what, ours, baseline) = (what.to_owned(), Some(ours.clone()), baseline.cloned());
    Row { what, unit: Unit::Time, ours, baseline, target }
}

fn at_most(limit_ns: f64) -> Target {
    Target { at_most: Some(limit_ns), ..Target::default() }
}

fn flow_rows(effort: Effort) -> Vec<Row> {
    let attributes = black_box(Attributes::USUAL);
    let flows = effort.operations(FLOWS);
    let cache = paper::cache();
    let described = nested_at(&attributes, Addresses::FIRST);
    let (mut flat, mut once) = (FlatDescriptor::new(), FlatDescriptor::new());
    let finished = flat_at(&mut once, &attributes, Addresses::FIRST);
    let mut seed = ProgramFlow::new();
    let contenders: [Contender<'_>; 5] = [
        Box::new(|| {
            timed(flows, |at| {
                let program = flat_at(&mut flat, &attributes, at);
                cache.dispatch_flat(&program, enqueue).expect("paper takes everything");
            })
        }),
        Box::new(|| {
            timed(flows, |at| {
                let described = nested_at(&attributes, at);
                cache.dispatch_described(&described, enqueue).expect("paper takes everything");
            })
        }),
        Box::new(|| {
            timed(flows, |_| {
                cache.dispatch_flat(&finished, enqueue).expect("paper takes everything");
            })
        }),
        Box::new(|| {
            timed(flows, |_| {
                let described = black_box(&described);
                cache.dispatch_described(described, enqueue).expect("paper takes everything");
            })
        }),
        Box::new(|| {
            processor_time_ns(flows, || {
                black_box(seed.dispatch(&attributes, Addresses::FIRST, flows));
            })
        }),
    ];
    let [flat, nested, flat_own, nested_own, seed] = interleave(effort.repeats(), contenders);
    let flow = Target {
        at_most: Some(FLOW_NS),
        times_better: Some(FLOW_TIMES_BETTER),
        ..Target::default()
    };
    vec![
        row("flat: create, key, look-up, equality, update", &flat, Some(&seed), flow),
        row("nested: the same", &nested, Some(&seed), flow),
        row("flat: of it look-up, equality, update", &flat_own, None, at_most(OWN_PART_NS)),
        row("nested: of it key, look-up, equality, update", &nested_own, None, Target::default()),
    ]
}

fn hit_rows(effort: Effort) -> Vec<Row> {
    let attributes = black_box(Attributes::USUAL);
    let hits = effort.operations(HITS);
    let cache = paper::cache();
    let specs = operand_specs();
    let seed_specs = seed_specs(&specs);
    let in_rust = ByHand::default();
    let (mut in_cpp, mut idealised) = (ProgramByHand::new(), ProgramByHand::new());
    let by_hand = |program: &mut ProgramByHand, access| {
        processor_time_ns(hits, || {
            let at = Addresses::FIRST;
            black_box(program.dispatch(&attributes, &seed_specs, at, hits, access));
        })
    };
    let contenders: [Contender<'_>; 4] = [
        Box::new(|| {
            timed(hits, |at| {
                with_dispatch(black_box(&specs), at, |dispatch| {
                    let attributes = black_box(&attributes);
                    cache.dispatch::<MatrixProduct, _>(attributes, dispatch, enqueue)
                })
                .expect("paper takes everything");
            })
        }),
        Box::new(|| by_hand(&mut in_cpp, WordAccess::ByCore)),
        Box::new(|| by_hand(&mut idealised, WordAccess::ByHandle)),
        Box::new(|| {
            timed(hits, |at| {
                let (attributes, specs) = (black_box(&attributes), black_box(&seed_specs));
                in_rust.dispatch(attributes, specs, at, |words| {
                    black_box(words.as_ptr());
                });
            })
        }),
    ];
    let [ours, in_cpp, idealised, in_rust] = interleave(effort.repeats(), contenders);
    let hit = Target { at_most: Some(HIT_NS), times_baseline: Some(1.0), ..Target::default() };
    vec![
        row("hit through a patch plan; by hand in C++", &ours, Some(&in_cpp), hit),
        row("the same; idealised in C++", &ours, Some(&idealised), at_most(HIT_NS)),
        row("the same; idealised in Rust", &ours, Some(&in_rust), at_most(HIT_NS)),
    ]
}

fn key_rows(effort: Effort) -> Vec<Row> {
    let attributes = black_box(Attributes::USUAL);
    let keys = effort.operations(HITS);
    let described = nested_at(&attributes, Addresses::FIRST);
    let mut written = KeyEncoder::new();
    described.key(&mut written);
    let mut encoder = KeyEncoder::new();
    let mut flat = FlatDescriptor::new();
    let contenders: [Contender<'_>; 3] = [
        Box::new(|| {
            timed(keys, |_| {
                black_box(black_box(&written).key().hash());
            })
        }),
        Box::new(|| {
            timed(keys, |_| {
                black_box(black_box(&described).key(&mut encoder).hash());
            })
        }),
        Box::new(|| {
            timed(keys, |at| {
                black_box(flat_at(&mut flat, &attributes, at).key().hash());
            })
        }),
    ];
    let [of_bytes, nested, create] = interleave(effort.repeats(), contenders);
    vec![
        row("key of a flat description", &of_bytes, None, at_most(FLAT_KEY_NS)),
        row("key of a nested description", &nested, None, at_most(NESTED_KEY_NS)),
        row("creating a flat description, key included", &create, None, Target::default()),
    ]
}

/// Whether all ways of dispatching leave the same words in the program, and the same key.
pub fn same_words() -> bool {
    let attributes = Attributes::USUAL;
    let (cache, specs) = (paper::cache(), operand_specs());
    let last = Addresses::FIRST.after(2);
    let mut all = vec![ProgramFlow::new().dispatch(&attributes, Addresses::FIRST, 3)];
    all.extend([WordAccess::ByCore, WordAccess::ByHandle].map(|access| {
        let specs = seed_specs(&specs);
        ProgramByHand::new().dispatch(&attributes, &specs, Addresses::FIRST, 3, access)
    }));
    let (by_hand, mut flat) = (ByHand::default(), FlatDescriptor::new());
    let words = |program: &mut ProgramArguments| program.words().to_vec();
    for at in [Addresses::FIRST, last] {
        let operation = with_dispatch(&specs, at, |dispatch| {
            cache.dispatch::<MatrixProduct, _>(&attributes, dispatch, words)
        });
        let nested = cache.dispatch_described(&nested_at(&attributes, at), words);
        let flat = cache.dispatch_flat(&flat_at(&mut flat, &attributes, at), words);
        let in_rust = by_hand.dispatch(&attributes, &seed_specs(&specs), at, <[u32]>::to_vec);
        if at == last {
            all.extend([operation, nested, flat].map(|words| words.expect("paper takes it")));
            all.push(in_rust);
        }
    }
    let found = cache.entries() == 2 && cache.counts().hits == 4;
    found && all.windows(2).all(|pair| pair[0] == pair[1])
}
