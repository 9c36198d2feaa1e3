//! How a run ends: its exit status, its restarts, and what is said of them.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;
use telltale_harness::{as_user, needs_root, python_with};

use crate::train::fixture::Place;

#[test]
fn the_exit_status_is_that_of_the_worker_that_failed_first() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
        ("[ $RANK = 1 ] && exit 5; exec sleep 600", 5),
    ] {
        let ended = Place::new().run(&["--nproc", "2", "--", "sh", "-c", script]);
        assert_eq!(ended.code, Some(code), "{script}: {ended:?}");
        assert_eq!(ended.errors.is_empty(), code == 0, "{script}: {ended:?}");
    }
}

#[test]
fn all_workers_are_restarted_until_no_restart_is_left() {
    let place = Place::new();
    let script =
        "echo $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS >> attempts; exit 4";
    let ended = place.run(&["--max-restarts", "2", "--", "sh", "-c", script]);
    assert_eq!(ended.code, Some(4));
    assert_eq!(place.read("attempts"), "0 of 2\n1 of 2\n2 of 2\n");
    let report = ended.errors;
    assert!(
        report.contains("telltale: failed after") && report.contains("2 restarts of 2"),
        "{report}"
    );
    for attempt in ["attempt 1, after", "attempt 2, after", "attempt 3, after"] {
        assert!(report.contains(attempt), "{report}");
    }
    assert_eq!(report.matches("exit code 4").count(), 5, "two at once, three at the end: {report}");
}

