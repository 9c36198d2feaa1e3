//! The table of processes: which columns have room, and what a row of the tree sums up.

use telltale_schema::reading::{Absence, Reading};
use telltale_schema::snapshot::{ProcessUsage, Snapshot};
use telltale_smi::screen::{Column, Screen, ViewSettings};

use crate::golden::screens::{machine, page, screen_with, terms};

/// The headings of the process table, and the cells of the command or the tree.
fn headings(screen: &mut Screen, columns: u16, rows: u16) -> (Vec<String>, usize) {
    let page = page(screen, columns, rows);
    let line = page.lines().find(|line| line.contains(" PID")).unwrap().trim_matches('"');
    let words = line.split_whitespace().map(str::to_owned).collect();
    let cells = match line.split_once(" PID") {
        // The tree is before a gap and the pid, which is right-aligned in 7 cells.
        Some((before, _)) if line.starts_with("TREE") => before.len() + " PID".len() - 7 - 1,
        _ => line.len() - line.find("COMMAND").unwrap(),
    };
    (words, cells)
}

#[test]
fn columns_that_matter_less_wait_until_the_command_has_room() {
    let settings = |tree| ViewSettings { tree, ..ViewSettings::default() };
    let mut list = screen_with(settings(false), terms(), machine());
    let mut tree = screen_with(settings(true), terms(), machine());
    let usual = ["PID", "USER", "DEVICE", "DRAMv", "L1", "CPU", "RSS"];
    let others = ["UP", "BUFFERS", "THREADS", "READ", "WRITE"];
    for (columns, rows, more, in_tree) in [(80, 24, 0, 6), (120, 40, 2, 9), (200, 60, 5, 12)] {
        let (words, command) = headings(&mut list, columns, rows);
        let expected = [&usual[..], &others[..more], &["COMMAND"]].concat();
        assert_eq!(words, expected, "{columns} columns");
        assert!(more == 0 || command >= 30, "{command} cells of {columns}");
        // The tree says whose they are.
        let all: Vec<&str> = usual.into_iter().filter(|it| *it != "USER").chain(others).collect();
        let (words, cells) = headings(&mut tree, columns, rows);
        assert_eq!(words, [&["TREE"], &all[..in_tree - 1]].concat(), "{columns} columns");
        assert!(words.contains(&String::from("CPU")), "{words:?}");
        assert!(cells >= if columns == 80 { 30 } else { 38 }, "{cells} cells of {columns}");
    }
}

#[test]
fn what_is_sorted_by_has_a_column_in_80_cells() {
    let headings = |screen: &mut Screen| headings(screen, 80, 24).0.join(" ");
    for sort in Column::ALL {
        for tree in [false, true] {
            let mut screen = screen_with(
                ViewSettings { sort, tree, ..ViewSettings::default() },
                terms(),
                machine(),
            );
            let shown = headings(&mut screen);
            // The tree says whose and where.
            let said = tree && [Column::User, Column::Container].contains(&sort);
            assert_eq!(shown.matches('v').count(), usize::from(!said), "{sort:?}: {shown}");
        }
    }
    let columns = vec![Column::Pid, Column::Device, Column::Command];
    let settings = ViewSettings { columns, sort: Column::Write, ..ViewSettings::default() };
    let shown = headings(&mut screen_with(settings, terms(), machine()));
    assert!(shown.contains("WRITEv COMMAND"), "what is not chosen comes before it: {shown}");
}

/// Three processes, of which not all report all that they use of the host.
fn used() -> Snapshot {
    let mut snapshot = machine();
    let at = snapshot.taken_at;
    let uses = [(Some(0.5), Some(1 << 30)), (None, Some(2 << 30)), (Some(1.25), None)];
    for (process, (cpu, resident)) in snapshot.processes.iter_mut().zip(uses) {
        let mut usage = ProcessUsage::absent(Absence::Permission, "");
        let new = |value| Reading::new(value, at);
        usage.cpu_ratio = cpu.map_or(usage.cpu_ratio, |share| Reading::new(share, at));
        usage.resident_bytes = resident.map_or(usage.resident_bytes, new);
        usage.threads = new(7);
        process.usage = Some(Box::new(usage));
    }
    snapshot.processes.truncate(uses.len());
    snapshot
}

#[test]
fn a_row_of_the_tree_sums_what_is_below_it_and_what_is_unknown_stays_so() {
    let settings = ViewSettings { tree: true, ..ViewSettings::default() };
    let mut screen = screen_with(settings, terms(), used());
    let page = page(&mut screen, 200, 60);
    let cells = |label: &str| -> Vec<String> {
        let line = page.lines().find(|line| line.contains(label)).unwrap().trim_end_matches('"');
        let (_, cells) = line.split_once(label).unwrap();
        cells.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
    };
    // CPU and RSS of the two that report them, threads of all three; none reports what it reads.
    let summed = cells("- node-7 (3)");
    assert!(summed.windows(2).any(|it| it == ["175 %", "3.0 GiB"]), "{summed:?} in {page}");
    assert!(summed.ends_with(&["21", "n/a", "n/a"].map(String::from)), "{summed:?} in {page}");
    // One that reports no CPU alone in its group.
    let alone = cells("    - n/a (1)");
    assert!(alone.windows(2).any(|it| it == ["n/a", "2.0 GiB"]), "{alone:?} in {page}");
}
