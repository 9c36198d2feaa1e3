//! The cache makes no difference: random sequences of operations with random shapes, operands that
//! are the same tensor, results in place, buffers that are freed and used again, evictions and two
//! threads leave the same bits with the cache on, off and checking, in both styles.

use telltale_harness::rounds;
use telltale_operations::{Session, Style};
use telltale_program_cache::{CacheMode, CacheOptions};

use crate::operations::bench::Bench;
use crate::operations::random::play;

/// Operations of a sequence.
const STEPS: u32 = 150;
/// Sequences of a quick and of a long run.
const QUICK: u32 = 2;
const LONG: u32 = 60;

fn sequences() -> std::ops::Range<u64> {
    0..u64::from(rounds(QUICK, LONG))
}

#[test]
fn every_mode_and_style_leaves_the_same_bits() {
    let [off, cached, checked] = [CacheMode::Off, CacheMode::On, CacheMode::Check]
        .map(|mode| Bench::with(CacheOptions { mode, ..CacheOptions::default() }));
    let by_hand = Bench::by_hand(CacheMode::Check);
    for seed in sequences() {
        let (expected, done) = play(&off.session, seed, STEPS);
        assert!(done > STEPS / 4, "seed {seed}: only {done} of {STEPS} were possible");
        for bench in [&cached, &checked, &by_hand] {
            let (bytes, _) = play(&bench.session, seed, STEPS);
            assert!(bytes == expected, "seed {seed}: {:?} differs from off", bench.session);
        }
    }
    assert_eq!(off.session.cache().counts().hits, 0);
    let counts = cached.session.cache().counts();
    assert!(counts.hits > 0, "{counts:?}");
    for bench in [&checked, &by_hand] {
        let counts = bench.session.cache().counts();
        assert!(counts.checks > 0 && counts.failed_checks == 0, "{counts:?}");
    }
    assert_eq!(by_hand.session.style(), Style::HandWritten);
}

#[test]
fn evictions_and_two_threads_leave_the_same_bits() {
    let off = Bench::with(CacheOptions { mode: CacheMode::Off, ..CacheOptions::default() });
    let large = Bench::with(CacheOptions::default());
    play(&large.session, 0, STEPS);
    // Room for a quarter of what the programs of one sequence weigh.
    let limit_bytes = large.session.cache().counts().weight_bytes / 4;
    let small = Bench::with(CacheOptions { mode: CacheMode::On, limit_bytes });
    let session: &Session = &small.session;
    for seed in sequences() {
        let seeds = [2 * seed + 1_000, 2 * seed + 1_001];
        let expected = seeds.map(|seed| play(&off.session, seed, STEPS));
        let played = std::thread::scope(|scope| {
            let threads = seeds.map(|seed| scope.spawn(move || play(session, seed, STEPS)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(played == expected, "seeds {seeds:?} differ from off");
    }
    let counts = session.cache().counts();
    assert!(counts.evictions > 0 && counts.hits > 0, "{counts:?}");
}
