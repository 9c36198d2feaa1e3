//! `telltale config`: whether the service's configuration makes sense, and what it is.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use telltale_node::configuration::{
    Configuration, ConfigurationRefusal, Effective, Layers, Origin, ValueKind, variable_of,
};

use crate::arguments::{ConfigArguments, ConfigCommand};
use crate::exit::{self, Failure, Status};
use crate::output::StandardOutput;

/// Runs the command.
pub(crate) fn run(arguments: &ConfigArguments) -> Result<Status, Failure> {
    match &arguments.command {
        ConfigCommand::Check { file, syntax_only } => check(file.as_deref(), *syntax_only),
        ConfigCommand::Show { serve, json } => {
            let effective = serve.layers().load().map_err(|error| Failure::because(&error))?;
            effective.remarks.iter().for_each(|remark| exit::tell(remark));
            let text = if *json { as_json(&effective) } else { as_text(&effective) };
            StandardOutput::detect().print(&text)?;
            Ok(Status::Fine)
        }
    }
}

/// Tells what is wrong with a file, or with everything that the service would read: each key by
/// itself, then all of them together, then what they name.
fn check(file: Option<&Path>, syntax_only: bool) -> Result<Status, Failure> {
    let output = StandardOutput::detect();
    let layers = match file {
        Some(path) => Layers::of_file(path),
        None => Layers::of_this_process(None, Vec::new()),
    };
    let files = layers.files();
    let effective = layers.load().map_err(|error| Failure::because(&error))?;
    effective.remarks.iter().for_each(|remark| exit::tell(remark));
    let mut refusals = effective.configuration.contradictions();
    if !syntax_only {
        refusals.extend(effective.configuration.unusable());
    }
    if !refusals.is_empty() {
        let lines: Vec<String> = refusals.iter().map(|one| refused(one, &effective)).collect();
        return Err(Failure::Message(lines.join("\n")));
    }
    if let Some(path) = file {
        output.print(&format!("{}: nothing is wrong\n", path.display()))?;
        return Ok(Status::Fine);
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let read = if names.is_empty() { "no file".to_owned() } else { names.join(", ") };
    output.print(&format!("nothing is wrong; read: {read}\n"))?;
    Ok(Status::Fine)
}

/// What is wrong, after the place of the key that it is about, where that was given at all.
fn refused(refusal: &ConfigurationRefusal, effective: &Effective) -> String {
    let origin = |wanted: &&str| {
        let (.., origin) = effective.values.iter().find(|(key, ..)| key == *wanted)?;
        (*origin != Origin::Default).then(|| format!("{origin}: {wanted}"))
    };
    let given = refusal.keys.iter().find_map(origin);
    let place = given.unwrap_or_else(|| refusal.keys.first().copied().unwrap_or("?").to_owned());
    format!("{place}: {}", refusal.why)
}

/// A line for each key, as a file would have it, and where its value comes from.
fn as_text(effective: &Effective) -> String {
    let line = |(key, value, _): &(String, Option<toml::Value>, _)| match value {
        Some(value) => format!("{key} = {value}"),
        None => format!("# {key} is not set"),
    };
    let lines: Vec<String> = effective.values.iter().map(line).collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default().min(60);
    let mut text = String::new();
    for (line, (.., origin)) in lines.iter().zip(&effective.values) {
        writeln!(text, "{line:width$}  # {origin}").expect("a String takes every write");
    }
    text
}

fn as_json(effective: &Effective) -> String {
    let keys = Configuration::keys();
    let all = effective.values.iter().map(|(key, value, origin)| {
        let kind = keys.iter().find(|one| one.path == *key).map(|one| word(one.kind));
        let variable = variable_of(key);
        json!({
            "key": key,
            "variable": variable,
            "kind": kind,
            "value": value,
            "origin": origin.to_string(),
        })
    });
    format!("{}\n", serde_json::Value::Array(all.collect()))
}

/// The word for a kind of value.
fn word(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Bool => "boolean",
        ValueKind::Integer => "integer",
        ValueKind::Float => "number",
        ValueKind::Text => "text",
        ValueKind::List => "list",
        ValueKind::Map => "table",
    }
}
