//! Layers of configuration, and what is wrong with them, for a person.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::dotted::lookup;
use super::{Argument, Configuration, Layers, Origin, variable_of};
use telltale_harness::Scratch;

/// Layers of one file with this text and these variables.
fn layers(place: &Scratch, text: &str, variables: &[(&str, &str)]) -> Layers {
    let path = place.join("t.toml");
    fs::write(&path, text).unwrap();
    let os = |text: &str| OsString::from(text);
    let variables = variables.iter().map(|(name, value)| (os(name), os(value))).collect();
    Layers { file: Some(path), variables, arguments: Vec::new() }
}

#[test]
fn arguments_hide_variables_which_hide_files_which_hide_defaults() {
    let place = Scratch::new();
    let text = "interval_seconds = 2\nlog_level = \"debug\"\nroot = \"/a\"\n";
    let variables = [("TELLTALE_LOG_LEVEL", "warn"), ("TELLTALE_ROOT", "/b"), ("OTHER", "x")];
    let mut layers = layers(&place, text, &variables);
    layers.arguments.push(Argument { name: "--root", key: "root", value: "/c".into() });
    let effective = layers.load().unwrap();
    let configuration = &effective.configuration;
    assert_eq!(configuration.interval_seconds, 2.0);
    assert_eq!(configuration.log_level.name(), "warn");
    assert_eq!(configuration.root, PathBuf::from("/c"));
    let origin = |path: &str| {
        let found = effective.values.iter().find(|(key, ..)| key == path).unwrap();
        found.2.clone()
    };
    assert_eq!(origin("interval_seconds"), Origin::File(place.join("t.toml"), 1));
    assert_eq!(origin("log_level"), Origin::Variable("TELLTALE_LOG_LEVEL".to_owned()));
    assert_eq!(origin("root"), Origin::Argument("--root"));
    assert_eq!(origin("state_dir"), Origin::Default);
    assert!(effective.remarks.is_empty());
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let cases = [
        ("interval = 1", "1:1: unknown key `interval`"),
        ("\n\n  intervall_seconds = 1", "3:3: unknown key `intervall_seconds`; did you mean"),
        ("interval_seconds = 0", "1:20: 0 is not from 0.1 to 3600 seconds"),
        ("root = 7", "1:8: invalid type: integer `7`"),
        ("[otlp]\nendpoint = \"node7:4317\"", "2:12: \"node7:4317\" is no receiver for OTLP"),
        ("log_level = \"loud\"", "1:13: unknown variant `loud`, expected one of `error`"),
        (
            "[http]\nconnections = 0",
            "2:15: invalid value: integer `0`, expected a whole number of 1 or more",
        ),
        ("[root]\na = 1", "1:2: `root` is a value, not a table"),
        (
            "[[alerts.rule]]\nname = \"a\"\n\n[[alerts.rule]]\nname = \"b\"\nconditon = \"leak\"",
            "6:1: unknown key `conditon`; did you mean `condition`?",
        ),
        ("[histroy]\nenabled = true", "1:2: unknown key `histroy`; did you mean `history`?"),
        ("runtime_dir = \"\\u0000x\"", "1:15: it has a zero byte"),
        ("[grpc]\nlisten = [\"unix:/a\\u0000b\"]", "2:10: "),
        ("[[alerts.rule]]\nname = \"a\\u0000\"", "2:1: "),
        ("[nonsense]\na = 1", "1:2: unknown key `nonsense`; `telltale config show`"),
        ("root = ", "1:8: "),
        ("root = \"/\"\nroot = \"/\"", "2:1: duplicate key"),
    ];
    for (text, expected) in cases {
        let place = Scratch::new();
        let error = layers(&place, text, &[]).load().unwrap_err().to_string();
        let reported = error.split_once("t.toml:").unwrap().1;
        assert!(reported.starts_with(expected), "{text:?}: {reported:?}");
    }
}

