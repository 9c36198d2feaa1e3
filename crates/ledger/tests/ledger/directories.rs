//! Which directory is chosen, which are refused, and whose names may be replaced.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::ledger::machine::{Place, device};
use telltale_harness::{Scratch, needs_root};
use telltale_ledger::directory::{
    DirectoryEnvironment, DirectoryError, EntryKind, Purpose, RuntimeDirectory, ledger_name,
};
use telltale_ledger::layout::header;
use telltale_ledger::{CreateError, Ledger};
use telltale_schema::memory::MemoryKind;

fn environment(scratch: &Scratch) -> DirectoryEnvironment {
    DirectoryEnvironment {
        socket_dir: None,
        xdg_runtime_dir: Some(scratch.join("xdg").into()),
        uid: rustix::process::geteuid().as_raw(),
        installed: scratch.join("installed"),
        temporary: scratch.path().to_path_buf(),
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_first_fit_directory_is_chosen() {
    let scratch = Scratch::new();
    let mut environment = environment(&scratch);
    let chosen = |explicit: Option<&Path>, environment: &DirectoryEnvironment| {
        let writing = RuntimeDirectory::for_writing(explicit, environment).unwrap();
        let reading = RuntimeDirectory::for_reading(explicit, None, environment);
        let mut looked_at = reading.iter().map(|one| one.as_ref().unwrap().path());
        assert!(looked_at.any(|path| path == writing.path()), "readers look where writers write");
        writing.path().strip_prefix(scratch.path()).unwrap().to_str().unwrap().to_owned()
    };
    assert!(RuntimeDirectory::for_reading(None, None, &environment).is_empty());

    let private = format!("telltale-{}", environment.uid);
    assert_eq!(chosen(None, &environment), private);
    let mode = fs::metadata(scratch.join(&private)).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o700);

    fs::create_dir(scratch.join("xdg")).unwrap();
    assert_eq!(chosen(None, &environment), "xdg/telltale");
    fs::create_dir(scratch.join("installed")).unwrap();
    assert_eq!(chosen(None, &environment), "installed");
    // Those that fell back to a private one, because they could not write here, are found too.
    let all = RuntimeDirectory::for_reading(None, None, &environment);
    let all: Vec<_> = all.iter().map(|one| one.as_ref().unwrap().path()).collect();
    let expected =
        [scratch.join("installed"), scratch.join("xdg/telltale"), scratch.join(&private)];
    assert_eq!(all, expected);
    environment.socket_dir = Some(scratch.join("variable").into());
    let missing = RuntimeDirectory::for_writing(None, &environment);
    assert!(matches!(missing, Err(DirectoryError::Open { .. })), "a named one is not made");
    fs::create_dir(scratch.join("variable")).unwrap();
    assert_eq!(chosen(None, &environment), "variable");
    fs::create_dir(scratch.join("explicit")).unwrap();
    assert_eq!(chosen(Some(&scratch.join("explicit")), &environment), "explicit");

    fs::create_dir_all(scratch.join("machine/run/tt")).unwrap();
    let root = scratch.join("machine");
    let emulated = RuntimeDirectory::for_reading(None, Some(&root), &environment);
    let [Ok(emulated)] = emulated.as_slice() else { panic!("{emulated:?}") };
    assert_eq!(emulated.path(), root.join("run/tt"));
}

#[test]
fn directories_that_others_could_abuse_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.join("directory");
    fs::create_dir(&path).unwrap();
    let open = || RuntimeDirectory::open(&path, Purpose::Writing);
    set_mode(&path, 0o777);
    assert!(matches!(open(), Err(DirectoryError::WorldWritable { mode: 0o777, .. })));
    set_mode(&path, 0o1777);
    let own = open().unwrap();
    assert_eq!((own.ledger_mode(), own.endpoint_mode()), (0o600, 0o600));
    assert!(!own.is_installed());
    set_mode(&path, 0o3777);
    let installed = open().unwrap();
    assert_eq!((installed.ledger_mode(), installed.endpoint_mode()), (0o640, 0o660));
    assert!(installed.is_installed());
    let link = scratch.join("link");
    symlink(&path, &link).unwrap();
    let through_link = RuntimeDirectory::open(&link, Purpose::Writing);
    assert!(matches!(through_link, Err(DirectoryError::Open { .. })));

    // A private directory that lets others in is not private.
    let environment = environment(&scratch);
    let private = scratch.join(format!("telltale-{}", environment.uid));
    fs::create_dir(&private).unwrap();
    set_mode(&private, 0o755);
    let refused = RuntimeDirectory::for_writing(None, &environment);
    assert!(matches!(refused, Err(DirectoryError::NotPrivate { mode: 0o755, .. })));
}

