//! Generated files are fresh, and the generators refuse what they must.

use std::path::Path;
use std::process::Command;

use telltale_harness::{Scratch, skip};
use telltale_schema::health::FaultKind;
use xtask::generate::{self, GeneratedFile, metrics};
use xtask::repository;
use xtask::tidy::sizes::MAX_FILE_LINES;

/// rustfmt is a component that a minimal Rust installation lacks.
fn needs_rustfmt(test: &str) -> bool {
    let present = Command::new("rustfmt")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !present {
        skip(test, "needs rustfmt (rustup component add rustfmt)");
    }
    present
}

#[test]
fn the_repository_s_generated_files_are_fresh() {
    if !needs_rustfmt("xtask::generate::the_repository_s_generated_files_are_fresh") {
        return;
    }
    let root = repository::root();
    let outputs = generate::outputs(&root).unwrap();
    assert!(outputs.len() >= 2);
    let stale = generate::stale(&root, &outputs);
    assert!(stale.is_empty(), "run `cargo xtask generate`; stale: {stale:?}");
    // What comes from .proto files is one file a package, as its generator writes it.
    let ours = |path: &str| path.ends_with(".rs") && !path.contains("/generated/");
    for output in outputs.iter().filter(|output| ours(&output.path)) {
        let lines = output.text.lines().count();
        assert!(lines <= MAX_FILE_LINES, "{}: {lines} lines; split it", output.path);
    }
}

#[test]
fn a_changed_or_missing_output_is_stale_until_written() {
    let scratch = Scratch::new();
    let outputs = [GeneratedFile { path: "docs/a.md".to_owned(), text: "new\n".to_owned() }];
    assert_eq!(generate::stale(scratch.path(), &outputs), ["docs/a.md"]);
    assert_eq!(generate::write(scratch.path(), &outputs).unwrap(), ["docs/a.md"]);
    assert!(generate::stale(scratch.path(), &outputs).is_empty());
    std::fs::write(scratch.join("docs/a.md"), "edited by hand\n").unwrap();
    assert_eq!(generate::stale(scratch.path(), &outputs), ["docs/a.md"]);
}

/// A right definition, with the lines that `with` starts replaced by `with`.
fn definition(with: &[&str]) -> String {
    let mut text = String::from("[[metric]]\n");
    for line in [
        "name = 'telltale_device_power_watts'",
        "unit = 'watts'",
        "kind = 'gauge'",
        "scope = 'device'",
        "labels = ['device']",
        "help = 'Power.'",
        "since = '0.1.0'",
        "absent_when = 'unknown'",
    ] {
        let key = line.split('=').next().expect("a line has a key");
        let replaced = with.iter().find(|other| other.starts_with(key)).unwrap_or(&line);
        text.push_str(replaced);
        text.push('\n');
    }
    text
}

