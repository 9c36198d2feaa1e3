//! Characters as tokens: printable ASCII and the line feed. It does not change with the text, so
//! neither does the shape of the model.

/// How many tokens there are.
pub const TOKENS: u32 = 96;

/// The token of a character; none for one that is not in the alphabet.
#[must_use]
pub fn token(character: char) -> Option<u32> {
    match character {
        '\n' => Some(0),
        ' '..='~' => Some(u32::from(character) - u32::from(' ') + 1),
        _ => None,
    }
}

/// The character of a token; none for a number that is no token.
#[must_use]
pub fn character(token: u32) -> Option<char> {
    match token {
        0 => Some('\n'),
        1..TOKENS => char::from_u32(u32::from(' ') + token - 1),
        _ => None,
    }
}

/// The tokens of a text, without what is not in the alphabet.
#[must_use]
pub fn tokens(text: &str) -> Vec<u32> {
    text.chars().filter_map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::{TOKENS, character, token, tokens};

    #[test]
    fn each_token_has_one_character_and_back() {
        for number in 0..TOKENS {
            assert_eq!(character(number).and_then(token), Some(number));
        }
        assert_eq!(character(TOKENS), None);
    }

    #[test]
    fn what_is_not_in_the_alphabet_is_left_out() {
        assert_eq!(tokens("a\u{e9}\t~\n"), [66, 95, 0]);
    }
}
