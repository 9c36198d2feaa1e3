//! One training in several ranks, here threads that talk over the loopback.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use telltale_gpt::checkpoint::Checkpoint;
use telltale_gpt::parallel::{
    JoinError, Joined, Master, ParallelRank, RankRefusal, Ring, RingError, Transfer,
};
use telltale_gpt::text::Text;
use telltale_gpt::{Config, SharedStepError, Training};
use telltale_program_cache::CacheMode;

use crate::training::bench::{Bench, SMALL};

const SEED: u64 = 7;

/// Where rank 0 listens: at an address of this process, where no other takes the port meanwhile.
fn master() -> Master {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let host = format!("127.77.{high}.{low}");
    let listener = TcpListener::bind((host.as_str(), 0)).unwrap();
    let port = NonZeroU16::new(listener.local_addr().unwrap().port()).unwrap();
    Master { host, port }
}

fn join(
    member: ParallelRank,
    master: &Master,
    held: Option<Checkpoint>,
    config: Config,
) -> Result<Joined, JoinError> {
    let identity = Training::identity_of(config, SEED, &Text::documentation()).unwrap();
    Ring::join(member, master, &identity, held, Arc::new(AtomicBool::new(false)))
}

/// The training of a rank, where the ring says that it goes on.
fn training(bench: &Bench, config: Config, from: Option<&Checkpoint>) -> Training {
    let (session, text) = (bench.session(CacheMode::On), Text::documentation());
    let training = match from {
        Some(checkpoint) => Training::resume(session, checkpoint, text),
        None => Training::begin(session, config, SEED, text),
    };
    training.unwrap()
}

