//! One test for each class of defect that hand-written program caching is known for, named after
//! it: each shows that the class cannot occur, or that checking mode names it.

use telltale_program_cache::{
    Address, Aliasing, Argument, CacheMode, CheckError, Dispatch, DispatchError, FactoryError,
    FlatDescriptor, Hybrid, KernelHead, KeyEncoder, Layout, OperandSpecs, Operation,
    ProgramDescriptor, Tile,
};

use crate::cache::operations::{
    Attention, Everything, Matmul, Window, address_of, at, kernel, program, spec, with,
};
use crate::cache::paper::{Ran, cache, run};

fn no_window() -> Window {
    Window { causal: true, sliding_window: None }
}

#[test]
fn a_structural_attribute_cannot_be_left_out_of_the_automatic_key() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32, 64]);
    let operands = [at(&shape, 0x100), at(&shape, 0x200)];
    let cases = [
        no_window(),
        Window { causal: false, ..no_window() },
        Window { sliding_window: Some(64), ..no_window() },
        Window { sliding_window: Some(65), ..no_window() },
        Window { sliding_window: Some(u32::MAX), ..no_window() },
    ];
    for (serial, attributes) in (0..).zip(&cases) {
        for _ in 0..2 {
            let ran = run::<Attention>(&cache, attributes, &with(&operands)).expect("it can run");
            assert_eq!(ran.serial, serial, "{attributes:?} must have a program of its own");
        }
    }
}

#[test]
fn dimensions_are_keyed_and_not_rank_or_volume() {
    let cache = cache(CacheMode::On);
    let shapes: [&[u32]; 6] = [&[4, 16], &[16, 4], &[64], &[1, 64], &[64, 1], &[2, 2, 16]];
    for (serial, first) in (0..).zip(shapes) {
        let (first, second) = (spec(first), spec(&[8]));
        let operands = [at(&first, 1), at(&second, 2)];
        let ran = run::<Attention>(&cache, &no_window(), &with(&operands)).expect("it can run");
        assert_eq!(ran.serial, serial);
    }
}

#[test]
fn each_operand_is_keyed_by_its_own_specification() {
    let cache = cache(CacheMode::On);
    let (small, large) = (spec(&[32]), spec(&[64]));
    let mut tiled = spec(&[32]);
    tiled.layout = Layout::Tiled(Tile::STANDARD);
    let mut transposed = spec(&[32]);
    transposed.layout = Layout::Tiled(Tile { transposed: true, ..Tile::STANDARD });
    let pairs = [
        (&small, &large),
        (&large, &small),
        (&small, &small),
        (&tiled, &small),
        (&small, &tiled),
        (&transposed, &small),
    ];
    for (serial, (one, other)) in (0..).zip(pairs) {
        let operands = [at(one, 1), at(other, 2)];
        let ran = run::<Attention>(&cache, &no_window(), &with(&operands)).expect("it can run");
        assert_eq!(ran.serial, serial);
    }
}

#[test]
fn the_presence_of_an_optional_operand_is_keyed() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    let cases = [
        vec![at(&shape, 1), at(&shape, 2)],
        vec![at(&shape, 1), at(&shape, 2), None],
        vec![at(&shape, 1), at(&shape, 2), at(&shape, 3)],
    ];
    for (serial, operands) in (0..).zip(&cases) {
        let ran = run::<Attention>(&cache, &no_window(), &with(operands)).expect("it can run");
        assert_eq!(ran.serial, serial);
    }
    let elsewhere = [at(&shape, 1), at(&shape, 2), at(&shape, 9)];
    let ran = run::<Attention>(&cache, &no_window(), &with(&elsewhere)).expect("it can run");
    assert_eq!(ran, Ran { serial: 2, words: vec![9, 1, 2, 1, 2] });
}

/// An operation whose own key forgets the window.
struct Forgetful;

impl Operation for Forgetful {
    const NAME: &'static str = "forgetful";
    type Attributes = Window;
    const HYBRID: Hybrid<Window> = Hybrid {
        key: Some(|attributes, _, key| key.put([u8::from(attributes.causal)])),
        update: None,
    };

