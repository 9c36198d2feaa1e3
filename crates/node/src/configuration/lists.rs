//! Which item of a list of tables is wrong, such as one of many rules, and which of its keys.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::check::{check, unknown_key};

/// The key by which the others mean something.
const NAME: &str = "name";

/// What is wrong with the list at `path`, and where; nothing where it is no list of tables, or right.
pub(super) fn fault(
    file: &DeTable<'_>,
    path: &str,
    value: &toml::Value,
) -> Option<(Range<usize>, String)> {
    let items = value.as_array()?;
    let message = check(path, value).err()?;
    let is_of_first = |count: &usize| {
        check(path, &items[..*count].to_vec().into()).is_err_and(|error| error == message)
    };
    // What is said of the whole list is said of each beginning with the item that it is about.
    let counts: Vec<usize> = (1..=items.len()).collect();
    let place = counts.partition_point(|count| !is_of_first(count));
    let item = items.get(place)?.as_table()?;
    let located = located(file, path)?.get(place)?;
    let DeValue::Table(keys) = located.get_ref() else { return None };
    let without = |name: &str| {
        let mut list = items[..=place].to_vec();
        list[place].as_table_mut()?.remove(name);
        check(path, &list.into()).err()
    };
    let Some(name) = wrong_key(item, &message, without) else {
        return Some((located.span(), message));
    };
    let span = keys.iter().find(|(key, _)| key.get_ref() == name).map(|(key, _)| key.span())?;
    let message = unknown_key(keys, &message).map_or(message, |(_, message)| message);
    let is_named = message.contains(&format!("`{name}`"));
    Some((span, if is_named { message } else { format!("`{name}`: {message}") }))
}

/// The key without which nothing is wrong, or something else is.
fn wrong_key<'a>(
    item: &'a toml::Table,
    message: &str,
    without: impl Fn(&str) -> Option<String>,
) -> Option<&'a str> {
    let others = item.keys().map(String::as_str).filter(|name| *name != NAME);
    let names: Vec<&str> = others.chain(item.contains_key(NAME).then_some(NAME)).collect();
    let mends = |name: &&&str| without(name).is_none();
    let changes = |name: &&&str| without(name).is_some_and(|other| other != message);
    names.iter().find(mends).or_else(|| names.iter().find(changes)).copied()
}

/// The list at a path of a file.
fn located<'t, 'f>(file: &'t DeTable<'f>, path: &str) -> Option<&'t toml::de::DeArray<'f>> {
    let (above, name) =
        path.rsplit_once('.').map_or((None, path), |(above, name)| (Some(above), name));
    let mut table = file;
    for part in above.into_iter().flat_map(|above| above.split('.')) {
        match table.get(part)?.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return None,
        }
    }
    match table.get(name)?.get_ref() {
        DeValue::Array(items) => Some(items),
        _ => None,
    }
}
