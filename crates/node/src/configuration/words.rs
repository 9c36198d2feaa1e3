//! What is wrong with a value, in words for a person: what serde says has names of Rust's types in it.

use telltale_query::nearest;
use telltale_schema::health::RULES;

/// Digits of a number that are shown one by one; more are a number that was not meant.
const MAX_DIGITS: usize = 20;

/// What an unknown rule of health is reported with.
const NO_RULE: &str = "there is no health rule \"";

/// What serde expects, and what to write for it.
const EXPECTED: [(&str, &str); 12] = [
    ("u8", "a whole number of 0 or more"),
    ("u16", "a whole number of 0 or more"),
    ("u32", "a whole number of 0 or more"),
    ("u64", "a whole number of 0 or more"),
    ("usize", "a whole number of 0 or more"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a nonzero u32", "a whole number of 1 or more"),
    ("a nonzero u64", "a whole number of 1 or more"),
    ("a nonzero usize", "a whole number of 1 or more"),
    ("a sequence", "a list"),
];

/// A message of serde or of a key's owner, for a person.
pub(super) fn plain(message: &str) -> String {
    let message = shortened(message.trim());
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some((before, _)) = message.split_once(", expected any valid TOML value") {
        return format!("{before}, which is too large");
    }
    if let Some(hint) = rule_hint(&message) {
        return format!("{message}; did you mean {hint:?}?");
    }
    let Some((before, expected)) = message.rsplit_once(", expected ") else { return message };
    match EXPECTED.iter().find(|(name, _)| *name == expected) {
        Some((_, words)) => format!("{before}, expected {words}"),
        None => message,
    }
}

/// The rule of health that was meant by one that is not there, if its message names none.
fn rule_hint(message: &str) -> Option<&'static str> {
    let name = message.strip_prefix(NO_RULE)?.split('"').next()?;
    let is_hinted = message.contains("did you mean");
    nearest(name, RULES.iter().map(|rule| rule.name)).filter(|_| !is_hinted)
}

/// The message with long numbers as powers of ten.
fn shortened(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(from.len());
        let (digits, after) = from.split_at(end);
        text.push_str(before);
        match digits.parse::<f64>() {
            Ok(number) if digits.len() > MAX_DIGITS && number.is_finite() => {
                text.push_str(&format!("{number:e}"));
                rest = after.strip_prefix(".0").unwrap_or(after);
            }
            _ => {
                text.push_str(digits);
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn types_are_words_and_long_numbers_are_short() {
        for (message, words) in [
            (
                "invalid value: integer `-1`, expected u64".to_owned(),
                "`-1`, expected a whole number of 0 or more",
            ),
            (format!("`{}`, expected f64", 3e200), "`3e200`, expected a number"),
            (format!("`{}.0` is too much", 1e308), "`1e308` is too much"),
            ("missing field `name`".to_owned(), "the key `name` is missing"),
            (
                "there is no health rule \"fan_faild\"; x".to_owned(),
                "; x; did you mean \"fan_failed\"?",
            ),
        ] {
            let said = plain(&message);
            assert!(said.ends_with(words), "{said}");
        }
    }
}