    fn create(
        attributes: &Window,
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Attention::create(attributes, operands)
    }
}

#[test]
fn a_structural_attribute_left_out_of_a_custom_key_is_named_by_checking() {
    let cache = cache(CacheMode::Check);
    let shape = spec(&[32]);
    let operands = [at(&shape, 1), at(&shape, 2)];
    run::<Forgetful>(&cache, &no_window(), &with(&operands)).expect("a miss is not checked");
    run::<Forgetful>(&cache, &no_window(), &with(&operands)).expect("it is the same program");
    let wide = Window { sliding_window: Some(8), ..no_window() };
    let error = run::<Forgetful>(&cache, &wide, &with(&operands)).expect_err("it is another");
    let DispatchError::Check { source: CheckError::Description(difference), .. } = error else {
        panic!("{error}");
    };
    assert_eq!(difference.field, "kernel 0 `attention_reader`, compile-time argument 1");
    assert_eq!((difference.found.as_str(), difference.rebuilt.as_str()), ("4294967295", "8"));
    assert_eq!((cache.counts().checks, cache.counts().failed_checks), (2, 1));
}

#[test]
fn no_field_is_missing_from_the_descriptor_key() {
    let cache = cache(CacheMode::On);
    let described = |change: &dyn Fn(&mut ProgramDescriptor)| {
        let mut described = program([kernel("all", 1, [Argument::Word(1)])]).map(|_| 1);
        change(&mut described);
        cache.dispatch_described(&described, |sheet| sheet.serial).expect("it can run")
    };
    let changes: [&dyn Fn(&mut ProgramDescriptor); 4] = [
        &|_| {},
        &|one| one.kernels[0].named_compile_time_arguments.push(("tiles".into(), 1)),
        &|one| one.kernels[0].named_compile_time_arguments.push(("tiles".into(), 2)),
        &|one| {
            let level = telltale_program_cache::OptimisationLevel::O3;
            one.kernels[0].optimisation_level = Some(level);
        },
    ];
    for (serial, change) in (0..).zip(changes) {
        assert_eq!((described(change), described(change)), (serial, serial));
    }
}

/// Another type with the name, the attributes and the operands of [`Matmul`].
struct Impostor;

impl Operation for Impostor {
    const NAME: &'static str = Matmul::NAME;
    type Attributes = ();

    fn create((): &(), _: OperandSpecs<'_>) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Ok(program([kernel("impostor", 1, [address_of(2)])]))
    }
}

#[test]
fn operations_are_never_taken_for_each_other() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    let operands = [at(&shape, 1), at(&shape, 2), at(&shape, 3)];
    for _ in 0..2 {
        let one = run::<Matmul>(&cache, &(), &with(&operands)).expect("it can run");
        let other = run::<Impostor>(&cache, &(), &with(&operands)).expect("it can run");
        assert_eq!((one.serial, other.serial), (0, 1));
        assert_eq!(other.words, [3]);
    }
    // Their keys have the same bytes and so the same hash: the type distinguishes them.
    assert!(cache.counts().collisions > 0);
}

#[test]
fn no_buffer_address_is_stale() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    for base in [0x1000, 0x2000, 0x1000] {
        let operands = [at(&shape, base), at(&shape, base + 1), at(&shape, base + 2)];
        let ran = run::<Matmul>(&cache, &(), &with(&operands)).expect("it can run");
        let words = [[base, base + 1], [base, base + 1], [7, base + 2], [7, base + 2]].concat();
        assert_eq!(ran, Ran { serial: 0, words });
    }
}

/// What [`Everything`] is run with.
fn everything(
    cache: &telltale_program_cache::ProgramCache<crate::cache::paper::Paper>,
    pages: u32,
    (first, second): (u32, u32),
    seed: u32,
    semaphore: u32,
) -> Ran {
    let shape = spec(&[32]);
    let operands = [at(&shape, first), at(&shape, second)];
    let dispatch =
        Dispatch { operands: &operands, dynamics: &[seed], semaphores: &[Address::new(semaphore)] };
    run::<Everything>(cache, &pages, &dispatch).expect("it can run")
}

