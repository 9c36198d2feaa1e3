//! What `smi --clean` removes, and what it must leave.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;

use telltale_collector::CleanReport;
use telltale_emulator::MachineKind;
use telltale_harness::{needs_root, rounds};
use telltale_ledger::directory::{endpoint_name, ledger_name};

use crate::collecting::bench::Bench;
use crate::collecting::workload::{Role, start};

fn names(bench: &Bench) -> BTreeSet<String> {
    let entries = fs::read_dir(&bench.directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn clean(bench: &Bench) -> CleanReport {
    telltale_collector::clean(bench.options()).unwrap()
}

#[test]
fn what_the_killed_left_goes_and_what_the_living_have_stays() {
    let bench = Bench::new(MachineKind::N150);
    let _lives = start(&bench.child(Role::LedgerAndEndpoint, 1));
    let living = names(&bench);
    assert_eq!(living.len(), 2);
    for _ in 0..rounds(3, 100) {
        let mut killed = [Role::Ledger, Role::LedgerAndEndpoint, Role::Endpoint]
            .map(|role| start(&bench.child(role, 1)));
        let report = clean(&bench);
        assert_eq!((report.removed.len(), report.left.len(), report.alive), (0, 0, 6));
        for child in &mut killed {
            child.kill();
        }
        let report = clean(&bench);
        assert_eq!((report.removed.len(), report.left.len(), report.alive), (4, 0, 2));
        assert_eq!(names(&bench), living);
    }
    fs::write(bench.directory.join("something else"), "kept").unwrap();
    assert_eq!(clean(&bench).removed, []);
    assert_eq!(names(&bench).len(), 3);
}

#[test]
fn a_ledger_that_was_never_finished_goes_with_its_process() {
    let bench = Bench::new(MachineKind::N150);
    let mut killed = start(&bench.child(Role::Ledger, 1));
    let name = names(&bench).into_iter().next().unwrap();
    // As it is before the header is complete.
    let file = fs::File::options().write(true).open(bench.directory.join(&name)).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(0).unwrap();
    file.set_len(size).unwrap();
    assert_eq!(clean(&bench).alive, 1);
    killed.kill();
    let report = clean(&bench);
    assert_eq!(report.removed.len(), 1, "{report:?}");
    assert!(names(&bench).is_empty());
}

#[test]
fn lies_and_files_of_others_are_left_and_told() {
    if !needs_root("node::cleaning::lies_and_files_of_others") {
        return;
    }
    let bench = Bench::new(MachineKind::N150);
    let child = start(&bench.child(Role::Ledger, 1));
    let real = bench.directory.join(names(&bench).into_iter().next().unwrap());
    let forged = bench.directory.join(ledger_name(child.id(), 1, None));
    fs::copy(&real, &forged).unwrap();
    chown(&forged, Some(61_002), None).unwrap();
    let fake = bench.directory.join(endpoint_name(child.id(), None));
    fs::write(&fake, "no socket").unwrap();
    let report = clean(&bench);
    assert_eq!((report.removed.len(), report.left.len(), report.alive), (0, 2, 1), "{report:?}");
    assert!(report.left.iter().any(|one| one.why.contains("user 61002 made it")));
    assert_eq!(names(&bench).len(), 3);
}