/// Runs a closure for each rank, and gives what they return.
fn in_all<T: Send>(ranks: u32, run: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// What a rank had at the end: the losses, the checkpoint, and who passed it one.
struct Ended {
    losses: Vec<f32>,
    checkpoint: Checkpoint,
    passed_by: Option<u32>,
}

/// Trains in so many ranks up to a step, each from the checkpoint that it has.
fn train(config: Config, until: u64, epoch: u64, held: &[Option<&Checkpoint>]) -> Vec<Ended> {
    let master = master();
    let ranks = u32::try_from(held.len()).unwrap();
    in_all(ranks, |rank| {
        let bench = Bench::new();
        let member = ParallelRank::new(rank, ranks, epoch).unwrap();
        let own = held[rank as usize].cloned();
        let Joined { mut ring, checkpoint, passed_by } =
            join(member, &master, own, config).unwrap();
        let mut training = training(&bench, config, checkpoint.as_ref());
        let mut losses = Vec::new();
        while training.steps() < until {
            losses.push(training.step_shared(&mut ring, |_, _| Ok(())).unwrap());
        }
        Ended { losses, checkpoint: training.checkpoint().unwrap(), passed_by }
    })
}

#[test]
fn who_comes_in_the_place_of_the_dead_makes_no_difference_to_any_bit() {
    let none = [None; 3];
    let whole = train(SMALL, 6, 1, &none);
    let half = train(SMALL, 4, 1, &none);
    let [first, second] = [&half[0].checkpoint, &train(SMALL, 3, 1, &none)[1].checkpoint];
    // Rank 2 died with its disk, and rank 0 had not written its last checkpoint.
    let ended = train(SMALL, 6, 2, &[Some(second), Some(first), None]);
    for rank in &ended {
        assert_eq!(rank.passed_by, Some(1));
        assert_eq!(rank.losses, whole[0].losses[4..]);
        assert_eq!(rank.checkpoint, whole[0].checkpoint);
    }
    assert_eq!(half[2].passed_by, None);
    for rank in whole.iter().chain(&half) {
        assert_eq!(rank.losses[..4], whole[0].losses[..4], "all ranks see the same");
    }
}

#[test]
fn ranks_learn_what_one_would_from_a_batch_of_all() {
    let bench = Bench::new();
    let mut alone = training(&bench, Config { batch: 6, ..SMALL }, None);
    let losses = train(SMALL, 4, 1, &[None; 3]).remove(0).losses;
    for loss in losses {
        let expected = alone.step().unwrap();
        assert!((loss - expected).abs() < 1e-4 * expected, "{loss} is not {expected}");
    }
    let mut plain = training(&bench, SMALL, None);
    let expected: Vec<f32> = (0..4).map(|_| plain.step().unwrap()).collect();
    let only = train(SMALL, 4, 1, &[None]).remove(0);
    assert_eq!(only.losses, expected, "one rank is a plain training");
    assert_eq!(only.checkpoint, plain.checkpoint().unwrap());
}

#[test]
fn sums_are_the_same_everywhere_and_each_transfer_is_reported() {
    for (ranks, count) in [(2, 1), (3, 2), (4, 1000), (5, 70_001)] {
        let master = master();
        let sums = in_all(ranks, |rank| {
            let member = ParallelRank::new(rank, ranks, 1).unwrap();
            let mut ring = join(member, &master, None, SMALL).unwrap().ring;
            let reported = Arc::new(Mutex::new(Vec::new()));
            let telling = Arc::clone(&reported);
            ring.observe(Box::new(move |record| telling.lock().unwrap().push(*record)));
            let number = |place: u32| (place as f32 + 0.1) * (rank as f32 + 0.7);
            let mut numbers: Vec<f32> = (0..count).map(number).collect();
            ring.all_reduce(&mut numbers).unwrap();
            let reported = reported.lock().unwrap();
            let ended: Vec<_> = reported.iter().filter(|record| record.ended.is_some()).collect();
            assert_eq!(ended.len() * 2, reported.len());
            assert_eq!(ended.len() as u32, 2 * 2 * (ranks - 1) + 1);
            let count = count as usize;
            assert_eq!(ended.last().unwrap().transfer, Transfer::AllReduce { count });
            numbers
        });
        let factor: f32 = (0..ranks).map(|rank| rank as f32 + 0.7).sum();
        for (place, sum) in sums[0].iter().enumerate() {
            let expected = (place as f32 + 0.1) * factor;
            assert!((sum - expected).abs() <= 1e-5 * expected, "{sum} is not {expected}");
        }
        assert!(sums.iter().all(|one| *one == sums[0]), "the bits differ");
    }
}

#[test]
fn who_loses_a_neighbour_still_has_the_training_as_it_was() {
    let (master, met) = (master(), Barrier::new(3));
    let kept = in_all(3, |rank| {
        let bench = Bench::new();
        let member = ParallelRank::new(rank, 3, 1).unwrap();
        let mut ring = join(member, &master, None, SMALL).unwrap().ring;
        let mut training = training(&bench, SMALL, None);
        training.step_shared(&mut ring, |_, _| Ok(())).unwrap();
        met.wait();
        let before = training.checkpoint().unwrap();
        if rank != 1 {
            let error = training.step_shared(&mut ring, |_, _| Ok(())).expect_err("1 is gone");
            assert!(matches!(error, SharedStepError::Ring(RingError::Link(_))), "{error:?}");
            assert_eq!(training.checkpoint().unwrap(), before);
        }
        before
    });
    assert!(kept.iter().all(|checkpoint| *checkpoint == kept[0]));
}

#[test]
fn who_does_not_belong_is_reported_so_and_who_says_nothing_keeps_nobody_waiting() {
    let master = master();
    let member = |rank, ranks, epoch| ParallelRank::new(rank, ranks, epoch).unwrap();
    thread::scope(|scope| {
        let leader = scope.spawn(|| join(member(0, 2, 5), &master, None, SMALL));
        let strangers = [
            (member(1, 2, 4), SMALL, RankRefusal::Epoch),
            (member(1, 3, 5), SMALL, RankRefusal::WorldSize),
            (member(1, 2, 5), Config { width: 32, ..SMALL }, RankRefusal::Training),
        ];
        for (member, config, expected) in strangers {
            let refused = join(member, &master, None, config);
            let Err(JoinError::Refused(why)) = refused else { panic!("{refused:?}") };
            assert_eq!(why, expected);
        }
        let address = (master.host.as_str(), master.port.get());
        let silent = TcpStream::connect(address).unwrap();
        let mut lost = TcpStream::connect(address).unwrap();
        lost.write_all(&[b'x'; 100]).unwrap();
        let joined = join(member(1, 2, 5), &master, None, SMALL);
        assert!(joined.is_ok(), "{joined:?}");
        assert!(leader.join().unwrap().is_ok());
        drop(silent);
    });
}
