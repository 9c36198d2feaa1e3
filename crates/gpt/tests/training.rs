//! Trainings on the software accelerator: against PyTorch, with each mode of the program cache,
//! stopped and resumed, and in several ranks.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

mod bench;
mod parallel;
mod printed;

use bench::{Bench, Reference, SMALL};
use telltale_emulator::KernelCounters;
use telltale_gpt::checkpoint::CheckpointDirectory;
use telltale_gpt::text::Text;
use telltale_gpt::{Config, ResumeError, Training};
use telltale_harness::Scratch;
use telltale_program_cache::CacheMode;

/// How far a loss may be from PyTorch's in double precision, relatively.
const TOLERANCE: f64 = 2e-5;

fn steps(training: &mut Training, count: usize) -> Vec<f32> {
    (0..count).map(|_| training.step().unwrap()).collect()
}

#[test]
fn losses_are_those_of_pytorch_and_fall() {
    let bench = Bench::new();
    let Reference { config, seed, text, losses } = Reference::read();
    let session = bench.session(CacheMode::On);
    let mut training = Training::begin(session, config, seed, text).unwrap();
    for (step, expected) in losses.iter().enumerate() {
        let loss = f64::from(training.step().unwrap());
        let error = (loss - expected).abs() / expected;
        assert!(error <= TOLERANCE, "step {step}: {loss} is not {expected}: {error:e}");
    }
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(last < first * 0.8, "the reference's own loss falls: {first} to {last}");
}

#[test]
fn weights_have_the_same_bits_with_the_cache_on_off_and_checked() {
    let bench = Bench::new();
    let digests = [CacheMode::On, CacheMode::Off, CacheMode::Check].map(|mode| {
        let mut training = bench.training(mode);
        let before = training.weights_digest().unwrap();
        let kernels_before = training.session().accelerator().kernel_counters();
        let losses = steps(&mut training, 6);
        let counts = training.session().cache().counts();
        let kernels = training.session().accelerator().kernel_counters();
        match mode {
            CacheMode::On => assert!(counts.hits > 4 * counts.compiles, "{counts:?}"),
            CacheMode::Off => {
                assert_eq!(counts.hits, 0, "{counts:?}");
                // Programs are rebuilt, their kernels are not.
                assert!(kernels.found_loaded > kernels_before.found_loaded, "{kernels:?}");
                let made = |all: KernelCounters| (all.compiled, all.found_on_disk);
                assert_eq!(made(kernels), made(kernels_before));
            }
            CacheMode::Check => assert_eq!((counts.checks, counts.failed_checks), (counts.hits, 0)),
        }
        let after = training.weights_digest().unwrap();
        assert_ne!(before, after);
        (losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>(), after)
    });
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[0], digests[2]);
}

#[test]
fn a_resumed_training_has_the_bits_of_one_that_never_stopped() {
    let (bench, place) = (Bench::new(), Scratch::new());
    let directory = CheckpointDirectory::open(place.path()).unwrap();
    let mut whole = bench.training(CacheMode::On);
    let expected = steps(&mut whole, 7);
    let mut first = bench.training(CacheMode::On);
    let mut losses = steps(&mut first, 3);
    let checkpoint = first.checkpoint().unwrap();
    directory.store(&checkpoint).unwrap();
    let identity = Training::identity_of(SMALL, 7, &Text::documentation()).unwrap();
    let found = directory.load(&identity).unwrap().expect("it was stored");
    assert_eq!(found, checkpoint);
    let session = bench.session(CacheMode::On);
    let mut second = Training::resume(session, &found, Text::documentation()).unwrap();
    assert_eq!(second.steps(), 3);
    losses.extend(steps(&mut second, 4));
    assert_eq!(losses, expected);
    assert_eq!(second.checkpoint().unwrap(), whole.checkpoint().unwrap(), "moments as well");
    assert_eq!(second.weights_digest().unwrap(), whole.weights_digest().unwrap());
}

#[test]
fn seeds_make_trainings_and_nothing_else_does() {
    let bench = Bench::new();
    let digest = |seed| {
        let session = bench.session(CacheMode::On);
        let mut training = Training::begin(session, SMALL, seed, Text::documentation()).unwrap();
        steps(&mut training, 2);
        training.weights_digest().unwrap()
    };
    let first = digest(1);
    assert_eq!(first, digest(1));
    assert_ne!(first, digest(2));
}

#[test]
fn sizes_and_texts_that_do_not_do_are_refused() {
    let text = Text::new("too short");
    let short = Training::identity_of(SMALL, 1, &Text::new("12345678"));
    assert!(matches!(short, Err(ResumeError::ShortText { tokens: 8, needed: 9 })), "{short:?}");
    let heads = Training::identity_of(Config { heads: 3, ..SMALL }, 1, &text);
    assert!(matches!(heads, Err(ResumeError::Config(_))), "{heads:?}");
}