#[test]
fn no_address_of_a_global_semaphore_is_stale() {
    let cache = cache(CacheMode::On);
    for semaphore in [0x40, 0x80] {
        let ran = everything(&cache, 1, (0, 0), 0, semaphore);
        assert_eq!((ran.serial, ran.words[3]), (0, semaphore));
    }
}

#[test]
fn no_scalar_that_is_not_keyed_is_frozen() {
    let cache = cache(CacheMode::On);
    for seed in [1, 2, 3] {
        let ran = everything(&cache, 1, (0, 0), seed, 0);
        assert_eq!((ran.serial, ran.words[2]), (0, seed));
    }
}

#[test]
fn a_circular_buffer_follows_its_buffer_and_is_keyed_by_its_size() {
    let cache = cache(CacheMode::On);
    for second in [0x700, 0x900] {
        let ran = everything(&cache, 1, (0, second), 0, 0);
        assert_eq!((ran.serial, ran.words[4]), (0, second));
    }
    assert_eq!(everything(&cache, 2, (0, 0x700), 0, 0).serial, 1);
}

#[test]
fn an_offset_is_added_to_the_address_of_each_dispatch() {
    let cache = cache(CacheMode::On);
    for first in [0x1000, 0x5000] {
        let ran = everything(&cache, 1, (first, 0), 0, 0);
        assert_eq!(ran.words[..2], [first, first + 512]);
    }
}

#[test]
fn aliased_operands_are_distinguished_by_position() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    let (x, y, out) = (0x10, 0x20, 0x30);
    for (first, second) in [(x, x), (x, y), (y, x), (y, y)] {
        let operands = [at(&shape, first), at(&shape, second), at(&shape, out)];
        let ran = run::<Matmul>(&cache, &(), &with(&operands)).expect("it can run");
        let words = [[first, second], [first, second], [7, out], [7, out]].concat();
        assert_eq!(ran, Ran { serial: 0, words });
    }
}

#[test]
fn an_output_in_place_of_an_input_is_no_second_input() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    let (x, y, z) = (0x10, 0x20, 0x30);
    for (first, second, out) in [(x, y, x), (x, y, y), (x, y, z), (x, x, x)] {
        let operands = [at(&shape, first), at(&shape, second), at(&shape, out)];
        let ran = run::<Matmul>(&cache, &(), &with(&operands)).expect("it can run");
        let words = [[first, second], [first, second], [7, out], [7, out]].concat();
        assert_eq!(ran, Ran { serial: 0, words });
    }
}

/// Its kernel is another one when it works in place.
struct InPlace;

impl Operation for InPlace {
    const NAME: &'static str = "in place";
    type Attributes = ();
    const ALIASING: Aliasing = Aliasing::Keyed;

    fn create(
        (): &(),
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let name = if operands.share_a_buffer(0, 1)? { "same" } else { "different" };
        Ok(program([kernel(name, 1, [address_of(0), address_of(1)])]))
    }
}

#[test]
fn aliasing_that_a_program_depends_on_is_keyed() {
    let cache = cache(CacheMode::Check);
    let shape = spec(&[32]);
    for (first, second, serial) in [(1, 1, 0), (1, 2, 1), (3, 3, 0), (5, 4, 1)] {
        let operands = [at(&shape, first), at(&shape, second)];
        let ran = run::<InPlace>(&cache, &(), &with(&operands)).expect("it can run");
        assert_eq!(ran, Ran { serial, words: vec![first, second] });
    }
}

#[test]
fn a_factory_that_asks_for_aliasing_without_keying_it_is_refused() {
    struct Undeclared;
    impl Operation for Undeclared {
        const NAME: &'static str = "undeclared";
        type Attributes = ();
        fn create(
            (): &(),
            operands: OperandSpecs<'_>,
        ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
            operands.share_a_buffer(0, 1)?;
            Ok(ProgramDescriptor::default())
        }
    }
    let error = run::<Undeclared>(&cache(CacheMode::On), &(), &Dispatch::default());
    let Err(DispatchError::Factory { source, .. }) = error else { panic!("it is refused") };
    assert!(matches!(*source, FactoryError::AliasingNotKeyed));
}

