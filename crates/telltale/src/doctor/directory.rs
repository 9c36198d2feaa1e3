//! The directories in which processes leave ledgers and endpoints: those that are there, and the one
//! that a program of this user would take. Nothing is made.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, accessat};
use telltale_ledger::directory::{
    DirectoryEnvironment, DirectoryError, OVERFLOW_UID, Purpose, RuntimeDirectory,
};
use telltale_schema::quantity::bytes;
use telltale_schema::text::with_causes;

use super::finding::Finding;
use crate::arguments::LocationArguments;

/// Free bytes of a file system below which ledgers may not fit.
const LITTLE_BYTES: u64 = 16 << 20;

/// The mode in which an installation makes its directory.
const INSTALLED_MODE: u32 = 0o3777;

/// Makes the installed directory as the package does.
const INSTALL: &str = "sudo install -d -o telltale -g telltale -m 3777";

/// Checks the directories in which processes leave ledgers and endpoints.
pub(super) fn check(place: &LocationArguments, findings: &mut Vec<Finding>) {
    let root = place.root.as_deref().filter(|root| *root != Path::new("/"));
    let environment = DirectoryEnvironment::of_this_process();
    let explicit = place.runtime_dir.as_deref();
    let found = RuntimeDirectory::for_reading(explicit, root, &environment);
    let places = RuntimeDirectory::places_for_reading(explicit, root, &environment);
    if found.is_empty() {
        let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        findings.push(Finding::not_here(
            "directory",
            format!("there is none yet of {}; the first process makes one", places.join(", ")),
        ));
    }
    for directory in found {
        findings.push(match directory {
            Ok(directory) => readable(&directory),
            Err(error) => refused(&error),
        });
    }
    if root.is_none() {
        findings.extend(recording(explicit, &environment));
    }
}

fn readable(directory: &RuntimeDirectory) -> Finding {
    let path = directory.path().display();
    let free = rustix::fs::statvfs(directory.path())
        .map(|status| status.f_bavail.saturating_mul(status.f_frsize));
    match free {
        Ok(free) if free < LITTLE_BYTES => Finding::broken(
            "directory",
            format!("{path}: {} are free; processes that start are not accounted", bytes(free)),
            format!("df -h {path}"),
        )
        .mended_by("telltale smi --clean"),
        _ => Finding::works("directory", format!("{path}, kept by user {}", directory.owner())),
    }
}

fn refused(error: &DirectoryError) -> Finding {
    let path = match error {
        DirectoryError::Open { path, .. }
        | DirectoryError::Create { path, .. }
        | DirectoryError::Owner { path, .. }
        | DirectoryError::Nobody { path }
        | DirectoryError::WorldWritable { path, .. }
        | DirectoryError::NotPrivate { path, .. } => path,
    };
    let path = path.display();
    let remedy = match error {
        DirectoryError::Open { .. } if error.is_missing() => format!("mkdir -p -m 700 {path}"),
        DirectoryError::Open { .. } => format!("ls -ld {path}"),
        DirectoryError::Create { .. } => format!("mkdir -p -m 700 {path}"),
        DirectoryError::Owner { .. } | DirectoryError::Nobody { .. } => format!("{INSTALL} {path}"),
        DirectoryError::WorldWritable { .. } => format!("sudo chmod 3777 {path}"),
        DirectoryError::NotPrivate { .. } => format!("chmod 700 {path}"),
    };
    Finding::broken("directory", with_causes(error), remedy)
}

