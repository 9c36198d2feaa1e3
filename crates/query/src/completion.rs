//! How a query that is being typed can go on.

use crate::field::{Field, FieldKind};
use crate::lexer::{Comparison, TokenKind, tokens};

/// One way to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// What would stand there in place of the word that is being typed.
    pub text: String,
    /// What it means.
    pub help: String,
}

/// What may stand at the end of `text`, and how many characters of it are the word that is being
/// typed. Empty where nothing of ours fits, as within quotes.
#[must_use]
pub fn complete(text: &str) -> (usize, Vec<Candidate>) {
    if text.len() > crate::MAX_QUERY_BYTES {
        return (0, Vec::new());
    }
    let Ok(mut all) = tokens(text) else { return (0, Vec::new()) };
    all.pop();
    // A word that touches the end is still being typed, `not` as well: it may become `notes`.
    let typed = match all.last() {
        Some(token) if is_word(&token.kind, text) => {
            let typed = text.chars().skip(token.column).collect();
            all.pop();
            typed
        }
        _ => String::new(),
    };
    let expected = expected(&all.iter().map(|token| &token.kind).collect::<Vec<_>>());
    let begins = |candidate: &Candidate| {
        let typed = typed.to_ascii_lowercase();
        candidate.text.to_ascii_lowercase().starts_with(&typed) && candidate.text != typed
    };
    (typed.chars().count(), expected.into_iter().filter(begins).collect())
}

fn is_word(last: &TokenKind, text: &str) -> bool {
    match last {
        TokenKind::Word(word) => text.ends_with(word.as_str()),
        TokenKind::And | TokenKind::Or | TokenKind::Not => {
            text.ends_with(|it: char| it.is_ascii_alphabetic())
        }
        _ => false,
    }
}

fn expected(before: &[&TokenKind]) -> Vec<Candidate> {
    let field = |place: usize| match before.get(before.len().wrapping_sub(place)) {
        Some(TokenKind::Word(name)) => Field::named(name),
        _ => None,
    };
    match before.last() {
        Some(TokenKind::Compare(_)) => field(2).map_or_else(Vec::new, values),
        Some(TokenKind::Open | TokenKind::Comma) => {
            let listed = before.iter().rposition(|it| matches!(it, TokenKind::Open));
            let of = listed.and_then(|open| in_list(&before[..open]));
            match (of, before.last()) {
                (Some(field), _) => values(field),
                (None, Some(TokenKind::Open)) => beginnings(),
                _ => Vec::new(),
            }
        }
        None | Some(TokenKind::And | TokenKind::Or | TokenKind::Not) => beginnings(),
        Some(TokenKind::Word(word)) if word.eq_ignore_ascii_case("is") => {
            ["absent", "known"].map(|word| candidate(word, "whether there is a value")).into()
        }
        Some(TokenKind::Word(_)) if field(1).is_some() => {
            field(1).map_or_else(Vec::new, comparisons)
        }
        _ => vec![candidate("and", "both hold"), candidate("or", "one of both holds")],
    }
}

/// The field of a list that would begin behind `before`.
fn in_list(before: &[&TokenKind]) -> Option<&'static Field> {
    let [.., TokenKind::Word(field), TokenKind::Word(word)] = before else { return None };
    word.eq_ignore_ascii_case("in").then(|| Field::named(field)).flatten()
}

fn beginnings() -> Vec<Candidate> {
    let fields = Field::all().iter().map(|field| candidate(field.name, field.help));
    fields.chain([candidate("not", "what follows does not hold")]).collect()
}

fn comparisons(field: &'static Field) -> Vec<Candidate> {
    use Comparison::{AtLeast, AtMost, Equal, Less, Like, More, Unequal, Unlike};
    let signs: &[Comparison] = match field.kind {
        FieldKind::Number(_) => &[More, AtLeast, Less, AtMost, Equal, Unequal],
        FieldKind::Text => &[Equal, Unequal, Like, Unlike],
        FieldKind::Word(_) => &[Equal, Unequal],
    };
    let signs = signs.iter().map(|sign| candidate(sign.sign(), &field.kind.words()));
    signs.chain([candidate("in", "one of several"), candidate("is", "absent or known")]).collect()
}

fn values(field: &'static Field) -> Vec<Candidate> {
    match field.kind {
        FieldKind::Word(words) => words.iter().map(|word| candidate(word, field.help)).collect(),
        FieldKind::Text | FieldKind::Number(_) => Vec::new(),
    }
}

fn candidate(text: &str, help: &str) -> Candidate {
    Candidate { text: text.to_owned(), help: help.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::complete;

    fn words(text: &str) -> (usize, Vec<String>) {
        let (typed, candidates) = complete(text);
        (typed, candidates.into_iter().map(|it| it.text).collect())
    }

    #[test]
    fn what_is_typed_goes_on_as_the_parser_would_read_it() {
        let cases: [(&str, usize, &[&str]); 12] = [
            ("temp", 4, &["temperature", "temperature_limit"]),
            ("not na", 2, &["name", "namespace", "namespace_pid"]),
            ("state ", 0, &["==", "!=", "in", "is"]),
            ("state == ", 0, &["alive", "dead", "hidden"]),
            ("state==de", 2, &["dead"]),
            ("state in (alive, h", 1, &["hidden"]),
            ("dram > 2GiB ", 0, &["and", "or"]),
            ("dram > 2GiB a", 1, &["and"]),
            ("power is ", 0, &["absent", "known"]),
            ("name == 'x", 0, &[]),
            ("user == ", 0, &[]),
            ("(na", 2, &["name", "namespace", "namespace_pid"]),
        ];
        for (text, typed, candidates) in cases {
            let (length, mut found) = words(text);
            let mut expected: Vec<_> = candidates.iter().map(ToString::to_string).collect();
            found.sort();
            expected.sort();
            assert_eq!((length, found), (typed, expected), "{text}");
        }
    }
}