#[test]
fn nothing_that_changes_with_each_dispatch_is_keyed() {
    let cache = cache(CacheMode::On);
    for step in 0..100 {
        everything(&cache, 1, (step * 64, step * 32), step, step);
    }
    let counts = cache.counts();
    assert_eq!((counts.entries, counts.compiles, counts.misses, counts.hits), (1, 1, 1, 99));
}

#[test]
fn a_hit_describes_nothing() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CREATED: AtomicU32 = AtomicU32::new(0);
    struct Counted;
    impl Operation for Counted {
        const NAME: &'static str = "counted";
        type Attributes = ();
        fn create(
            (): &(),
            _: OperandSpecs<'_>,
        ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
            CREATED.fetch_add(1, Ordering::Relaxed);
            Ok(program([kernel("counted", 1, [address_of(0)])]))
        }
    }
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    for address in 0..10 {
        let operands = [at(&shape, address)];
        let ran = run::<Counted>(&cache, &(), &with(&operands)).expect("it can run");
        assert_eq!(ran.words, [address]);
    }
    assert_eq!(CREATED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_factory_that_reads_what_is_not_keyed_is_named_by_checking() {
    use std::sync::atomic::{AtomicU32, Ordering};
    // It stands for an environment variable, or for how much L1 is free.
    static FRONTIER: AtomicU32 = AtomicU32::new(100);
    struct Peeking;
    impl Operation for Peeking {
        const NAME: &'static str = "peeking";
        type Attributes = ();
        fn create(
            (): &(),
            _: OperandSpecs<'_>,
        ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
            let free = Argument::Word(FRONTIER.load(Ordering::Relaxed));
            Ok(program([kernel("peeking", 2, [address_of(0), free])]))
        }
    }
    let cache = cache(CacheMode::Check);
    let shape = spec(&[32]);
    let operands = [at(&shape, 1)];
    for _ in 0..2 {
        run::<Peeking>(&cache, &(), &with(&operands)).expect("nothing has changed yet");
    }
    FRONTIER.store(200, Ordering::Relaxed);
    let error = run::<Peeking>(&cache, &(), &with(&operands)).expect_err("it would be stale");
    let text = std::error::Error::source(&error).expect("it has a cause").to_string();
    assert!(text.starts_with("kernel 0 `peeking`, core (0, 0), argument 1"), "{text}");
    assert!(text.contains("Word(100)") && text.contains("Word(200)"), "{text}");
}

#[test]
fn a_flat_and_a_nested_description_are_the_same_program() {
    let cache = cache(CacheMode::Check);
    let nested = program([kernel("all", 3, [Argument::Word(4), Argument::Word(5)])]).map(|word| {
        let Argument::Word(word) = word else { panic!("all are words") };
        *word
    });
    let mut encoder = KeyEncoder::new();
    let key = nested.key(&mut encoder);
    let mut flat = FlatDescriptor::new();
    let words = |flat: &mut FlatDescriptor, first: u32| {
        let one = &nested.kernels[0];
        let head = KernelHead::<&str> {
            name: &one.name,
            source: &one.source,
            core_ranges: &one.core_ranges,
            compile_time_arguments: &[],
            named_compile_time_arguments: &[],
            defines: &[],
            optimisation_level: None,
            config: &one.config,
        };
        let mut kernels = flat.begin();
        kernels.kernel(&head, &[]).push_range(one.core_ranges.ranges()[0], |_| [first, 5]);
        let program = kernels.circular_buffers().finish(&[]);
        assert_eq!(program.key(), key);
        cache.dispatch_flat(&program, |sheet| (sheet.serial, sheet.arguments.words().to_vec()))
    };
    assert_eq!(words(&mut flat, 1).expect("it can run"), (0, [1, 5].repeat(3)));
    let ran = cache.dispatch_described(&nested, |sheet| sheet.arguments.words().to_vec());
    assert_eq!(ran.expect("it can run"), [4, 5].repeat(3));
    assert_eq!(words(&mut flat, 2).expect("it can run"), (0, [2, 5].repeat(3)));
    assert_eq!((cache.counts().compiles, cache.counts().failed_checks), (1, 0));
}
