//! Another user's program: this test program, started again with a part to play.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use telltale_harness::{ChildGuard, Scratch, as_user};

/// The variable with the part.
const PART: &str = "TELLTALE_TEST_PART";
/// What a line begins with that is meant for the test.
const MARK: &str = "said ";

/// One who plays a part, until it is dropped.
pub(crate) struct Actor {
    guard: ChildGuard,
    output: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts a part as this user.
    pub(crate) fn start(uid: u32, part: &Value) -> Self {
        Self::named(uid, part, None)
    }

    /// The same, with a first argument of our choice, which is what its command line begins with.
    pub(crate) fn named(uid: u32, part: &Value, first_argument: Option<&str>) -> Self {
        let mut command = Command::new(for_everyone(&std::env::current_exe().unwrap()));
        command.args(["--exact", "attacks::actor::play", "--nocapture", "--test-threads=1"]);
        command.env(PART, part.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(name) = first_argument {
            command.arg0(name);
        }
        let mut guard = ChildGuard::spawn(&mut as_user(uid, uid, command));
        let output = BufReader::new(guard.child().stdout.take().unwrap());
        Self { guard, output }
    }

    pub(crate) fn id(&self) -> u32 {
        self.guard.id()
    }

    /// What it says next.
    #[track_caller]
    pub(crate) fn says(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.output.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "it ended without a word");
            if let Some((_, said)) = line.split_once(MARK) {
                return serde_json::from_str(said).unwrap();
            }
        }
    }

    /// Lets one begin whose part says that it waits for a word.
    pub(crate) fn begin(&mut self) {
        let input = self.guard.child().stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.guard.kill();
    }
}

/// Says something to the test.
pub(crate) fn say(what: &Value) {
    println!("\n{MARK}{what}");
    std::io::stdout().flush().unwrap();
}

/// Waits until the test has no more use for us.
pub(crate) fn wait_for_the_end() {
    // The test keeps the other end as long as it wants us.
    let _ = std::io::stdin().read(&mut [0; 1]);
}

/// Not a test of its own: what actors do.
#[test]
fn play() {
    let Ok(part) = std::env::var(PART) else { return };
    let part: Value = serde_json::from_str(&part).unwrap();
    if part["waits"] == true {
        let _ = std::io::stdin().read(&mut [0; 1]);
    }
    crate::attacks::roles::play(&part);
}

/// A path of this program that every user can start: its own, else that of a copy.
pub(crate) fn for_everyone(program: &Path) -> PathBuf {
    static COPIES: OnceLock<Scratch> = OnceLock::new();
    const NOBODY_IN_PARTICULAR: u32 = 60_009;
    let mut trial = Command::new("test");
    trial.arg("-x").arg(program);
    let trial = as_user(NOBODY_IN_PARTICULAR, NOBODY_IN_PARTICULAR, trial).status();
    if trial.is_ok_and(|status| status.success()) {
        return program.to_owned();
    }
    let copies = COPIES.get_or_init(|| {
        let scratch = Scratch::within(&std::env::temp_dir());
        scratch.set_mode(0o755);
        scratch
    });
    let copy = copies.join(program.file_name().unwrap());
    if !copy.exists() {
        let arriving = copies.join(format!("{}", std::process::id()));
        std::fs::copy(program, &arriving).expect("there is room for a copy of the program");
        std::fs::rename(arriving, &copy).unwrap();
    }
    copy
}
