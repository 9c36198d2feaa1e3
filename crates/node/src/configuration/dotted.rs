//! Values by their dotted paths.

/// Puts a value at a path, or removes what is there.
pub(super) fn set(table: &mut toml::Table, path: &str, value: Option<toml::Value>) {
    match (path.split_once('.'), value) {
        (None, Some(value)) => {
            table.insert(path.to_owned(), value);
        }
        (None, None) => {
            table.remove(path);
        }
        (Some((first, rest)), value) => {
            let inner = table.entry(first).or_insert_with(|| toml::Table::new().into());
            if let Some(inner) = inner.as_table_mut() {
                set(inner, rest, value);
            }
        }
    }
}

/// The value at a path.
pub(super) fn lookup<'a>(table: &'a toml::Table, path: &str) -> Option<&'a toml::Value> {
    let mut parts = path.split('.');
    let mut value = table.get(parts.next()?)?;
    for part in parts {
        value = value.as_table()?.get(part)?;
    }
    Some(value)
}