/// The numbers in the first column of a table, which follows these words.
fn numbers_after(page: &str, words: &str) -> Vec<String> {
    let (_, rest) = page.split_once(words).expect("the page has these words");
    let rows = rest.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
    let first = |row: &str| row.split('|').nth(1).unwrap_or_default().to_owned();
    let cells: Vec<String> = rows.map(first).collect();
    let numbers = cells.iter().flat_map(|cell| cell.split(|letter: char| !letter.is_ascii_digit()));
    numbers.filter(|number| !number.is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_page_of_health_says_what_each_xid_that_is_judged_means() {
    let page = std::fs::read_to_string(repository::root().join("docs/health.md")).unwrap();
    let (_, judged) = FaultKind::XidError.rule().only_by.unwrap();
    let mut explained = numbers_after(&page, "### xid_error");
    explained.sort_by_key(|number| number.parse::<u32>().unwrap());
    assert_eq!(explained, judged);
    let others = numbers_after(&page, "counted and not judged:");
    assert!(others.iter().all(|number| !judged.contains(&number.as_str())), "{others:?}");
}

#[test]
fn a_right_definition_passes() {
    assert_eq!(metrics::check(&definition(&[])).unwrap(), 1);
    let counter = ["name = 'telltale_device_trips_total'", "kind = 'counter'", "unit = 'count'"];
    assert_eq!(metrics::check(&definition(&counter)).unwrap(), 1);
}

#[test]
fn a_definition_that_breaks_a_rule_is_refused() {
    let cases: [(&[&str], &str); 14] = [
        (&["name = 'device_power_watts'"], "must start with telltale_"),
        (&["name = 'telltale_device__power_watts'"], "lower-case words"),
        (&["name = 'telltale_devicePower_watts'"], "lower-case words"),
        (&["name = 'telltale_device_power'"], "must say its unit"),
        (&["kind = 'counter'"], "ends in _total"),
        (&["name = 'telltale_device_power_watts_total'"], "only a counter"),
        (&["kind = 'info'", "unit = 'none'"], "ends in _info"),
        (&["labels = []"], "its scope's labels [\"device\"] must come first"),
        (&["scope = 'process'", "labels = ['user', 'process']"], "must come first"),
        (&["labels = ['device', 'address']"], "must not be used"),
        (&["labels = ['device', 'device']"], "twice"),
        (&["help = 'Power'"], "full stop"),
        (&["since = 'soon'"], "version"),
        (&["unit = 'furlongs'"], "unknown variant"),
    ];
    for (change, expected) in cases {
        let error = metrics::check(&definition(change)).unwrap_err().to_string();
        assert!(error.contains(expected), "{change:?} gave {error}");
    }
    let twice = definition(&[]) + &definition(&[]);
    assert!(metrics::check(&twice).unwrap_err().to_string().contains("defined twice"));
}

#[test]
fn proto_files_become_one_rust_file_a_package() {
    if !needs_rustfmt("xtask::generate::proto_files_become_one_rust_file_a_package") {
        return;
    }
    let scratch = Scratch::new();
    lay_out(scratch.path());
    let proto = scratch.join("crates/wire/proto/sample.proto");
    std::fs::write(
        &proto,
        "syntax = \"proto3\";\npackage sample.v1;\n// One reading.\nmessage Reading { uint64 bytes = 1; }\n",
    )
    .unwrap();
    let outputs = generate::outputs(scratch.path()).unwrap();
    let made = outputs
        .iter()
        .find(|output| output.path == "crates/wire/src/generated/sample_v1.rs")
        .expect("one file for the package");
    assert!(made.text.starts_with("// Generated from crates/wire/proto"));
    assert!(made.text.contains("pub struct Reading"), "{}", made.text);
    assert!(
        made.text.contains("pub mod reading {\n        pub const BYTES: u32 = 1;"),
        "{}",
        made.text
    );

    std::fs::write(&proto, "syntax = \"proto3\";\nmessage {").unwrap();
    let error = generate::outputs(scratch.path()).unwrap_err();
    assert!(error.to_string().contains("do not compile"), "{error}");
}

const STUB_TEMPLATE: &str = "crates/python/types.pyi";

#[test]
fn a_template_of_types_without_a_mark_is_refused() {
    if !needs_rustfmt("xtask::generate::a_template_of_types_without_a_mark_is_refused") {
        return;
    }
    let scratch = Scratch::new();
    lay_out(scratch.path());
    assert!(generate::outputs(scratch.path()).is_ok());
    let only_one = "    # The fields of devices.\n";
    std::fs::write(scratch.join(STUB_TEMPLATE), only_one).unwrap();
    let refused = generate::outputs(scratch.path()).unwrap_err().to_string();
    assert!(refused.contains("# The fields of processes."), "{refused}");
}

fn lay_out(root: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        let parent = path.parent().expect("all are in directories");
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .expect("a scratch directory can be written");
    };
    write(metrics::SOURCE, &definition(&[]));
    write("crates/schema/sensors.toml", "sensor = []\n");
    write("crates/schema/health.toml", "rule = []\n");
    write("docs/health.md", "<!-- From health.toml. -->\n<!-- End of these. -->\n");
    for part in ["device", "errors", "link", "nvlink", "power"] {
        let path = format!("crates/schema/src/snapshot/{part}.rs");
        write(&path, "// Nothing between marks.\n");
    }
    write("crates/wire/src/telemetry/decode/device.rs", "// Nothing between marks.\n");
    write("docs/query.md", "Nothing between marks.\n");
    write(STUB_TEMPLATE, "    # The fields of devices.\n    # The fields of processes.\n");
    write("deploy/grafana/telltale.json", include_str!("../../deploy/grafana/telltale.json"));
    let proto = "syntax = \"proto3\";\npackage telemetry.v1;\nmessage Sensors {}\n\
                 enum FaultKind {\n  FAULT_KIND_UNSPECIFIED = 0;\n  // From health.toml.\n  // End of these.\n}\n";
    write("crates/wire/proto/telemetry.proto", proto);
}