#[test]
fn a_job_that_recovers_is_well_and_says_what_happened() {
    let script = "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 7";
    let arguments = ["--nproc=2", "--max_restarts=3", "--json", "--", "sh", "-c", script];
    let ended = Place::new().run(&arguments);
    assert_eq!(ended.code, Some(0));
    let report = ended.errors.lines().last().expect("a report");
    let report: Value = serde_json::from_str(report).expect("the report is JSON");
    assert_eq!((&report["outcome"], &report["restarts"]), (&"finished".into(), &1.into()));
    let failure = &report["failures"][0];
    assert_eq!((&failure["end"], &failure["exit_code"]), (&"exit code 7".into(), &7.into()));
    assert!(failure["after_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{report}");
}

#[test]
fn the_last_line_of_a_traceback_is_in_the_report() {
    if python_with("train::exits::the_last_line_of_a_traceback", "sys").is_none() {
        return;
    }
    let place = Place::new();
    let script =
        "import os\nif os.environ['RANK'] == '1':\n    raise ValueError('no such batch')\n";
    std::fs::write(place.path("train.py"), script).expect("a script");
    let ended = place.run(&["--nproc-per-node", "2", "train.py", "--lr", "1"]);
    assert_eq!(ended.code, Some(1));
    let report = ended.errors.lines().last().expect("a report");
    assert!(report.contains("rank 1 on"), "{report}");
    assert!(report.ends_with("failed: exit code 1: ValueError: no such batch"), "{report}");
}

#[test]
fn the_last_of_an_option_that_is_repeated_counts() {
    let ended =
        Place::new().run(&["--nproc", "3", "--nproc", "1", "--", "sh", "-c", "exit $WORLD_SIZE"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn the_interpreter_is_that_of_the_environment_whose_program_was_started() {
    let place = Place::new();
    std::fs::write(place.path("train.py"), "").expect("a script");
    std::fs::create_dir_all(place.path("environment/bin")).expect("a directory");
    std::fs::write(place.path("environment/pyvenv.cfg"), "").expect("a file");
    let python = place.path("environment/bin/python3");
    std::fs::write(&python, "#!/bin/sh\necho \"$0 $*\"\n").expect("an interpreter");
    std::fs::set_permissions(&python, Permissions::from_mode(0o755)).expect("a permission");
    let program = place.path("environment/bin/telltale");
    symlink(env!("CARGO_BIN_EXE_telltale"), &program).expect("a link");
    let run = |called: &str, variable: &str, value: &str| {
        let mut command = place.command(called);
        let output = command.args(["train", "train.py"]).env(variable, value).output();
        let output = output.expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let of_environment = (Some(0), format!("{} -u train.py\n", python.display()));
    let path = std::env::var("PATH").expect("programs are searched for");
    let path = format!("{path}:{}", place.path("environment/bin").display());
    for (called, variable, value) in [
        (&*program.to_string_lossy(), "NOTHING", ""),
        ("./environment/bin/telltale", "PYTHON_EXEC", ""),
        ("telltale", "PATH", &path),
    ] {
        assert_eq!(run(called, variable, value), of_environment, "{called}");
    }
    let named = run("./environment/bin/telltale", "PYTHON_EXEC", "/bin/echo");
    assert_eq!(named, (Some(0), "-u train.py\n".to_owned()));
    let missing = place.command("./environment/bin/telltale");
    let missing = { missing }.args(["train", "train.py"]).env("PYTHON_EXEC", "/none").output();
    let missing = missing.expect("the program runs");
    let text = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(2), "{text}");
    assert!(text.contains("there is no /none; install Python 3"), "{text}");
}

#[test]
fn user_65534_trains_and_a_user_without_an_id_is_refused() {
    if !needs_root("train::exits::user_65534_trains") {
        return;
    }
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_telltale");
    let mut command = place.command(program);
    command.args(["train", "--nproc", "2", "--", "true"]).current_dir("/");
    command.env_remove("XDG_RUNTIME_DIR");
    let unprivileged = as_user(65_534, 65_534, command).output().expect("the program runs");
    assert_eq!(unprivileged.status.code(), Some(0), "{unprivileged:?}");
    let mut unnamed = place.command("unshare");
    let unnamed = unnamed.args(["--user", program, "train", "true"]).output().expect("it runs");
    let text = String::from_utf8_lossy(&unnamed.stderr);
    assert_eq!(unnamed.status.code(), Some(2), "{text}");
    assert!(text.contains("unshare --user --map-root-user"), "{text}");
}

#[test]
fn a_script_whose_name_does_not_say_so_is_named_with_what_runs_it() {
    let place = Place::new();
    std::fs::write(place.path("tool"), "print('hello')\n").expect("a script");
    let refused = place.run(&["tool"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for expected in ["write ./tool", "--run-path"] {
        assert!(refused.errors.contains(expected), "{refused:?}");
    }
}

#[test]
fn what_cannot_run_is_refused_with_what_to_write() {
    for (arguments, code, expected) in [
        (&["none.py"][..], 2, "there is no script none.py"),
        (&["--", "no-such-program"], 2, "is in none of the directories of PATH"),
        (&["/etc/passwd"], 2, "write --run-path before it if it is a Python script"),
        (&["/etc"], 2, "/etc is a directory; give the script in it"),
        (&[""], 64, "SCRIPT is empty"),
        (&["--nproc", "many", "true"], 64, "auto, gpu or cpu"),
        (&["--numa-binding=node", "true"], 64, "numactl"),
        (
            &["--rdzv-backend", "etcd-v2", "--nnodes", "2", "true"],
            64,
            "telltale coordinator --etcd",
        ),
        (&["--redirects", "3", "true"], 64, "--log-dir DIR"),
        (&["--tee", "4", "true"], 64, "--tee 4: write 0"),
        (&["--nnodes", "2", "true"], 64, "--rdzv-endpoint HOST:29400"),
        (&["--nnodes", "3:2", "true"], 64, "MIN:MAX"),
        (
            &["--nnodes=2", "--rdzv-endpoint=here:99999", "true"],
            64,
            "here:99999: \"99999\" is no port",
        ),
        (&["--no-such-option", "true"], 64, "--no-such-option"),
        (&["--lr", "1", "train.py"], 64, "options of the script are behind its name"),
        (&["--local-ranks-filter=7", "true"], 64, "their local ranks are 0 to 0"),
        (&["--standalone", "--nnodes", "2", "true"], 64, "leave out one of them"),
        (&["--rdzv-conf", "nonsense", "true"], 64, "--rdzv-conf nonsense: it has no value"),
        (&["--master-port", "65530", "true"], 64, "or less"),
        (&["--log-dir", "/proc/logs", "true"], 2, "--log-dir: /proc/logs cannot be made"),
    ] {
        let ended = Place::new().run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.errors.contains(expected), "{arguments:?}: {ended:?}");
    }
}
