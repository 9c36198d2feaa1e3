//! Checking mode finds what an update leaves undone, and leaves alone what is right.

use telltale_program_cache::{
    Address, Argument, CacheMode, CacheOptions, CheckError, Dispatch, DispatchError, FactoryError,
    Hybrid, OperandSpecs, Operation, ProgramCache, ProgramDescriptor,
};

use crate::cache::operations::{Everything, Matmul, at, spec, with};
use crate::cache::paper::{Paper, Ran, cache, run};

/// The matrix product with a key and an update by hand.
struct ByHand;

impl Operation for ByHand {
    const NAME: &'static str = "matmul by hand";
    type Attributes = ();
    const HYBRID: Hybrid<()> = Hybrid {
        key: Some(|(), operands, key| {
            for index in 0..3 {
                let shape = operands.get(index).map(|operand| operand.shape.dimensions());
                let dimensions = shape.unwrap_or_default();
                key.length(dimensions.len());
                key.words(dimensions);
            }
        }),
        update: Some(|(), dispatch, arguments| {
            let address =
                |index: u16| crate::cache::operations::address_of(index).word_at(dispatch);
            let (first, second, out) = (address(0)?, address(1)?, address(2)?);
            for core in arguments.words_mut()[..4].chunks_mut(2) {
                core.copy_from_slice(&[first, second]);
            }
            for core in arguments.words_mut()[4..].chunks_mut(2) {
                core[1] = out;
            }
            Ok(())
        }),
    };

    fn create(
        (): &(),
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Matmul::create(&(), operands)
    }
}

/// The same, but its update forgets the writer on the second core.
struct Careless;

impl Operation for Careless {
    const NAME: &'static str = "careless";
    type Attributes = ();
    const HYBRID: Hybrid<()> = Hybrid {
        key: None,
        update: Some(|(), dispatch, arguments| {
            let before = arguments.words()[7];
            let update = ByHand::HYBRID.update.expect("it has one");
            update(&(), dispatch, arguments)?;
            arguments.words_mut()[7] = before;
            Ok(())
        }),
    };

    fn create(
        (): &(),
        operands: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Matmul::create(&(), operands)
    }
}

#[test]
fn key_and_update_by_hand_do_what_the_automatic_ones_do() {
    for mode in [CacheMode::On, CacheMode::Off, CacheMode::Check] {
        let (cache, shape) = (cache(mode), spec(&[32]));
        for addresses in [[1, 2, 3], [1, 1, 3], [4, 5, 4]] {
            let operands = addresses.map(|address| at(&shape, address));
            let by_hand = run::<ByHand>(&cache, &(), &with(&operands)).expect("it can run");
            let automatic = run::<Matmul>(&cache, &(), &with(&operands)).expect("it can run");
            assert_eq!(by_hand.words, automatic.words);
        }
    }
}

#[test]
fn a_word_that_an_update_forgets_is_named() {
    let (cache, shape) = (cache(CacheMode::Check), spec(&[32]));
    let first = [1, 2, 3].map(|address| at(&shape, address));
    run::<Careless>(&cache, &(), &with(&first)).expect("it was just described");
    run::<Careless>(&cache, &(), &with(&first)).expect("the old word is the right one");
    let second = [1, 2, 9].map(|address| at(&shape, address));
    let error = run::<Careless>(&cache, &(), &with(&second)).expect_err("a word is stale");
    let DispatchError::Check { source: CheckError::Word(difference), .. } = error else {
        panic!("{error}");
    };
    assert_eq!(difference.field, "kernel 1 `matmul_writer`, core (1, 0), argument 1");
    assert_eq!((difference.found.as_str(), difference.rebuilt.as_str()), ("3", "9"));
}

#[test]
fn a_word_that_the_back_end_forgets_is_named() {
    let backend = Paper { forgets_slot: Some(4), ..Paper::default() };
    let options = CacheOptions { mode: CacheMode::Check, ..CacheOptions::default() };
    let cache = ProgramCache::new(backend, options);
    let shape = spec(&[32]);
    let mut results = [0x10, 0x20].map(|address| {
        let operands = [at(&shape, 1), at(&shape, address)];
        let semaphores = [Address::new(0)];
        let dispatch = Dispatch { operands: &operands, dynamics: &[0], semaphores: &semaphores };
        run::<Everything>(&cache, &1, &dispatch).map_err(|error| match error {
            DispatchError::Check { source: CheckError::Word(difference), .. } => difference.field,
            other => other.to_string(),
        })
    });
    assert_eq!(results[1], Err("circular buffer 0, address".to_owned()));
    results[0].as_mut().expect("a miss is compiled with its words").words.clear();
    assert_eq!(results[0], Ok(Ran { serial: 0, words: vec![] }));
}

#[test]
fn described_programs_are_checked_word_by_word() {
    let backend = Paper { forgets_slot: Some(1), ..Paper::default() };
    let options = CacheOptions { mode: CacheMode::Check, ..CacheOptions::default() };
    let cache = ProgramCache::new(backend, options);
    let described = |word: u32| {
        let kernel = crate::cache::operations::kernel("one", 2, [Argument::Word(word)]);
        crate::cache::operations::program([kernel]).map(|_| word)
    };
    cache.dispatch_described(&described(1), |_| ()).expect("a miss has its words");
    let error = cache.dispatch_described(&described(2), |_| ()).expect_err("one is stale");
    let DispatchError::Check { operation, source: CheckError::Word(difference) } = error else {
        panic!("{error}");
    };
    assert_eq!(
        (operation.as_ref(), difference.field.as_str()),
        ("one", "kernel 0 `one`, core (1, 0), argument 0",)
    );
}
