//! Whether JSON still has all that an older version had in it. Fields that came since are welcome.

use serde_json::Value;

/// Keys whose texts are made for people when they are shown, and may get better words.
const WORDS: [&str; 1] = ["text"];

/// Asserts that `found` has all that `expected` has.
#[track_caller]
pub(crate) fn assert_fits(expected: &Value, found: &Value, of: &str) {
    if let Some(why) = misfit(expected, found, of) {
        panic!("{why}");
    }
}

/// The first place at which something is missing or another.
fn misfit(expected: &Value, found: &Value, at: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().find_map(|(key, value)| {
            let inner = format!("{at}.{key}");
            match found.get(key) {
                Some(_) if WORDS.contains(&key.as_str()) => None,
                Some(found) => misfit(value, found, &inner),
                None => Some(format!("{inner} is gone; it was {value}")),
            }
        }),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let pairs = items.iter().zip(others).enumerate();
            pairs
                .into_iter()
                .find_map(|(place, (one, two))| misfit(one, two, &format!("{at}[{place}]")))
        }
        _ if expected == found => None,
        _ => Some(format!("{at} was {expected} and is {found}")),
    }
}