/// Where a program of this user would record; none where that goes without saying.
fn recording(explicit: Option<&Path>, environment: &DirectoryEnvironment) -> Option<Finding> {
    if environment.uid == OVERFLOW_UID {
        let what = "programs of user 65534 record nothing, since many users can share that number; \
                    run them as a user with a number of its own";
        return Some(Finding::partly("recording", what, "sudo useradd --system NAME"));
    }
    let named =
        explicit.is_some() || environment.socket_dir.as_ref().is_some_and(|it| !it.is_empty());
    let installed = &environment.installed;
    let path = match named {
        true => RuntimeDirectory::places_for_reading(explicit, None, environment).pop()?,
        false if !installed.exists() => return None,
        false => installed.clone(),
    };
    let shown = path.display();
    let directory = match RuntimeDirectory::open(&path, Purpose::Writing) {
        Ok(directory) => directory,
        // That it is refused to readers too was said already.
        Err(_) if RuntimeDirectory::open(&path, Purpose::Reading).is_err() => return None,
        Err(error) => {
            let remedy = format!("{INSTALL} {shown}");
            return Some(Finding::partly("recording", with_causes(&error), remedy));
        }
    };
    // "." asks about the directory that was opened, whatever has its path now.
    let access = Access::WRITE_OK | Access::EXEC_OK;
    if accessat(&directory, ".", access, AtFlags::EACCESS).is_err() {
        let what = match named {
            true => format!("programs of this user cannot write to {shown} and record nothing"),
            false => format!(
                "programs of this user cannot write to {shown} and record in a directory of their \
                 own, where the service does not look"
            ),
        };
        return Some(Finding::partly("recording", what, format!("{INSTALL} {shown}")));
    }
    let mode = std::fs::metadata(&path).ok()?.mode() & 0o7777;
    (!named && mode & INSTALLED_MODE != INSTALLED_MODE).then(|| {
        let what = format!(
            "{shown} has mode {mode:04o}: programs of other users record in directories of their \
             own, where the service does not look"
        );
        Finding::partly("recording", what, format!("{INSTALL} {shown}"))
    })
}

#[cfg(test)]
mod tests {
    use super::{recording, refused};
    use crate::doctor::finding::{Finding, FindingLevel};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use telltale_harness::Scratch;
    use telltale_ledger::directory::{DirectoryEnvironment, Purpose, RuntimeDirectory};

    fn environment(scratch: &Scratch, uid: u32) -> DirectoryEnvironment {
        DirectoryEnvironment {
            socket_dir: None,
            xdg_runtime_dir: None,
            uid,
            installed: scratch.join("tt"),
            temporary: scratch.path().to_owned(),
        }
    }

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn remedy(finding: &Finding) -> &str {
        &finding.remedy[0]
    }

    #[test]
    fn an_installed_directory_must_be_open_to_all_users() {
        let scratch = Scratch::new();
        let here = environment(&scratch, 7);
        assert!(recording(None, &here).is_none(), "nothing is installed");
        std::fs::create_dir(&here.installed).unwrap();
        for (mode, is_right) in [(0o3777, true), (0o1777, false), (0o755, false)] {
            set(&here.installed, mode);
            let found = recording(None, &here);
            assert_eq!(found.is_none(), is_right, "{mode:o}: {found:?}");
            if let Some(found) = found {
                assert_eq!(found.verdict, FindingLevel::Partly);
                assert!(found.what.contains(&format!("{mode:04o}")), "{found:?}");
                assert!(remedy(&found).ends_with(&here.installed.display().to_string()));
            }
        }
    }

    #[test]
    fn user_65534_records_nothing() {
        let scratch = Scratch::new();
        let found = recording(None, &environment(&scratch, 65_534)).unwrap();
        assert_eq!(found.verdict, FindingLevel::Partly, "{found:?}");
    }

    #[test]
    fn a_directory_that_is_refused_is_reported_with_the_command_that_mends_it() {
        let scratch = Scratch::new();
        let open = |name: &str| {
            let path = scratch.join(name);
            let error = RuntimeDirectory::open(&path, Purpose::Reading).unwrap_err();
            refused(&error)
        };
        assert!(remedy(&open("missing")).starts_with("mkdir "));
        std::fs::create_dir(scratch.join("wide")).unwrap();
        set(&scratch.join("wide"), 0o777);
        assert!(remedy(&open("wide")).starts_with("sudo chmod 3777 "));
        std::fs::write(scratch.join("file"), "").unwrap();
        assert!(remedy(&open("file")).starts_with("ls -ld "));
    }
}
