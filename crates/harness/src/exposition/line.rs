//! One line with a value, taken apart.

use std::collections::BTreeMap;

use super::ParsedSample;

/// `name{label="value",…} value`, and nothing after it.
pub(super) fn sample(line: &str) -> Result<ParsedSample, String> {
    let end = line.find(['{', ' ']).ok_or("has no value")?;
    let (name, mut rest) = line.split_at(end);
    if !is_name(name) {
        return Err(format!("{name:?} is no name"));
    }
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("a label has no value")?;
            if !is_name(label) || label.starts_with("__") {
                return Err(format!("{label:?} is no label"));
            }
            let close = closing_quote(after).ok_or("a label's value has no end")?;
            let value = unescaped(&after[..close], true)?;
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("the label {label} is there twice"));
            }
            rest = &after[close + 1..];
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').ok_or("labels have no end")?;
    }
    let value = number(rest.strip_prefix(' ').ok_or("no space before the value")?)?;
    Ok(ParsedSample { name: name.to_owned(), labels, value })
}

pub(super) fn is_name(text: &str) -> bool {
    text.bytes().enumerate().all(|(place, byte)| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => true,
        b'0'..=b'9' => place > 0,
        _ => false,
    }) && !text.is_empty()
}

/// Where the first quote is that no backslash precedes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(place),
            _ => {}
        }
    }
    None
}

/// The text that `text` stands for. Quotes need a backslash where they are `quoted`.
pub(super) fn unescaped(text: &str, quoted: bool) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character.is_ascii_control() || (quoted && character == '"') {
            return Err(format!("{character:?} stands there bare"));
        }
        if character != '\\' {
            plain.push(character);
            continue;
        }
        plain.push(match characters.next() {
            Some('\\') => '\\',
            Some('n') => '\n',
            Some('"') if quoted => '"',
            other => return Err(format!("\\{other:?} is no escape")),
        });
    }
    Ok(plain)
}

/// A number as both formats have it.
pub(super) fn number(text: &str) -> Result<f64, String> {
    match text {
        "NaN" => return Ok(f64::NAN),
        "+Inf" => return Ok(f64::INFINITY),
        "-Inf" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte));
    let parsed = text.parse::<f64>().ok().filter(|number| plain && number.is_finite());
    parsed.ok_or_else(|| format!("{text:?} is no number, or a time follows it"))
}
