//! Whatever lies under a region's name costs one error: no crash, no wait, no growth.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use telltale_harness::{Scratch, as_user, needs_root};
use telltale_ledger::region::{
    DecodeError, INIT_STATE_READY, LAYOUTS, LayoutVariant, MAX_REGION_BYTES, MAX_REGIONS,
    RegionReadError, RegionReading, decode, file_name, read, scan,
};

use crate::region::samples::{ID, NOW, make};

/// In a child: the directory that it shall read as another user.
const READ_AS_OTHER: &str = "TELLTALE_TEST_REGION_DIRECTORY";

fn error_of(directory: &Path) -> RegionReadError {
    read(directory, ID, NOW).expect_err("there is no region")
}

fn with_content(content: &[u8]) -> RegionReadError {
    let scratch = Scratch::new();
    fs::write(scratch.join(file_name(ID)), content).expect("the scratch directory is writable");
    error_of(scratch.path())
}

fn unsupported(error: &RegionReadError) -> Option<(Option<u32>, u64)> {
    match error {
        RegionReadError::Decode {
            source: DecodeError::Unsupported { version, size_bytes },
            ..
        } => Some((*version, *size_bytes)),
        _ => None,
    }
}

#[test]
fn truncated_and_foreign_contents_are_unsupported() {
    let check = |content: &[u8], version| {
        let size_bytes = u64::try_from(content.len()).expect("a length is a size");
        assert_eq!(unsupported(&with_content(content)), Some((version, size_bytes)));
    };
    check(b"\x01", None);
    check(b"\x01\0\0\0", Some(1));
    check(&[0x41; 9280], Some(0x4141_4141));
    let mut region = vec![0; 9280];
    region[0] = 1;
    check(&region[..9279], Some(1));
    check(&region[..8576], Some(1));
    let never = |error| {
        matches!(error, RegionReadError::Decode { source: DecodeError::NeverInitialised, .. })
    };
    assert!(never(with_content(b"")));
    assert!(never(with_content(&[0; 8576])));
}

#[test]
fn a_huge_file_is_not_copied() {
    let scratch = Scratch::new();
    let file = fs::File::create(scratch.join(file_name(ID))).expect("a sample can be made");
    let size_bytes = 1 << 40;
    file.set_len(size_bytes).expect("a sparse file takes no space");
    assert_eq!(unsupported(&error_of(scratch.path())), Some((Some(0), size_bytes)));
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let check = |place: fn(&Path)| {
        let scratch = Scratch::new();
        place(&scratch.join(file_name(ID)));
        let error = error_of(scratch.path());
        assert!(matches!(error, RegionReadError::NotARegularFile { .. }), "{error:?}");
    };
    check(|path| fs::create_dir(path).expect("a directory can be made"));
    check(|path| symlink("/dev/zero", path).expect("a link can be made"));
    check(|path| drop(UnixListener::bind(path).expect("a socket can be bound")));
    check(|path| {
        let made = Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo is part of coreutils").success());
    });
}

