//! A strict reader of Prometheus' text format 0.0.4 and of OpenMetrics 1.0.0, written from their
//! specifications, for tests of what is exposed. It accepts less than Prometheus does: what the
//! formats merely advise against is an error here, and so is a time of a sample.
//!
//! `promtool` is a second opinion, where it is installed.

mod line;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

/// A family of samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedFamily {
    /// Its name, as announced.
    pub name: String,
    /// The type announced.
    pub kind: String,
    /// The help announced, without its escapes.
    pub help: String,
    /// The unit announced, in OpenMetrics.
    pub unit: Option<String>,
    /// Its samples in the order of their lines.
    pub samples: Vec<ParsedSample>,
}

/// One line with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedSample {
    /// The name of this line, with its ending.
    pub name: String,
    /// Labels and values, without their escapes.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// Reads `text`, in OpenMetrics or in format 0.0.4.
///
/// # Errors
/// With the line and what is wrong with it.
pub fn parse(text: &str, open_metrics: bool) -> Result<Vec<ParsedFamily>, String> {
    let mut families: Vec<ParsedFamily> = Vec::new();
    let mut names = BTreeSet::new();
    let body = match (open_metrics, text.strip_suffix("# EOF\n")) {
        (true, Some(body)) => body,
        (true, None) => return Err("does not end in # EOF".to_owned()),
        (false, _) => text,
    };
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for (place, text) in body.split_terminator('\n').enumerate() {
        let wrong = |reason: String| format!("line {}: {reason}: {text:?}", place + 1);
        if let Some(announcement) = text.strip_prefix("# ") {
            announced(announcement, open_metrics, &mut families, &mut names).map_err(wrong)?;
        } else {
            let sample = line::sample(text).map_err(wrong)?;
            let family = families.last_mut().ok_or_else(|| wrong("no family yet".to_owned()))?;
            family.samples.push(sample);
        }
    }
    let mut sample_names = BTreeMap::new();
    for family in &families {
        rules::check(family, open_metrics)
            .map_err(|reason| format!("{}: {reason}", family.name))?;
        for sample in &family.samples {
            let owner = sample_names.entry(sample.name.clone()).or_insert_with(|| &family.name);
            if *owner != &family.name {
                return Err(format!("{} is in {} and in {owner}", sample.name, family.name));
            }
        }
    }
    Ok(families)
}

/// Takes a `# HELP`, `# TYPE` or `# UNIT` line, with which families begin in this order.
fn announced(
    line: &str,
    open_metrics: bool,
    families: &mut Vec<ParsedFamily>,
    names: &mut BTreeSet<String>,
) -> Result<(), String> {
    let mut words = line.splitn(3, ' ');
    let (Some(word), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
        return Err("is no announcement".to_owned());
    };
    if word == "HELP" {
        if !line::is_name(name) || !names.insert(name.to_owned()) {
            return Err("is not a new family's name".to_owned());
        }
        let help = line::unescaped(rest, open_metrics)?;
        families.push(ParsedFamily { name: name.to_owned(), help, ..ParsedFamily::default() });
        return Ok(());
    }
    let family = families.last_mut().filter(|family| family.name == name);
    let family = family.ok_or("does not belong to the family before it")?;
    match word {
        "TYPE" if family.kind.is_empty() => family.kind = rest.to_owned(),
        "UNIT" if open_metrics && family.unit.is_none() && !family.kind.is_empty() => {
            family.unit = Some(rest.to_owned());
        }
        _ => return Err("is an announcement that is not expected here".to_owned()),
    }
    Ok(())
}

/// What `promtool check metrics` says of `text`, which is in format 0.0.4; none where it is not
/// installed (Debian's package `prometheus` has it). Empty when it finds nothing.
///
/// # Panics
/// When it cannot be talked to.
pub fn promtool(text: &str) -> Option<String> {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match spawned {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        spawned => spawned.expect("promtool starts"),
    };
    let mut input = child.stdin.take().expect("standard input was asked for");
    input.write_all(text.as_bytes()).expect("promtool reads all of its input");
    drop(input);
    let output = child.wait_with_output().expect("promtool ends");
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    if said.is_empty() && !output.status.success() {
        said = format!("promtool ended with {}", output.status);
    }
    Some(said)
}