#[test]
fn a_mistake_in_one_of_many_rules_is_reported_at_its_key() {
    let before = "[[health.rule]]\nname = \"vanished\"\nenabled = true\n\n[[health.rule]]\n";
    let whole = "expected a whole number of 0 or more";
    let long = format!("name = \"pcie_width_below_slot\"\nhold_seconds = {}.0", 1e300);
    for (rule, expected) in [
        (
            "name = \"nvlink_down\"\nhold_seconds = -1",
            &["7:1: `hold_seconds`: ", "`-1`", whole][..],
        ),
        (&long, &["7:1: `hold_seconds`: ", "`1e300`", whole]),
        ("hold_secnds = 1\nname = \"nvlink_down\"", &["6:1: unknown key", "mean `hold_seconds`?"]),
        ("name = \"device_vanished\"", &["6:1: `name`: ", "did you mean \"vanished\"?"]),
        ("enabled = true\nname = \"fan_faild\"", &["7:1: `name`: ", "mean \"fan_failed\"?"]),
        ("enabled = true\nname = \"vanished\"", &["7:1: `name`: ", "vanished is set twice"]),
        ("name = \"fan_failed\"\nrise = 1", &["7:1: ", "has no `rise`; it has enabled"]),
        ("name = \"xid_error\"\nwithin_seconds = 0", &["7:1: ", "`within_seconds` must be"]),
        ("enabled = true", &["5:1: the key `name` is missing"]),
    ] {
        let place = Scratch::new();
        let text = format!("{before}{rule}\n");
        let error = layers(&place, &text, &[]).load().unwrap_err().to_string();
        let reported = error.split_once("t.toml:").unwrap().1;
        assert!(reported.starts_with(expected[0]) && reported.len() < 200, "{rule}: {reported}");
        assert!(expected.iter().all(|words| reported.contains(words)), "{rule}: {reported}");
    }
}

#[test]
fn everything_unknown_in_a_file_is_reported_at_once() {
    let place = Scratch::new();
    let error = layers(&place, "a = 1\nroot = \"/\"\nb = 2\n", &[]).load().unwrap_err();
    assert_eq!(error.to_string().lines().count(), 2, "{error}");
}

#[test]
fn every_wrong_value_of_a_file_is_reported_at_once_in_its_order() {
    let place = Scratch::new();
    let text = "interval_seconds = 0.01\nb = 2\n[history]\nwrite_seconds = 0\n[grpc]\nlisten = \
                [\"127.0.0.1:1\",\n  \"nowhere\"]\n[http]\nlistn = []\n";
    let error = layers(&place, text, &[]).load().unwrap_err().to_string();
    let reported: Vec<_> =
        error.lines().map(|line| line.split_once("t.toml:").unwrap().1).collect();
    let expected = [
        "1:20: 0.01 is not from 0.1 to 3600 seconds",
        "2:1: unknown key `b`",
        "4:17: 0 is not from 1 to 60 seconds",
        "6:10: \"nowhere\" is no address",
        "9:1: unknown key `http.listn`",
    ];
    assert_eq!(reported.len(), expected.len(), "{error}");
    for (reported, expected) in reported.iter().zip(expected) {
        assert!(reported.starts_with(expected), "{reported:?}: {expected:?}");
    }
}

#[test]
fn variables_and_arguments_are_checked_by_themselves() {
    let place = Scratch::new();
    let cases = [
        ("TELLTALE_INTERVAL_SECONDS", "fast", "\"fast\" is no number"),
        ("TELLTALE_INTERVAL_SECONDS", "0", "0 is not from"),
        ("TELLTALE_LOG_LEVEL", "loud", "unknown variant"),
    ];
    for (name, value, expected) in cases {
        let error = layers(&place, "", &[(name, value)]).load().unwrap_err().to_string();
        assert!(error.starts_with(&format!("the variable {name} is wrong: {expected}")), "{error}");
    }
    let remarks = layers(&place, "", &[("TELLTALE_LOG_LEVL", "debug")]).load().unwrap().remarks;
    assert_eq!(
        remarks,
        ["nothing reads the variable TELLTALE_LOG_LEVL: is it TELLTALE_LOG_LEVEL?"]
    );
    let others = [("TELLTALE_DISABLED", "1"), ("TELLTALE_NOBODY_KNOWS_IT", "1")];
    assert!(layers(&place, "", &others).load().unwrap().remarks.is_empty());
}

