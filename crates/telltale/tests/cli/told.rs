//! What a runtime tells besides memory reaches a person and a script.

use telltale_harness::Scratch;
use telltale_runtime::{DeviceDescription, Options, Runtime};
use telltale_schema::snapshot::{MetricValue, Snapshot};

use crate::command::{said, telltale};

#[test]
fn operations_and_own_metrics_are_in_the_details_and_in_json() {
    let scratch = Scratch::new();
    scratch.set_mode(0o700);
    let directory = Some(scratch.path().to_owned());
    let runtime = Runtime::start(Options { directory, ..Options::new("told") });
    let device = runtime.open_device(DeviceDescription::default());
    device.count_operations(1234);
    let jobs = runtime.registry().counter("my_jobs_total", "Jobs done.", "", &[("queue", "a")]);
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
    let told = metrics.iter().find(|sample| sample.name == "my_jobs_total");
    assert_eq!(told.map(|sample| &sample.value), Some(&MetricValue::Counter(7)));
    drop(device);
}