#[test]
fn another_user_s_directory_is_refused_unless_it_is_an_installed_one() {
    const TEST: &str =
        "ledger::directories::another_user_s_directory_is_refused_unless_it_is_an_installed_one";
    if !needs_root(TEST) {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.join("directory");
    fs::create_dir(&path).unwrap();
    chown(&path, Some(61_001), Some(61_001)).unwrap();
    set_mode(&path, 0o755);
    let open = |purpose| RuntimeDirectory::open(&path, purpose);
    assert!(matches!(open(Purpose::Writing), Err(DirectoryError::Owner { owner: 61_001, .. })));
    assert!(open(Purpose::Reading).is_ok(), "root may look anywhere");
    set_mode(&path, 0o3777);
    assert!(open(Purpose::Writing).is_ok());
    chown(&path, Some(65_534), None).unwrap();
    set_mode(&path, 0o3777);
    assert!(matches!(open(Purpose::Reading), Err(DirectoryError::Nobody { .. })));
}

#[test]
fn a_ledger_gets_the_mode_that_its_directory_asks_for() {
    for (directory_mode, file_mode) in [(0o700, 0o600), (0o3777, 0o640)] {
        let scratch = Scratch::new();
        scratch.set_mode(directory_mode);
        let place = Place::within(scratch);
        let ledger = place.ledger();
        let status = place.directory.entry_status(ledger.file_name()).unwrap();
        assert_eq!(status.mode, file_mode);
        assert!(status.is_regular_file && !status.is_socket);
    }
}

#[test]
fn a_leftover_of_an_earlier_image_of_this_process_is_replaced() {
    let place = Place::new();
    let sample = place.sample();
    let identity = place.owner().identity;
    let name = ledger_name(identity.pid, identity.start_time_ticks, None);
    // What exec leaves: the same identity.
    fs::write(place.path(&name), &sample).unwrap();
    let ledger = place.ledger();
    assert_eq!(ledger.file_name(), name);
    assert!(place.reader(&name).read().unwrap().usage.is_empty());
}

#[test]
fn a_second_ledger_of_one_process_does_not_take_the_first_one_s_name() {
    let place = Place::new();
    let first = place.ledger();
    let second = place.ledger();
    assert_ne!(first.file_name(), second.file_name());
    assert_eq!(place.directory.list().unwrap().ledgers.len(), 2);
    let third = Ledger::create(&place.directory, place.owner());
    assert!(matches!(third, Err(CreateError::NameTaken { .. })));
    drop(first);
    assert_eq!(place.directory.list().unwrap().ledgers.len(), 1);
}

#[test]
fn a_leftover_from_before_the_last_boot_is_replaced() {
    let place = Place::new();
    let mut sample = place.sample();
    sample[header::BOOT_ID] ^= 1;
    sample[header::PID_NAMESPACE] ^= 1;
    let identity = place.owner().identity;
    let name = ledger_name(identity.pid, identity.start_time_ticks, None);
    fs::write(place.path(&name), &sample).unwrap();
    assert_eq!(place.ledger().file_name(), name);
}

#[test]
fn a_living_process_s_name_is_left_alone_and_the_namespace_reports_the_two_apart() {
    let place = Place::new();
    let mut other_container = place.owner();
    other_container.identity.pid_namespace += 1;
    let other = Ledger::create(&place.directory, other_container).unwrap();
    let slot = other.add_device(&device(0)).unwrap();
    other.recorder().allocated(slot, MemoryKind::Dram, 9);

    let ours = place.ledger();
    assert_ne!(ours.file_name(), other.file_name());
    let listed = place.directory.list().unwrap().ledgers;
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|entry| matches!(entry.kind, EntryKind::Ledger { .. })));
    let namespaces: Vec<_> = listed.iter().map(|entry| entry.pid_namespace).collect();
    assert!(namespaces.contains(&Some(place.owner().identity.pid_namespace)));
    assert_eq!(place.reader(other.file_name()).read().unwrap().usage[0].2.live_bytes, 9);
}

#[test]
fn names_taken_by_what_is_no_ledger_are_reported() {
    let place = Place::new();
    let identity = place.owner().identity;
    for namespace in [None, Some(identity.pid_namespace)] {
        let name = ledger_name(identity.pid, identity.start_time_ticks, namespace);
        fs::create_dir(place.path(&name)).unwrap();
    }
    let error = Ledger::create(&place.directory, place.owner()).unwrap_err();
    assert!(matches!(error, CreateError::NameTaken { .. }), "{error}");
}

#[test]
fn a_listing_reports_ours_from_others() {
    let place = Place::new();
    for name in ["metrics_7.sock", "ledger_7_1.tt", "ledger_5_1-9.tt", "note.txt", "ledger_x.tt"] {
        fs::write(place.path(name), "").unwrap();
    }
    let listing = place.directory.list().unwrap();
    let names: Vec<_> = listing.ledgers.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["ledger_5_1-9.tt", "ledger_7_1.tt"]);
    assert_eq!((listing.endpoints.len(), listing.others, listing.truncated), (1, 2, false));
}
