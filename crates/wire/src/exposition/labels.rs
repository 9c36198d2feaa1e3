//! Labels, written out once and used by every sample that has them.

/// Some labels of a sample as they stand between its braces. A sample's labels may be in several
/// of these, so that those of a process or a device are escaped once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels {
    /// `name="value",name="value"`, escaped.
    text: String,
}

/// A label that no exposition may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Its name is not made of letters, digits and underscores, or begins with a digit or with
    /// the two underscores that Prometheus keeps for itself.
    #[error("{name:?} is not a label's name; use letters, digits and underscores")]
    Name {
        /// The name.
        name: String,
    },
}

impl Labels {
    /// These labels. One without a value is left out, which means the same to Prometheus.
    ///
    /// # Errors
    /// When a name is none. No value is refused: see [`Self::push`].
    pub fn new<'l>(
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
    ) -> Result<Self, LabelError> {
        let mut written = Self::default();
        for (name, value) in labels {
            written.push(name, value)?;
        }
        Ok(written)
    }

    /// Adds a label, unless it has no value. Backslashes, quotes and ends of lines are escaped; any
    /// other control character becomes U+FFFD, because some parsers take it for an end.
    ///
    /// # Errors
    /// When the name is none.
    pub fn push(&mut self, name: &str, value: &str) -> Result<(), LabelError> {
        if !is_label_name(name) {
            return Err(LabelError::Name { name: name.to_owned() });
        }
        if value.is_empty() {
            return Ok(());
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(name);
        self.text.push_str("=\"");
        escape(value, true, &mut self.text);
        self.text.push('"');
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The labels as they stand between braces.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Writes `text` so that it stays within its line, and within its quotes where they are `quoted`.
pub(super) fn escape(text: &str, quoted: bool, to: &mut String) {
    let special =
        |byte: u8| byte < b' ' || byte == 0x7F || byte == b'\\' || (quoted && byte == b'"');
    let mut rest = text;
    while let Some(place) = rest.bytes().position(special) {
        to.push_str(&rest[..place]);
        to.push_str(match rest.as_bytes()[place] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            b'\n' => "\\n",
            _ => "\u{fffd}",
        });
        // A special character is one byte long.
        rest = &rest[place + 1..];
    }
    to.push_str(rest);
}

/// Whether a label may be called so: letters, digits and underscores, no digit first, and not
/// two underscores first.
pub fn is_label_name(name: &str) -> bool {
    is_word(name) && !name.starts_with("__")
}

/// Whether a metric may be called so: letters, digits and underscores, no digit first. Colons are
/// for those who write rules, so that no metric of an exporter has one.
pub fn is_metric_name(name: &str) -> bool {
    is_word(name)
}

fn is_word(name: &str) -> bool {
    name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::{Labels, is_label_name};

    #[test]
    fn no_value_leaves_its_quotes() {
        let cases = [
            ("plain", r#"a="plain""#),
            ("", ""),
            ("say \"hi\"", r#"a="say \"hi\"""#),
            ("C:\\x\n", r#"a="C:\\x\n""#),
            ("\\\"}\n# EOF\nup 1", r#"a="\\\"}\n# EOF\nup 1""#),
            ("nul\0 tab\t return\r", "a=\"nul\u{fffd} tab\u{fffd} return\u{fffd}\""),
            ("Grüße 😀", "a=\"Grüße 😀\""),
        ];
        for (value, text) in cases {
            assert_eq!(Labels::new([("a", value)]).unwrap().as_str(), text);
        }
    }

    #[test]
    fn names_are_words() {
        for good in ["a", "A9_b", "_a", "le"] {
            assert!(is_label_name(good), "{good}");
        }
        for bad in ["", "9a", "__name__", "a-b", "a b", "ä", "a\"", "a:b", "a\n"] {
            assert!(!is_label_name(bad), "{bad}");
            assert!(Labels::new([(bad, "x")]).is_err());
        }
        assert_eq!(
            Labels::new([("a", "1"), ("b", ""), ("c", "2")]).unwrap().as_str(),
            r#"a="1",c="2""#
        );
    }
}
