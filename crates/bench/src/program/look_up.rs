//! Finding one of many programs, from two threads at once, beside two maps for many threads. All
//! three write the same key and hash it with the same function; they differ in what they do with it.

use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;

use dashmap::DashMap;
use telltale_program_cache::{
    Address, Argument, CoreCoord, CoreRange, Dispatch, FactoryError, KernelConfig,
    KernelDescriptor, KernelSource, KeyEncoder, KeyKind, Operand, OperandIndex, OperandSpec,
    OperandSpecs, Operation, ProgramCache, ProgramDescriptor, ProgramKey, ReaderConfig,
};

use crate::program::paper::{Paper, cache};
use crate::program::shape::{Attributes, operand_specs};
use crate::sample::{Contender, Effort, interleave, processor_time_on_two_threads_ns};
use crate::table::{Row, Target, Unit};

/// Programs in each map.
const ENTRIES: u32 = 100_000;
/// Of these, the ones that are looked for when keys are hot.
const HOT: u32 = 64;
/// Look-ups of each thread in one repeat of a full run.
const LOOK_UPS: u64 = 1_000_000;
const HOT_NS: f64 = 80.0;
const RANDOM_NS: f64 = 500.0;

/// An operation with the attributes of [`Attributes`], one operand and the smallest program.
struct Small;

impl Operation for Small {
    const NAME: &'static str = "small";
    type Attributes = Attributes;

    fn create(
        _: &Attributes,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let core = CoreRange::from(CoreCoord::new(0, 0));
        let source = KernelSource::Text("".into());
        let config = KernelConfig::Reader(ReaderConfig {});
        let mut kernel = KernelDescriptor::new("reader", source, core, config);
        let address = Argument::Address { operand: OperandIndex(0), offset_bytes: 0 };
        kernel.runtime_arguments.push_range(core, |_| [address]);
        Ok(ProgramDescriptor { kernels: [kernel].into_iter().collect(), ..Default::default() })
    }
}

/// The cache and the other maps, each with the same keys.
struct Maps {
    spec: OperandSpec,
    ours: ProgramCache<Paper>,
    papaya: papaya::HashMap<Box<[u8]>, u32, BuildHasherDefault<BytesHasher>>,
    dashmap: DashMap<Box<[u8]>, u32, BuildHasherDefault<BytesHasher>>,
}

/// The hash that the cache's keys have.
#[derive(Default)]
struct BytesHasher(u64);

impl Hasher for BytesHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = rapidhash::v3::rapidhash_v3(bytes);
    }

    // A slice writes its length first; the key's own bytes say it already.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

// === impl Maps ===

impl Maps {
    fn with(entries: u32) -> Self {
        let [spec, ..] = operand_specs();
        let maps = Self {
            spec,
            ours: cache(),
            papaya: papaya::HashMap::default(),
            dashmap: DashMap::default(),
        };
        let mut encoder = KeyEncoder::new();
        for number in 0..entries {
            maps.dispatch(number);
            let bytes: Box<[u8]> = maps.key(&mut encoder, number).into();
            maps.papaya.pin().insert(bytes.clone(), number);
            maps.dashmap.insert(bytes, number);
        }
        maps
    }

    /// The key that the cache itself writes for a program of [`Small`].
    #[inline(always)]
    fn key<'a>(&self, encoder: &'a mut KeyEncoder, number: u32) -> &'a [u8] {
        encoder.begin(KeyKind::Operation);
        encoder.text(Small::NAME);
        attributes(number).encode_value(encoder);
        encoder.length(1);
        encoder.put([1]);
        self.spec.encode_value(encoder);
        encoder.written()
    }

    #[inline(always)]
    fn with_dispatch<R>(&self, number: u32, body: impl FnOnce(&Dispatch<'_>) -> R) -> R {
        let address = Address::new(number);
        let operands = [Some(Operand { spec: &self.spec, address })];
        body(&Dispatch { operands: &operands, ..Dispatch::default() })
    }

    /// The whole of a dispatch: key, look-up, lock, one word, counters.
    #[inline(always)]
    fn dispatch(&self, number: u32) -> u32 {
        self.with_dispatch(number, |dispatch| {
            let run = |program: &mut telltale_program_cache::ProgramArguments| program.words()[0];
            self.ours
                .dispatch::<Small, _>(&attributes(number), dispatch, run)
                .expect("a program on paper can always be made")
        })
    }

    #[inline(always)]
    fn ours(&self, number: u32) -> bool {
        self.with_dispatch(number, |dispatch| {
            self.ours.holds::<Small>(&attributes(number), dispatch)
        })
    }
}

fn attributes(number: u32) -> Attributes {
    Attributes { block_height: number, ..Attributes::USUAL }
}

/// Looks for `count` of the first `most` keys in a random order that differs between threads.
fn look_for(thread: usize, count: u64, most: u32, mut look_up: impl FnMut(u32) -> bool) {
    let mut random = 0x9e37_79b9_7f4a_7c15u64 ^ thread as u64;
    for _ in 0..count {
        // Knuth's MMIX generator; the upper half is taken, scaled to the range.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let scaled = ((random >> 32) * u64::from(most)) >> 32;
        let number = u32::try_from(scaled).expect("below a 32-bit bound");
        assert!(look_up(black_box(number)), "every key that is looked for is there");
    }
}

/// The rows of the look-up.
pub(super) fn rows(effort: Effort) -> Vec<Row> {
    let entries = if effort == Effort::Once { HOT } else { ENTRIES };
    let maps = Maps::with(entries);
    let kinds = [("hot", HOT.min(entries), HOT_NS), ("random", entries, RANDOM_NS)];
    kinds.into_iter().flat_map(|kind| rows_of(effort, &maps, entries, kind)).collect()
}

fn rows_of(
    effort: Effort,
    maps: &Maps,
    entries: u32,
    (kind, most, limit_ns): (&str, u32, f64),
) -> [Row; 3] {
    let count = effort.operations(LOOK_UPS);
    let contender = |look_up: fn(&Maps, &mut KeyEncoder, u32) -> bool| -> Contender<'_> {
        Box::new(move || {
            processor_time_on_two_threads_ns(count, |thread| {
                let mut encoder = KeyEncoder::new();
                look_for(thread, count, most, |number| look_up(maps, &mut encoder, number));
            })
        })
    };
    let [ours, whole, papaya, dashmap] = interleave(
        effort.repeats(),
        [
            contender(|maps, _, number| maps.ours(number)),
            contender(|maps, _, number| maps.dispatch(number) == number),
            contender(|maps, encoder, number| {
                maps.papaya.pin().get(maps.key(encoder, number)) == Some(&number)
            }),
            contender(|maps, encoder, number| {
                let found = maps.dashmap.get(maps.key(encoder, number));
                found.is_some_and(|found| *found == number)
            }),
        ],
    );
    let row = |what: &str, ours, baseline, at_most| Row {
        what: format!("{what}, {entries} entries, {kind} keys, 2 threads"),
        unit: Unit::Time,
        ours: Some(ours),
        baseline,
        target: Target { at_most, ..Target::default() },
    };
    [
        row("key, look-up, equality; papaya", ours.clone(), Some(papaya), Some(limit_ns)),
        row("key, look-up, equality; dashmap", ours, Some(dashmap), Some(limit_ns)),
        row("the same with the rest of a dispatch", whole, None, None),
    ]
}
