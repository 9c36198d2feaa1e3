//! An error is reported with names, concerns the dispatch that met it, and is not kept.

use std::error::Error;

use telltale_program_cache::{
    Argument, CacheMode, Dispatch, DispatchError, DynamicIndex, FactoryError, OperandSpecs,
    Operation, ProgramCache, ProgramDescriptor,
};

use crate::cache::operations::{Matmul, at, kernel, program, spec, with};
use crate::cache::paper::{Paper, cache, run};

/// Its kernel is refused by the back end when the attribute says so.
struct Fragile;

impl Operation for Fragile {
    const NAME: &'static str = "fragile";
    type Attributes = bool;

    fn create(
        refused: &bool,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        let name = if *refused { "refused" } else { "fine" };
        Ok(program([kernel(name, 1, [Argument::Dynamic(DynamicIndex(1))])]))
    }
}

/// Stands for operations that are known only at run time. None of them can be described.
struct Named;

impl Operation for Named {
    const NAME: &'static str = "named";
    type Attributes = String;

    fn name(attributes: &String) -> &'static str {
        if attributes == "fox" { "fox" } else { Self::NAME }
    }

    fn create(
        _: &String,
        _: OperandSpecs<'_>,
    ) -> Result<ProgramDescriptor<Argument>, FactoryError> {
        Err(FactoryError::Other(Box::new(std::io::Error::from_raw_os_error(2))))
    }
}

#[test]
fn an_error_of_the_factorys_own_keeps_its_type_and_has_the_operations_own_name() {
    let error = run::<Named>(&cache(CacheMode::On), &"fox".to_owned(), &BOTH).expect_err("none");
    assert!(reported(&error).starts_with("operation fox cannot describe its program: No such"));
    let DispatchError::Factory { source, .. } = error else { panic!("{error}") };
    let FactoryError::Other(own) = &*source else { panic!("{source}") };
    let own = own.downcast_ref::<std::io::Error>().expect("its type is kept");
    assert_eq!(own.kind(), std::io::ErrorKind::NotFound);
}

const BOTH: Dispatch<'static> = Dispatch { operands: &[], dynamics: &[5, 6], semaphores: &[] };

/// An error with its causes.
fn reported(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[test]
fn a_compilation_that_failed_is_tried_again() {
    let cache = cache(CacheMode::On);
    for attempt in 1..=3 {
        let error = run::<Fragile>(&cache, &true, &BOTH).expect_err("it is refused");
        assert_eq!(
            reported(&error),
            "the program of fragile cannot be compiled: kernel `refused` is refused"
        );
        assert_eq!((cache.counts().failed_compiles, cache.entries()), (attempt, 0));
    }
}

#[test]
fn an_operand_that_is_missing_is_named_with_who_wants_it() {
    let cache = cache(CacheMode::On);
    let shape = spec(&[32]);
    let operands = [at(&shape, 1), None];
    let error = run::<Matmul>(&cache, &(), &with(&operands)).expect_err("operand 2 is missing");
    assert_eq!(
        reported(&error),
        "operation matmul cannot describe its program: operand 2 is needed and was not given"
    );
}

#[test]
fn a_symbol_that_names_nothing_is_refused_at_its_place() {
    let cache = cache(CacheMode::On);
    let one = Dispatch { dynamics: &[5], ..BOTH };
    let error = run::<Fragile>(&cache, &false, &one).expect_err("a value is missing");
    assert_eq!(
        reported(&error),
        "operation fragile was dispatched without something that its program takes: kernel 0 \
         `fine`, core (0, 0), argument 0 cannot be written: the program takes dynamic value 1, \
         which was not given"
    );
    assert_eq!(run::<Fragile>(&cache, &false, &BOTH).expect("all is there").words, [6]);
    let error = run::<Fragile>(&cache, &false, &one).expect_err("it is missing in a hit too");
    assert!(matches!(error, DispatchError::Update { .. }), "{error}");
    assert_eq!(run::<Fragile>(&cache, &false, &BOTH).expect("all is there").words, [6]);
}

#[test]
fn a_dispatch_within_a_dispatch_of_the_same_program_is_refused() {
    let cache = cache(CacheMode::On);
    let again = |cache: &ProgramCache<Paper>| {
        cache.dispatch::<Fragile, _>(&false, &BOTH, |_| run::<Fragile>(cache, &false, &BOTH))
    };
    for _ in 0..2 {
        let inner = again(&cache).expect("the outer one is in order");
        assert!(matches!(inner, Err(DispatchError::Reentered)));
    }
    let shape = spec(&[32]);
    let operands = [at(&shape, 1), at(&shape, 2), at(&shape, 3)];
    let other = cache
        .dispatch::<Fragile, _>(&false, &BOTH, |_| run::<Matmul>(&cache, &(), &with(&operands)));
    other.expect("the outer one is in order").expect("another program is free");
}

#[test]
fn a_program_whose_user_panicked_is_not_used_again() {
    let cache = cache(CacheMode::On);
    assert_eq!(run::<Fragile>(&cache, &false, &BOTH).expect("it can run").serial, 0);
    std::thread::scope(|scope| {
        let panicking = scope.spawn(|| {
            let _ = cache.dispatch::<Fragile, ()>(&false, &BOTH, |_| panic!("as the test wants"));
        });
        panicking.join().expect_err("it panicked");
    });
    assert_eq!(run::<Fragile>(&cache, &false, &BOTH).expect("it can run").serial, 1);
    assert_eq!(run::<Fragile>(&cache, &false, &BOTH).expect("it can run").serial, 1);
    assert_eq!(cache.entries(), 1);
}
