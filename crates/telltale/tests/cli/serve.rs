//! `telltale serve`: how it begins and ends.

use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStderr, Command, Stdio};

use telltale_harness::{ChildGuard, Scratch};

use crate::command::{PATIENCE, said, telltale};

/// A service whose log is read.
struct Serving {
    child: ChildGuard,
    log: Lines<BufReader<ChildStderr>>,
}

impl Serving {
    fn start(command: &mut Command) -> Self {
        let mut child = ChildGuard::spawn(command.stderr(Stdio::piped()));
        let log = BufReader::new(child.child().stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Reads the log up to the line that has `words`.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        let found = self.log.by_ref().map(Result::unwrap).find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("it ended without saying {words:?}"))
    }
}

fn serve(place: &Scratch) -> Command {
    let mut command = telltale();
    command.arg("serve").arg("--root").arg(place.path());
    command
}

#[test]
fn it_collects_until_a_signal_and_ends_cleanly() {
    for interrupt in [true, false] {
        let place = Scratch::new();
        let mut service = Serving::start(serve(&place).args(["--interval", "0.2"]));
        assert_eq!(service.says("collecting"), "info: collecting each 0.2 s");
        if interrupt {
            service.child.interrupt();
        } else {
            service.child.terminate();
        }
        service.says("ending");
        let status = service.child.wait_within("the service to end", PATIENCE);
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn a_root_that_is_not_there_is_told() {
    let mut command = telltale();
    let said = said(command.args(["serve", "--root", "/nonexistent"]));
    assert_eq!(said.status, Some(2));
    assert!(said.err.contains("/nonexistent"), "{said:?}");
}
