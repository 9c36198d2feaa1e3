//! A query's text cut into words, signs and quoted texts. Knows nothing of fields.

use crate::error::{QueryError, QueryProblem};

/// One piece of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: TokenKind,
    /// Characters before it.
    pub(crate) column: usize,
}

/// What a piece is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A word, a number, or both as in `2GiB`.
    Word(String),
    /// A text between quotes.
    Quoted(String),
    /// A pattern between slashes.
    Pattern(String),
    Compare(Comparison),
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Like,
    Unlike,
}

/// Signs, the longer before those that they begin with.
const SIGNS: [(&str, TokenKind); 15] = [
    ("==", TokenKind::Compare(Comparison::Equal)),
    ("!=", TokenKind::Compare(Comparison::Unequal)),
    ("<=", TokenKind::Compare(Comparison::AtMost)),
    (">=", TokenKind::Compare(Comparison::AtLeast)),
    ("!~", TokenKind::Compare(Comparison::Unlike)),
    ("=~", TokenKind::Compare(Comparison::Like)),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("<", TokenKind::Compare(Comparison::Less)),
    (">", TokenKind::Compare(Comparison::More)),
    ("=", TokenKind::Compare(Comparison::Equal)),
    ("~", TokenKind::Compare(Comparison::Like)),
    ("!", TokenKind::Not),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
];

impl Comparison {
    /// How it is written.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Like => "~",
            Self::Unlike => "!~",
        }
    }
}

impl Token {
    /// The piece in words, for a message.
    pub(crate) fn words(&self) -> String {
        match &self.kind {
            TokenKind::Word(word) => format!("`{word}` stands here"),
            TokenKind::Quoted(_) => String::from("a text stands here"),
            TokenKind::Pattern(_) => String::from("a pattern stands here"),
            TokenKind::Compare(comparison) => format!("`{}` stands here", comparison.sign()),
            TokenKind::And => String::from("`and` stands here"),
            TokenKind::Or => String::from("`or` stands here"),
            TokenKind::Not => String::from("`not` stands here"),
            TokenKind::Open => String::from("`(` stands here"),
            TokenKind::Close => String::from("`)` stands here"),
            TokenKind::Comma => String::from("`,` stands here"),
            TokenKind::End => String::from("the query ends here"),
        }
    }
}

/// Cuts a query into its pieces, [`TokenKind::End`] at the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut tokens = Vec::new();
    let (mut rest, mut column) = (text, 0);
    loop {
        let trimmed = rest.trim_start();
        column += rest[..rest.len() - trimmed.len()].chars().count();
        let Some(first) = trimmed.chars().next() else { break };
        let (kind, bytes) = match first {
            '"' | '\'' => quoted(trimmed, first, TokenKind::Quoted, column)?,
            '/' => quoted(trimmed, first, TokenKind::Pattern, column)?,
            ',' => (TokenKind::Comma, 1),
            _ => sign(trimmed).unwrap_or_else(|| word(trimmed)),
        };
        tokens.push(Token { kind, column });
        let (piece, after) = trimmed.split_at(bytes);
        column += piece.chars().count();
        rest = after;
    }
    tokens.push(Token { kind: TokenKind::End, column });
    Ok(tokens)
}

fn sign(text: &str) -> Option<(TokenKind, usize)> {
    let found = SIGNS.iter().find(|(sign, _)| text.starts_with(sign));
    found.map(|(sign, kind)| (kind.clone(), sign.len()))
}

fn word(text: &str) -> (TokenKind, usize) {
    let ends = |it: char| it.is_whitespace() || "()<>=!~,\"'&|".contains(it);
    // A sign alone that begins no other, `&` say, is a word of one letter that nothing accepts.
    let least = text.chars().next().map_or(0, char::len_utf8);
    let end = text[least..].find(ends).map_or(text.len(), |end| least + end);
    let word = &text[..end];
    let kind = match word.to_ascii_lowercase().as_str() {
        "and" => TokenKind::And,
        "or" => TokenKind::Or,
        "not" => TokenKind::Not,
        _ => TokenKind::Word(word.to_owned()),
    };
    (kind, end)
}

/// A text up to the next `quote`; a backslash before the quote makes it part of the text.
fn quoted(
    text: &str,
    quote: char,
    kind: fn(String) -> TokenKind,
    column: usize,
) -> Result<(TokenKind, usize), QueryError> {
    let mut inner = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((place, letter)) = letters.next() {
        if letter == quote {
            return Ok((kind(inner), place + 1));
        }
        match letters.peek() {
            Some((_, next)) if letter == '\\' && *next == quote => {
                inner.push(quote);
                letters.next();
            }
            _ => inner.push(letter),
        }
    }
    Err(QueryError::new(column, QueryProblem::Open(quote)))
}

#[cfg(test)]
mod tests {
    use super::{Comparison, TokenKind, tokens};

    #[test]
    fn a_query_is_cut_where_its_pieces_end() {
        use TokenKind::{And, Close, Comma, Compare, End, Not, Open, Or, Pattern, Quoted, Word};
        let kinds = |text: &str| -> Vec<TokenKind> {
            tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
        };
        let word = |text: &str| Word(text.to_owned());
        let cases = [
            ("", vec![End]),
            ("dram>2GiB", vec![word("dram"), Compare(Comparison::More), word("2GiB"), End]),
            (
                "a<=b AND!c||d",
                vec![
                    word("a"),
                    Compare(Comparison::AtMost),
                    word("b"),
                    And,
                    Not,
                    word("c"),
                    Or,
                    word("d"),
                    End,
                ],
            ),
            (
                "(x in ('a b', \"c\\\"d\"))",
                vec![
                    Open,
                    word("x"),
                    word("in"),
                    Open,
                    Quoted("a b".into()),
                    Comma,
                    Quoted("c\"d".into()),
                    Close,
                    Close,
                    End,
                ],
            ),
            ("~/a\\/b\\d/", vec![Compare(Comparison::Like), Pattern("a/b\\d".into()), End]),
            ("& | é", vec![word("&"), word("|"), word("é"), End]),
        ];
        for (text, expected) in cases {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_count_characters() {
        let columns: Vec<_> = tokens("'é' == ü").unwrap().iter().map(|it| it.column).collect();
        assert_eq!(columns, [0, 4, 7, 8]);
        assert_eq!(tokens("a 'b").unwrap_err().column, 2);
    }
}
