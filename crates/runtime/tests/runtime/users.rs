//! Several users and one installed directory: who can read whom, and who can take whose name.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use crate::runtime::roles::{Player, program, role};
use telltale_harness::{Scratch, as_user, needs_root};

const SERVICE: u32 = 61_000;
const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;

/// A directory as an installation makes it: the service's, mode 3777.
fn installed(scratch: &Scratch) -> PathBuf {
    scratch.set_mode(0o755);
    let directory = scratch.join("tt");
    std::fs::create_dir(&directory).unwrap_or_else(|error| panic!("no directory: {error}"));
    chown(&directory, Some(SERVICE), Some(SERVICE)).expect("root may");
    let mode = std::fs::Permissions::from_mode(0o3777);
    std::fs::set_permissions(&directory, mode).expect("root may");
    directory
}

/// An installed directory, and a process of [`ALICE`] that waits before it records in it.
struct Installed {
    directory: PathBuf,
    program: PathBuf,
    alice: Player,
    _scratch: Scratch,
}

impl Installed {
    fn with_alice() -> Self {
        let scratch = Scratch::new();
        let directory = installed(&scratch);
        let program = program(&scratch);
        let command = role(&program, "record", &directory);
        let mut alice = Player::start(&mut as_user(ALICE, ALICE, command));
        alice.says("waits");
        Self { directory, program, alice, _scratch: scratch }
    }
}

#[test]
fn users_cannot_read_each_other_and_the_service_reads_all() {
    if !needs_root("runtime::users_cannot_read_each_other_and_the_service_reads_all") {
        return;
    }
    let Installed { directory, program, mut alice, _scratch } = Installed::with_alice();
    alice.go_on();
    assert_eq!(alice.says("recorded"), "[]");

    let mut modes: Vec<_> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .map(|status| (status.mode() & 0o7777, status.uid(), status.gid()))
        .collect();
    modes.sort_unstable();
    assert_eq!(modes, [(0o640, ALICE, SERVICE), (0o660, ALICE, SERVICE)]);

    let look = |uid| {
        let command = role(&program, "look", &directory);
        let mut player = Player::start(&mut as_user(uid, uid, command));
        let found = player.says("found");
        player.end();
        found
    };
    assert_eq!(look(BOB), "[Err(PermissionDenied), Err(PermissionDenied)]");
    assert_eq!(look(SERVICE), "[Ok(()), Ok(())]");
    assert_eq!(look(ALICE), "[Ok(()), Ok(())]");
    assert_eq!(alice.end(), "");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn a_name_taken_by_another_user_is_reported_and_avoided() {
    if !needs_root("runtime::a_name_taken_by_another_user_is_reported_and_avoided") {
        return;
    }
    let Installed { directory, program: _, mut alice, _scratch } = Installed::with_alice();
    let plain = directory.join(format!("metrics_{}.sock", alice.id()));
    let _squatter = UnixListener::bind(&plain).unwrap();
    chown(&plain, Some(BOB), Some(SERVICE)).unwrap();
    alice.go_on();
    assert_eq!(alice.says("recorded"), "[\"endpoint_name\"]");
    let own = format!("metrics_{}-", alice.id());
    let names = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let second = names.map(|name| name.into_string().unwrap()).find(|name| name.starts_with(&own));
    assert!(second.is_some());
    let reported = alice.end();
    assert!(reported.starts_with("telltale: ") && reported.contains("user 61002"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    assert!(plain.exists(), "the other user's entry is not ours to remove");
}
