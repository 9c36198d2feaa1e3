//! Whether the owners of keys take values, and which of their own keys they do not know.

use std::ops::Range;

use telltale_query::nearest;
use toml::de::{DeTable, DeValue};

use super::Configuration;
use super::dotted::set;
use super::words::plain;

/// Whether a key's owner takes the value.
pub(super) fn check(path: &str, value: &toml::Value) -> Result<(), String> {
    if has_zero_byte(value) {
        return Err(String::from("it has a zero byte, which no path, name or address may have"));
    }
    let mut table = toml::Table::new();
    set(&mut table, path, Some(value.clone()));
    Configuration::of_table(&table).map(drop).map_err(|error| plain(error.message()))
}

fn has_zero_byte(value: &toml::Value) -> bool {
    match value {
        toml::Value::String(text) => text.contains('\0'),
        toml::Value::Array(items) => items.iter().any(has_zero_byte),
        toml::Value::Table(table) => table.values().any(has_zero_byte),
        _ => false,
    }
}

/// Where the key is that a value's owner does not know, such as one of an alert rule, and what was meant.
pub(super) fn unknown_key(table: &DeTable<'_>, message: &str) -> Option<(Range<usize>, String)> {
    let (_, rest) = message.split_once("unknown field `")?;
    let (name, expected) = rest.split_once('`')?;
    let known = || expected.split('`').skip(1).step_by(2);
    let hint = match nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    };
    Some((span_of(table, name)?, format!("unknown key `{name}`; {hint}")))
}

/// Where a key of this name is, at whatever depth.
fn span_of(table: &DeTable<'_>, name: &str) -> Option<Range<usize>> {
    table.iter().find_map(|(key, value)| match (key.get_ref() == name, value.get_ref()) {
        (true, _) => Some(key.span()),
        (false, DeValue::Table(inner)) => span_of(inner, name),
        (false, DeValue::Array(items)) => items.iter().find_map(|item| match item.get_ref() {
            DeValue::Table(inner) => span_of(inner, name),
            _ => None,
        }),
        _ => None,
    })
}
