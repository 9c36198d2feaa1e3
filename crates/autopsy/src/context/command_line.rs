//! Command lines without secrets: what may be one is replaced by `…`.

use crate::bounds::bounded;

/// Arguments that are kept.
const MAX_ARGUMENTS: usize = 64;
/// What stands for a secret.
const REDACTED: &str = "…";
/// Parts of the names of options whose values are secrets.
const SECRET: [&str; 8] = ["token", "secret", "pass", "key", "credential", "auth", "cookie", "dsn"];
/// So many letters and digits in a row, of both kinds, are a key rather than a word.
const KEY_LETTERS: usize = 24;

pub(super) fn redacted(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut is_value_secret = false;
    for argument in arguments.iter().take(MAX_ARGUMENTS) {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        let is_option = argument.starts_with('-') || value.is_some();
        let names_secret = is_option && is_secret_name(name);
        kept.push(match value {
            _ if is_value_secret && !argument.starts_with('-') => REDACTED.to_owned(),
            Some(_) if names_secret => format!("{}={REDACTED}", bounded(name)),
            _ if has_key(argument) || has_password(argument) => REDACTED.to_owned(),
            // The program of `python -c`, and the like, holds anything.
            _ if kept.last().is_some_and(|last| last == "-c") => REDACTED.to_owned(),
            _ => bounded(argument),
        });
        is_value_secret = names_secret && value.is_none();
    }
    kept
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// `https://user:password@host`.
fn has_password(argument: &str) -> bool {
    let after = argument.split_once("://").map(|(_, rest)| rest);
    after.and_then(|rest| rest.split('/').next()).is_some_and(|host| host.contains('@'))
}

fn has_key(argument: &str) -> bool {
    let words = argument.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.into_iter().any(|word| {
        let has = |kind: fn(&u8) -> bool| word.bytes().any(|letter| kind(&letter));
        word.len() >= KEY_LETTERS && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_be_secrets_are_replaced() {
        let cases = [
            ("python train.py --lr 0.1 data=/d", "python train.py --lr 0.1 data=/d"),
            ("train --api-key abc --lr 1", "train --api-key … --lr 1"),
            ("train --hf_token=abc", "train --hf_token=…"),
            ("train WANDB_API_KEY=abc", "train WANDB_API_KEY=…"),
            ("train https://me:pw@host/x", "train …"),
            ("train hf8aZk3LmQ9xYw2PfTn5Rb7Vc", "train …"),
            ("python -c print(1)", "python -c …"),
            ("train --password --quiet", "train --password --quiet"),
        ];
        for (given, expected) in cases {
            let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
            assert_eq!(redacted(&given).join(" "), expected);
        }
    }
}
