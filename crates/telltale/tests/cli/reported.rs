//! What a runtime reports besides memory reaches a person and a script.

use std::fs::File;
use std::process::Command;

use telltale_emulator::{Machine, MachineKind, MachineOptions};
use telltale_harness::{Scratch, as_user, needs_root};
use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_schema::snapshot::{MetricValue, Snapshot};

use crate::cli::command::{said, telltale};

#[test]
fn operations_and_own_metrics_are_in_the_details_and_in_json() {
    let scratch = Scratch::new();
    scratch.set_mode(0o700);
    let directory = Some(scratch.path().to_owned());
    let runtime = Runtime::start(Options { directory, ..Options::new("told") });
    let device = runtime.open_device(DeviceDescription::default());
    device.count_operations(1234);
    let jobs = runtime
        .registry()
        .counter("my_jobs_total")
        .help("Jobs done.")
        .label("queue", "a")
        .register();
    jobs.add(7);

    let smi =
        |form: &str| said(telltale().args(["smi", form, "--runtime-dir"]).arg(scratch.path()));
    let details = smi("-d").out;
    for (name, value) in
        [("telltale_process_operations_total", "1,234"), ("my_jobs_total{queue=\"a\"}", "7")]
    {
        let line = details.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in {details}"));
        assert!(line.trim_end().ends_with(value), "{line}");
    }
    let snapshot: Snapshot = serde_json::from_str(&smi("--json").out).unwrap();
    let metrics = &snapshot.processes[0].metrics;
    let reported = metrics.iter().find(|sample| sample.name == "my_jobs_total");
    assert_eq!(reported.map(|sample| &sample.value), Some(&MetricValue::Counter(7)));
    drop(device);
}

#[test]
fn processes_of_other_users_are_one_line_and_no_failure() {
    if !needs_root("telltale::cli::reported::processes_of_other_users") {
        return;
    }
    let scratch = Scratch::new();
    scratch.set_mode(0o755);
    let (root, run) = (scratch.join("m"), scratch.join("run"));
    let _machine = Machine::create(&root, MachineKind::N150, &MachineOptions::default()).unwrap();
    std::fs::create_dir(&run).unwrap();
    let runtime = Runtime::start(Options { directory: Some(run.clone()), ..Options::new("told") });
    let device = runtime.open_device(DeviceDescription::default());
    let as_stranger = |form: &[&str]| {
        // By its descriptor, because others may not reach the directory that it was built in.
        let mut command = Command::new("/proc/self/fd/0");
        command.stdin(File::open(env!("CARGO_BIN_EXE_telltale")).unwrap());
        command.arg("smi").args(form).arg("--root").arg(&root).arg("--runtime-dir").arg(&run);
        said(&mut as_user(61_003, 61_003, command))
    };
    for form in [&[][..], &["-d"]] {
        let said = as_stranger(form);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{said:?}");
        let about = |line: &&str| line.contains("another user") || line.contains("ermission");
        let lines: Vec<&str> = said.out.lines().filter(about).collect();
        let [line] = lines.as_slice() else { panic!("{said:?}") };
        assert!(line.starts_with("1 process of another user cannot be read"), "{line}");
        assert!(line.contains("run as root"), "{line}");
    }
    let snapshot: Snapshot = serde_json::from_str(&as_stranger(&["--json"]).out).unwrap();
    assert_eq!(snapshot.closed_processes, 1);
    drop(device);
}