#[test]
fn the_usual_files_are_read_where_they_are() {
    let place = Scratch::new();
    let home = place.path().to_str().unwrap();
    let os = |text: &str| OsString::from(text);
    let of = |name: &str| Layers { variables: vec![(os(name), os(home))], ..Layers::default() };
    let has = |layers: &Layers, path: &str| layers.files().contains(&place.join(path));
    for (name, path) in
        [("XDG_CONFIG_HOME", "telltale/telltale.toml"), ("HOME", ".config/telltale/telltale.toml")]
    {
        assert!(!has(&of(name), path));
        fs::create_dir_all(place.join(path).parent().unwrap()).unwrap();
        fs::write(place.join(path), "interval_seconds = 5").unwrap();
        assert!(has(&of(name), path));
        assert_eq!(of(name).load().unwrap().configuration.interval_seconds, 5.0);
    }
    let named = Layers { file: Some(place.join("none")), ..Layers::default() };
    assert!(named.load().unwrap_err().to_string().starts_with("cannot read "));
}

#[test]
fn the_defaults_are_a_configuration_and_every_key_has_one_variable() {
    let keys = Configuration::keys();
    let mut variables: Vec<String> = keys.iter().map(|key| variable_of(&key.path)).collect();
    assert!(variables.contains(&"TELLTALE_INTERVAL_SECONDS".to_owned()));
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), keys.len());
    let read: Configuration = Configuration::default().table().try_into().unwrap();
    assert_eq!(read, Configuration::default());
}

#[test]
fn a_change_that_needs_a_restart_is_named() {
    let old = Configuration::default();
    let mut new = old.clone();
    new.interval_seconds = 3.0;
    assert_eq!(old.taking_over(&new), (new.clone(), Vec::new()));
    new.root = PathBuf::from("/a");
    new.state_dir = Some(PathBuf::from("/b"));
    new.http.hosts = vec![String::from("node7")];
    new.http.series.process_pids = true;
    new.token_file = Some(PathBuf::from("/t"));
    let left = ["root", "state_dir", "http.hosts", "http.series.process_pids"];
    let (taken, named) = old.taking_over(&new);
    assert_eq!(named, left);
    let expected = Configuration {
        interval_seconds: 3.0,
        token_file: Some(PathBuf::from("/t")),
        ..Configuration::default()
    };
    assert_eq!(taken, expected);
    // It is not taken over the second time either, and there is nothing to say once it is taken back.
    assert_eq!(taken.taking_over(&new), (expected.clone(), left.map(String::from).to_vec()));
    assert_eq!(taken.taking_over(&expected), (expected.clone(), Vec::new()));
    // A token that came while it ran does not go while it runs.
    let without = Configuration { interval_seconds: 3.0, ..Configuration::default() };
    assert_eq!(taken.taking_over(&without), (expected, vec![String::from("token_file")]));
}

#[test]
fn the_documentation_has_a_row_for_each_key() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let page = fs::read_to_string(page).unwrap();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.contains("| `TELLTALE_")).map(cells);
    let rows: Vec<Vec<String>> = rows.collect();
    // The ends of a line are two empty cells.
    let is_whole = |row: &Vec<String>| row.len() == 6 && !row[4].is_empty();
    assert!(rows.iter().all(is_whole), "each has a key, a variable, a default and a meaning");
    let rows: Vec<String> = rows.iter().map(|row| row[1..4].join(" | ")).collect();
    let defaults = Configuration::default().table();
    let expected = Configuration::keys().into_iter().map(|key| {
        let default = lookup(&defaults, &key.path).map(|value| format!("`{value}`"));
        let variable = variable_of(&key.path);
        format!("`{}` | `{variable}` | {}", key.path, default.unwrap_or_default())
    });
    let expected: Vec<String> = expected.collect();
    let missing: Vec<_> = expected.iter().filter(|row| !rows.contains(row)).collect();
    let superfluous: Vec<_> = rows.iter().filter(|row| !expected.contains(row)).collect();
    assert!(missing.is_empty() && superfluous.is_empty(), "{missing:#?} {superfluous:#?}");
}
