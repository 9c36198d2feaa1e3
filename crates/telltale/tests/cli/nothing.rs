//! No driver, no device, no right: one clear sentence each.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use telltale_harness::{Scratch, as_user, needs_root};

use crate::cli::command::{said, smi};

#[test]
fn a_machine_without_the_driver_is_reported_what_to_do() {
    let empty = Scratch::new();
    let words = ["no Tenstorrent driver", "install tt-kmd"];
    smi(empty.path(), &["-d"]).complains(2, &words);
    smi::<&str>(empty.path(), &[]).complains(2, &words);
}

#[test]
fn programs_get_their_format_even_when_there_is_nothing() {
    let empty = Scratch::new();
    let json = smi(empty.path(), &["--json"]);
    assert_eq!(json.status, Some(2));
    let value: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["devices"], serde_json::json!([]));
    assert_eq!(value["sources"][0]["errors"][0]["reason"], "missing");
    assert!(json.err.contains("install tt-kmd"), "{}", json.err);
    let csv = smi(empty.path(), &["--csv"]);
    assert_eq!((csv.status, csv.out.lines().count()), (Some(2), 1), "{csv:?}");
    assert!(csv.out.starts_with("taken_at_unix_ns,id,board_type,"), "{csv:?}");
}

#[test]
fn a_driver_without_a_device_is_another_matter() {
    let place = Scratch::new();
    fs::create_dir_all(place.join("sys/class/tenstorrent")).unwrap();
    fs::create_dir_all(place.join("sys/module/tenstorrent")).unwrap();
    fs::write(place.join("sys/module/tenstorrent/version"), "2.8.0\n").unwrap();
    smi::<&str>(place.path(), &[]).complains(2, &["driver is loaded", "lspci"]);
}

#[test]
fn a_root_that_cannot_be_used_is_named() {
    let place = Scratch::new();
    smi::<&str>(&place.join("nowhere"), &[]).complains(2, &["nowhere", "--root", "No such file"]);
    let file = place.join("file");
    fs::write(&file, "").unwrap();
    smi::<&str>(&file, &[]).complains(2, &["file", "--root", "Not a directory"]);
}

#[test]
fn missing_rights_are_named() {
    if !needs_root("telltale::cli::nothing::missing_rights_are_named") {
        return;
    }
    let place = Scratch::new();
    place.set_mode(0o755);
    let class = place.join("sys/class/tenstorrent");
    fs::create_dir_all(&class).unwrap();
    let as_stranger = |root: &Path| {
        // By its descriptor, because others may not reach the directory that it was built in.
        let mut command = Command::new("/proc/self/fd/0");
        command.stdin(File::open(env!("CARGO_BIN_EXE_telltale")).unwrap());
        command.arg("smi").arg("--root").arg(root);
        said(&mut as_user(61_003, 61_003, command))
    };
    as_stranger(place.path()).complains(2, &["driver is loaded"]);
    fs::set_permissions(&class, Permissions::from_mode(0o700)).unwrap();
    as_stranger(place.path()).complains(2, &["ermission denied", "right to read it"]);
    place.set_mode(0o700);
    as_stranger(place.path()).complains(2, &["Permission denied", "--root"]);
}
