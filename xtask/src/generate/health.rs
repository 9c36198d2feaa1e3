//! Rules of health: `health.toml` becomes the list that the judge and all outputs loop over, the
//! enumeration of the messages, and a table of the documentation.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;

use super::{GenerateError, GeneratedFile, formatted};

const SOURCE: &str = "crates/schema/health.toml";
const RUST: &str = "crates/schema/src/fault/definitions.rs";
const MESSAGES: &str = "crates/wire/proto/telemetry.proto";
const PAGE: &str = "docs/health.md";
/// What begins and ends the lines that are made, in messages and in the page.
const MARKS: [(&str, &str, &str); 2] = [
    (MESSAGES, "  // From health.toml.", "  // End of these."),
    (PAGE, "<!-- From health.toml. -->", "<!-- End of these. -->"),
];
/// Columns that a line of a comment may have.
const MAX_COLUMNS: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definitions {
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    alert: Option<String>,
    #[serde(default)]
    alert_after_seconds: u64,
    words: String,
    doc: String,
    about: String,
    state: String,
    shape: String,
    #[serde(default)]
    reading: String,
    #[serde(default)]
    of: String,
    #[serde(default)]
    any_of: Vec<String>,
    r#while: Option<String>,
    after: Option<String>,
    #[serde(default)]
    beside: Vec<String>,
    #[serde(default)]
    counted_by_reader: bool,
    #[serde(default)]
    above: f64,
    #[serde(default)]
    rise: f64,
    #[serde(default)]
    within_seconds: u64,
    #[serde(default)]
    quiet_seconds: u64,
    #[serde(default)]
    hold_seconds: u64,
    ends: String,
    action: String,
}

/// Adds to `outputs` what is made of the rules. A file of which others make lines too is taken from there.
pub(super) fn add(root: &Path, outputs: &mut Vec<GeneratedFile>) -> Result<(), GenerateError> {
    let read = |path: &str| {
        let path = root.join(path);
        std::fs::read_to_string(&path).map_err(|source| GenerateError::Read { path, source })
    };
    let wrong = |reason: String| GenerateError::Metrics { path: SOURCE, reason };
    let definitions = toml::from_str::<Definitions>(&read(SOURCE)?);
    let rules = definitions.map_err(|error| wrong(error.to_string()))?.rule;
    let code = code(&rules).map_err(wrong)?;
    outputs.push(GeneratedFile { path: RUST.to_owned(), text: formatted(root, &code)? });
    for (path, begin, end) in MARKS {
        let lines = if path == PAGE { table(&rules) } else { numbers(&rules) };
        let made = outputs.iter_mut().find(|output| output.path == path);
        let text = made.as_ref().map_or_else(|| read(path), |output| Ok(output.text.clone()))?;
        let (before, rest) = text.split_once(&format!("{begin}\n")).unwrap_or((&text, ""));
        let (_, after) = rest
            .split_once(&format!("{end}\n"))
            .ok_or_else(|| wrong(format!("{path} has no line {begin:?} and {end:?} after it")))?;
        let text = format!("{before}{begin}\n{lines}{end}\n{after}");
        match made {
            Some(output) => output.text = text,
            None => outputs.push(GeneratedFile { path: path.to_owned(), text }),
        }
    }
    Ok(())
}

fn code(rules: &[Rule]) -> Result<String, String> {
    let mut variants = String::new();
    let mut entries = String::new();
    let mut all = String::new();
    for rule in rules {
        let kind = variant(&rule.name);
        write!(variants, "/// {}\n{kind},\n", rule.doc).expect("a string takes any text");
        write!(all, "Self::{kind},").expect("a string takes any text");
        entry(&mut entries, rule, &kind)?;
    }
    let count = rules.len();
    Ok(format!(
        "// Generated from {SOURCE} by `cargo xtask generate`. Do not edit.\n\n\
         use serde::{{Deserialize, Serialize}};\n\
         use super::rule::{{HealthRule, RuleSubject, Shape, Thresholds}};\n\
         use super::HealthState;\n\n\
         /// What can be wrong with a device or with a part of the machine.\n\
         #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]\n\
         #[cfg_attr(feature = \"json-schema\", derive(schemars::JsonSchema))]\n\
         #[serde(rename_all = \"snake_case\")]\npub enum FaultKind {{\n{variants}}}\n\n\
         impl FaultKind {{\n/// All of them. A kind's place is its number in messages.\n\
         pub const ALL: [Self; {count}] = [{all}];\n}}\n\n\
         /// Every rule, each at the place of its kind.\n#[rustfmt::skip]\n\
         pub static RULES: [HealthRule; {count}] = [\n{entries}];\n"
    ))
}