#[test]
fn a_file_cut_and_grown_while_it_is_read_costs_an_error_at_most() {
    let scratch = Scratch::new();
    let path = make(scratch.path(), ID, LayoutVariant::V3, "total.dram=5 process.0.pid=1");
    let whole = fs::read(&path).expect("the sample exists");
    let file = fs::File::options().write(true).open(&path).expect("the sample is writable");
    let reads = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for size_bytes in [0, 100, 4096, 8575, 9280, 1 << 30].into_iter().cycle() {
                file.set_len(size_bytes).expect("a sparse file takes no space");
                file.set_len(0).expect("a file can be cut");
                file.write_all_at(&whole, 0).expect("the sample is writable");
                if reads.load(Ordering::Relaxed) >= 5000 {
                    return;
                }
            }
        });
        while reads.fetch_add(1, Ordering::Relaxed) < 5000 {
            match read(scratch.path(), ID, NOW) {
                Ok(reading) => assert_eq!(reading.region.version, 3),
                Err(RegionReadError::Decode { .. } | RegionReadError::SizeChanges { .. }) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_region_that_is_gone_is_gone() {
    let scratch = Scratch::new();
    assert!(matches!(error_of(scratch.path()), RegionReadError::Vanished { .. }));
    assert!(matches!(error_of(&scratch.join("no-directory")), RegionReadError::Vanished { .. }));
    assert!(scan(&scratch.join("no-directory"), NOW).is_err());
}

#[test]
fn one_bad_entry_does_not_hide_the_others() {
    let scratch = Scratch::new();
    make(scratch.path(), 7, LayoutVariant::V3, "total.dram=5");
    make(scratch.path(), 9, LayoutVariant::V1, "");
    fs::write(scratch.join(file_name(8)), b"garbage").expect("the directory is writable");
    fs::write(scratch.join("tt_device_x_memory"), b"").expect("the directory is writable");
    fs::write(scratch.join("something_else"), b"").expect("the directory is writable");
    let found = scan(scratch.path(), NOW).expect("the directory can be listed");
    let short = |entry: &Result<RegionReading, RegionReadError>| match entry {
        Ok(reading) => reading.name_id.to_string(),
        Err(error) => error.to_string().split(':').next().unwrap_or_default().to_owned(),
    };
    let shown: Vec<String> = found.regions.iter().map(short).collect();
    assert_eq!(shown, ["7", "tt_device_8_memory", "9", "tt_device_x_memory"]);
    assert!(found.left_out.is_empty() && !found.entries_left_out);
}

#[test]
fn more_regions_than_the_limit_are_counted_by_owner() {
    let scratch = Scratch::new();
    let path = |id: usize| scratch.join(file_name(u64::try_from(id).expect("a small number")));
    for id in 0..MAX_REGIONS + 3 {
        fs::write(path(id), b"").expect("the directory is writable");
    }
    let own = fs::metadata(path(0)).expect("it was made").uid();
    let found = scan(scratch.path(), NOW).expect("the directory can be listed");
    assert_eq!((found.regions.len(), found.left_out), (MAX_REGIONS, [(own, 3)].into()));
    // Many names of one file are that file, once.
    for id in 1..MAX_REGIONS + 3 {
        fs::remove_file(path(id)).expect("it was made");
        fs::hard_link(path(0), path(id)).expect("the directory is writable");
    }
    let found = scan(scratch.path(), NOW).expect("the directory can be listed");
    assert_eq!((found.regions.len(), found.left_out.len()), (1, 0));
}

#[test]
fn one_users_many_files_keep_no_other_users_from_being_read() {
    const NAME: &str = "hostile::one_users_many_files_keep_no_other_users_from_being_read";
    if !needs_root(NAME) {
        return;
    }
    let scratch = Scratch::new();
    for id in 0..1100 {
        let path = scratch.join(file_name(id));
        fs::write(&path, b"").expect("the directory is writable");
        chown(&path, Some(61_001), None).expect("we are root");
    }
    // Of two users, who have few, and behind all others by their names.
    for (id, user) in [(5000, 61_002), (5001, 61_002), (6000, 61_003)] {
        let path = make(scratch.path(), id, LayoutVariant::V3, "total.dram=5");
        chown(path, Some(user), None).expect("we are root");
    }
    let found = scan(scratch.path(), NOW).expect("the directory can be listed");
    let read = found.regions.iter().flatten().map(|one| one.name_id).collect::<Vec<_>>();
    assert_eq!(read, [5000, 5001, 6000]);
    assert_eq!(found.regions.len(), MAX_REGIONS);
    assert_eq!(found.left_out, [(61_001, 1103 - 1024)].into());
}

#[test]
fn a_name_that_is_no_text_is_kept_as_it_is() {
    let scratch = Scratch::new();
    let name = OsStr::from_bytes(b"tt_device_\xff\"\\_memory");
    fs::write(scratch.join(name), b"").expect("the directory is writable");
    let found = scan(scratch.path(), NOW).expect("the directory can be listed");
    let [Err(error)] = &found.regions[..] else { panic!("{:?}", found.regions) };
    assert_eq!(error.name(), name);
    let words = "tt_device_\\xff\\\"\\\\_memory: not a name that a region's writer gives";
    assert!(error.to_string().starts_with(words), "{error}");
}

#[test]
fn another_users_region_is_permission_denied() {
    let name = "another_users_region_is_permission_denied";
    if let Some(directory) = std::env::var_os(READ_AS_OTHER) {
        let error = error_of(Path::new(&directory));
        assert!(matches!(error, RegionReadError::PermissionDenied { .. }), "{error:?}");
        return;
    }
    if !needs_root(name) {
        return;
    }
    let scratch = Scratch::new();
    scratch.set_mode(0o755);
    let path = make(scratch.path(), ID, LayoutVariant::V3, "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    // The other user may be unable to reach the target directory, so it runs a copy.
    let program = scratch.join("reader");
    let itself = std::env::current_exe().expect("a test knows its own program");
    fs::copy(itself, &program).expect("the scratch directory is writable");
    let mut command = Command::new(&program);
    command
        .arg(format!("region::hostile::{name}"))
        .arg("--exact")
        .env(READ_AS_OTHER, scratch.path());
    let output = as_user(12_345, 12_345, command).current_dir("/").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(
        size in prop_oneof![
            4 => (0..LAYOUTS.len()).prop_map(|index| LAYOUTS[index].size_bytes),
            1 => 0..MAX_REGION_BYTES,
        ],
        version in prop_oneof![4 => 0_u32..6, 1 => any::<u32>()],
        init_state in prop_oneof![Just(INIT_STATE_READY), any::<u32>()],
        fill in prop_oneof![Just(Vec::new()), proptest::collection::vec(any::<u8>(), 1..512)],
    ) {
        let mut bytes: Vec<u8> = fill.iter().copied().cycle().take(size).collect();
        bytes.resize(size, 0);
        let mut put = |at: usize, value: u32| {
            if let Some(field) = bytes.get_mut(at..at + 4) {
                field.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(0, version);
        if version == 4 {
            put(8536, init_state);
        }
        if let Ok(region) = decode(&bytes, NOW) {
            assert!(region.processes.iter().all(|row| !row.name.contains(char::is_control)));
            assert!(region.totals.sum() <= 6 << 62);
        }
    }
}
