//! Processes that attach, record, detach and die at the same time.

use std::collections::BTreeSet;
use std::path::Path;

use telltale_harness::{Scratch, rounds, wait_until};
use telltale_ledger::region::writer::RegionLayout;
use telltale_ledger::region::{RegionFinding, RegionKind, read};

use crate::region::members::{TIMEOUT, attach, finish, numbered, options, region, remains, start};
use crate::region::samples::{ID, NOW};

const MEMBERS: u64 = 4;

/// The bytes in the row of `pid`, if the region is initialised and has one.
fn row_bytes(directory: &Path, pid: u32) -> Option<u128> {
    let region = read(directory, ID, NOW).ok()?.region;
    region.processes.iter().find(|row| row.pid == pid).map(|row| row.bytes.sum())
}

#[test]
fn balanced_members_end_at_zero() {
    // Long stays, and short ones that make each other wait.
    for (layout, rows, rounds, pairs) in [
        (1, "yes", rounds(20, 200), 300),
        (3, "yes", rounds(20, 200), 300),
        (4, "yes", rounds(20, 200), 300),
        (1, "no", rounds(20, 200), 300),
        (1, "yes", rounds(1000, 20_000), 1),
        (3, "yes", rounds(1000, 20_000), 1),
        (4, "yes", rounds(1000, 20_000), 1),
    ] {
        let scratch = Scratch::new();
        let order = format!("layout={layout} rows={rows} rounds={rounds} pairs={pairs}");
        let members: Vec<_> = (0..MEMBERS).map(|_| start(scratch.path(), &order)).collect();
        members.into_iter().for_each(finish);
        let left = region(scratch.path());
        assert_eq!(remains(&left), (0, 0, 0, 0), "{order}");
        assert_eq!((left.process_count, left.findings.as_slice()), (0, [].as_slice()));
    }
}

#[test]
fn attaching_and_detaching_beside_others_loses_no_byte() {
    for layout in [1, 3, 4] {
        let scratch = Scratch::new();
        let own = numbered(layout);
        let steady = attach(scratch.path(), &options(own));
        steady.record_allocation(RegionKind::Dram, 1_000_000, 3);
        let members: Vec<_> = (1..=MEMBERS)
            .map(|number| {
                let hold = number * 1000;
                let order = format!("layout={layout} rows=yes rounds=10 pairs=200 hold={hold}");
                start(scratch.path(), &order)
            })
            .collect();
        // 1000 + 2000 + 3000 + 4000 beside our own.
        wait_until("all members to hold their share", TIMEOUT, || {
            members.iter().zip(1..).all(|(member, number)| {
                row_bytes(scratch.path(), member.id()) == Some(number * 1000)
            })
        });
        let seen = region(scratch.path());
        assert_eq!(seen.totals.sum(), 1_010_000);
        assert_eq!((seen.reference_count, seen.process_count), (5, 5));
        assert_eq!(seen.findings, []);
        members.into_iter().for_each(finish);
        assert_eq!(remains(&region(scratch.path())), (1_000_000, 1, 1_000_000, 1));
        steady.detach().expect("nobody holds the lock");
        assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
    }
}

#[test]
fn a_killed_member_is_taken_out_to_the_byte() {
    let scratch = Scratch::new();
    let holder = start(scratch.path(), "layout=3 rows=yes hold=70");
    let mut victim = start(scratch.path(), "layout=3 rows=yes hold=5000");
    wait_until("both members to hold their share", TIMEOUT, || {
        row_bytes(scratch.path(), holder.id()) == Some(70)
            && row_bytes(scratch.path(), victim.id()) == Some(5000)
    });
    victim.kill();
    let ghost = region(scratch.path());
    assert_eq!(remains(&ghost), (5070, 2, 5070, 2));
    let next = attach(scratch.path(), &options(RegionLayout::V3));
    assert_eq!(remains(&region(scratch.path())), (70, 2, 70, 2));
    drop(next);
    finish(holder);
    assert_eq!(remains(&region(scratch.path())), (0, 0, 0, 0));
}

#[test]
fn members_killed_in_the_middle_leave_nothing_once_all_are_gone() {
    let scratch = Scratch::new();
    for round in 0..rounds(10, 500) {
        let layout = [3, 1, 4][usize::try_from(round % 3).expect("it is small")];
        let own = numbered(layout);
        let path = scratch.join(format!("{round}"));
        std::fs::create_dir(&path).expect("the scratch directory is writable");
        let steady = attach(&path, &options(own));
        steady.record_allocation(RegionKind::Trace, 12, 3);
        // Two that churn inside one attachment, one that attaches and detaches all the time.
        let orders = ["rounds=0 pairs=0 churn", "rounds=1 pairs=9 churn", "rounds=1000000 pairs=1"];
        let mut members: Vec<_> = orders
            .iter()
            .map(|order| start(&path, &format!("layout={layout} rows=yes {order}")))
            .collect();
        let pids: BTreeSet<u32> = members.iter().map(|member| member.id()).collect();
        wait_until("every member to have been seen", TIMEOUT, || {
            members[..2].iter().all(|member| row_bytes(&path, member.id()).is_some())
        });
        for member in &mut members {
            member.kill();
        }
        let next = attach(&path, &options(own));
        let seen = region(&path);
        assert!(seen.processes.iter().all(|row| !pids.contains(&row.pid)), "{seen:?}");
        assert_eq!(seen.totals.get(RegionKind::Trace), Some(12));
        assert_eq!((seen.reference_count, seen.process_count), (2, 2));
        // A record cut in two leaves too much in a total, never too little.
        let differences = seen.findings.iter().filter_map(RegionFinding::disagreement);
        assert!(differences.into_iter().all(|(_, bytes)| bytes > 0), "{seen:?}");
        drop(next);
        drop(steady);
        assert_eq!(remains(&region(&path)), (0, 0, 0, 0), "round {round}");
    }
}