fn entry(code: &mut String, rule: &Rule, kind: &str) -> Result<(), String> {
    let Rule { name, words, reading, of, any_of, ends, action, .. } = rule;
    let Rule {
        alert_after_seconds, above, rise, within_seconds, quiet_seconds, hold_seconds, ..
    } = rule;
    let shape = match rule.shape.as_str() {
        "found" => "Found".to_owned(),
        "above" => format!("Above({reading:?})"),
        "below" => format!("Below({reading:?}, {of:?})"),
        "fell" => format!("Fell({reading:?})"),
        "rises" => format!("Rises({reading:?})"),
        "restarts" => format!("Restarts({reading:?})"),
        "includes" => format!("Includes({reading:?}, &{any_of:?})"),
        "lost" => format!("Lost({reading:?})"),
        "returns" => "Returns".to_owned(),
        "hangs" => "Hangs".to_owned(),
        other => return Err(format!("rule {name}: no shape {other:?}")),
    };
    let about = match rule.about.as_str() {
        "device" => "Device".to_owned(),
        "source" => "Source".to_owned(),
        part => format!("Part({part:?})"),
    };
    let state = variant(&rule.state);
    let alert = rule.alert.as_ref().unwrap_or(name);
    let only_by = match rule.shape.as_str() {
        "rises" if !any_of.is_empty() => format!("Some(({of:?}, &{any_of:?}))"),
        _ => "None".to_owned(),
    };
    let (only_while, only_after, beside) = (&rule.r#while, &rule.after, &rule.beside);
    let counted_by_reader = rule.counted_by_reader;
    writeln!(
        code,
        "HealthRule {{ kind: FaultKind::{kind}, name: {name:?}, alert: {alert:?}, alert_after_seconds: {alert_after_seconds}, words: {words:?}, \
         about: RuleSubject::{about}, state: HealthState::{state}, shape: Shape::{shape}, \
         only_while: {only_while:?}, only_after: {only_after:?}, only_by: {only_by}, beside: &{beside:?}, \
         counted_by_reader: {counted_by_reader}, thresholds: Thresholds {{ enabled: true, above: {above:?}, \
         rise: {rise:?}, within_seconds: {within_seconds}, quiet_seconds: {quiet_seconds}, \
         hold_seconds: {hold_seconds} }}, ends: {ends:?}, action: {action:?} }},"
    )
    .expect("a string takes any text");
    Ok(())
}

/// A name as one of a Rust enumeration.
fn variant(name: &str) -> String {
    let word = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect::<String>()
        })
    };
    name.split('_').map(word).collect()
}

fn numbers(rules: &[Rule]) -> String {
    let mut lines = String::new();
    for (place, rule) in rules.iter().enumerate() {
        for line in super::sensors::comment("//", &rule.doc, MAX_COLUMNS) {
            writeln!(lines, "  {line}").expect("a string takes any text");
        }
        let name = rule.name.to_uppercase();
        writeln!(lines, "  FAULT_KIND_{name} = {};", place + 1).expect("a string takes any text");
    }
    lines
}

fn table(rules: &[Rule]) -> String {
    let mut lines =
        String::from("\n| rule | of | state | found when | ends when |\n|---|---|---|---|---|\n");
    for rule in rules {
        let Rule { name, about, state, ends, .. } = rule;
        let about = about.replace('_', " ");
        writeln!(lines, "| [`{name}`](#{name}) | {about} | {state} | {} | {ends} |", found(rule))
            .expect("a string takes any text");
    }
    lines + "\n"
}

fn listed(values: &[String]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}

/// How a rule finds it, in words.
fn found(rule: &Rule) -> String {
    let Rule { reading, of, any_of, above, rise, within_seconds, hold_seconds, .. } = rule;
    let what = match rule.shape.as_str() {
        "found" if reading.is_empty() => "the driver no longer lists it".to_owned(),
        "found" => format!("`{reading}` stands still"),
        "above" => format!("`{reading}` is above {above}"),
        "below" => format!("`{reading}` is below `{of}`"),
        "fell" => format!("`{reading}` is below the most that was seen"),
        "rises" => format!("`{reading}` rises by {rise} within {within_seconds} s"),
        "restarts" => format!("`{reading}` goes down"),
        "includes" => {
            format!("`{reading}` is one of {}", listed(any_of))
        }
        "lost" => format!("`{reading}` is 0 and was not"),
        "returns" => "it is there again".to_owned(),
        _ => "its readings are not answered in time".to_owned(),
    };
    let only = rule.r#while.as_ref().map_or_else(String::new, |it| format!(" while `{it}` is 1"));
    let held = match hold_seconds {
        0 => String::new(),
        seconds => format!(", for {seconds} s"),
    };
    let after = rule.after.as_ref();
    let after = after.map_or_else(String::new, |it| format!(" and `{it}` was above 0 before"));
    let by = match rule.shape.as_str() {
        "rises" if !any_of.is_empty() => format!(" while `{of}` is one of {}", listed(any_of)),
        _ => String::new(),
    };
    what + &by + &only + &after + &held
}
