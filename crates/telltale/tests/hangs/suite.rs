//! Every program with every rank as culprit. Four of them run by default; all with
//! `TELLTALE_LONG_TESTS=1 cargo test -p telltale --test main hangs::suite -- --nocapture`, which prints how often
//! the rank, the line and the kind were right, beside the odd stack out.

use telltale_harness::{long, skip};

use crate::hangs::fixture::{Explained, HungJob, RANKS};

/// Each program, and the kinds that say what it is.
const PROGRAMS: [(&str, &[&str]); 24] = [
    ("sleeps", &["rank_missing"]),
    ("spins", &["rank_missing"]),
    ("other_collective", &["different_collectives"]),
    ("other_order", &["different_order"]),
    ("joins", &["held_by_join"]),
    ("loader", &["data_loader"]),
    ("loader_worker", &["data_loader"]),
    ("holds_gil", &["gil_held"]),
    ("waits_for_gil", &["gil_held"]),
    ("deadlock", &["deadlock"]),
    ("empty_queue", &["deadlock"]),
    ("saves", &["file_system"]),
    ("reads", &["file_system"]),
    ("locks_file", &["file_system"]),
    ("stops", &["stopped"]),
    ("compiles", &["compile"]),
    ("breakpoints", &["debugger"]),
    ("runs_program", &["held_by_join"]),
    ("device", &["device"]),
    ("moves_slowly", &["slow_but_moving"]),
    ("never_sends", &["rank_missing"]),
    ("other_size", &["different_order"]),
    ("polls", &["rank_missing"]),
    ("reads_terminal", &["debugger"]),
];
/// Those that run by default, each with a rank of its own.
const QUICK: [(&str, u32); 4] =
    [("sleeps", 0), ("loader_worker", 1), ("deadlock", 2), ("other_collective", 3)];

#[test]
fn the_rank_the_line_and_the_kind_are_named() {
    const TEST: &str = "hangs::suite::the_rank_the_line_and_the_kind_are_named";
    for (program, culprit) in QUICK {
        let Some(job) = HungJob::start(TEST, program, culprit) else { return };
        let explained = job.explained();
        let (_, kinds) = PROGRAMS.iter().find(|(name, _)| *name == program).unwrap();
        assert_eq!(explained.status, Some(0), "{explained:?}");
        assert_eq!(explained.culprits(), [u64::from(culprit)], "{program}: {explained:?}");
        assert!(kinds.contains(&explained.kind()), "{program}: {explained:?}");
        assert!(explained.names_line_of(program), "{program}: {}", explained.sentence());
    }
}

#[test]
fn all_programs_with_each_rank_as_culprit() {
    const TEST: &str = "hangs::suite::all_programs_with_each_rank_as_culprit";
    if !long() {
        return skip(TEST, "takes a quarter of an hour; TELLTALE_LONG_TESTS=1 runs it");
    }
    let mut score = Score::default();
    for (program, kinds) in PROGRAMS {
        for culprit in 0..RANKS {
            let Some(job) = HungJob::start(TEST, program, culprit) else { return };
            score.add(program, culprit, kinds, &job.explained());
        }
    }
    println!("{score:?}");
    assert_eq!(score.culprit, score.runs, "{score:?}");
    assert!(score.line_and_kind * 72 >= score.runs * 69, "{score:?}");
}

#[derive(Debug, Default)]
struct Score {
    runs: usize,
    culprit: usize,
    line_and_kind: usize,
    odd_one_out: usize,
    longest_stop_us: u64,
    longest_ms: u128,
}

impl Score {
    fn add(&mut self, program: &str, culprit: u32, kinds: &[&str], explained: &Explained) {
        let is_culprit = explained.culprits() == [u64::from(culprit)];
        let is_all = explained.names_line_of(program) && kinds.contains(&explained.kind());
        let is_odd = explained.odd_one_out() == Some(u64::from(culprit));
        self.runs += 1;
        self.culprit += usize::from(is_culprit);
        self.line_and_kind += usize::from(is_culprit && is_all);
        self.odd_one_out += usize::from(is_odd);
        self.longest_stop_us = self.longest_stop_us.max(explained.longest_stop_us());
        self.longest_ms = self.longest_ms.max(explained.took.as_millis());
        let mark = |is_right: bool| if is_right { '+' } else { '-' };
        println!(
            "{program:17} {culprit} culprit {} line and kind {} odd one out {} {}: {}",
            mark(is_culprit),
            mark(is_all),
            mark(is_odd),
            explained.kind(),
            explained.sentence()
        );
    }
}
