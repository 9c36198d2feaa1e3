//! Names of functions as people know them, without what they take and give.
//!
//! Of C++ the part that says which function it is: `c10d::Work::wait` of
//! `_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE`. A demangler that knows the whole grammar
//! (Itanium C++ ABI, 5.1) prints arguments and templates of hundreds of letters, which no one reads in a stack.

use crate::bounds::bounded;

/// The name of a symbol.
pub(super) fn readable(symbol: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return bounded(&format!("{rust:#}"));
    }
    bounded(&cpp(symbol).unwrap_or_else(|| symbol.to_owned()))
}

/// The nested or plain name of a C++ function; none where it is another symbol, or is of more parts than these.
fn cpp(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix("_Z")?;
    // L: of this file alone. K, V, r: const, volatile, restrict member functions.
    let rest = rest.strip_prefix('L').unwrap_or(rest);
    let Some(nested) = rest.strip_prefix('N') else {
        return part(rest).map(|(name, _)| name.to_owned());
    };
    let mut rest = nested.trim_start_matches(['K', 'V', 'r', 'R', 'O']);
    let mut parts: Vec<&str> = Vec::new();
    loop {
        let after = match rest.as_bytes() {
            [b'E', ..] => break,
            [b'S', b't', ..] => {
                parts.push("std");
                &rest[2..]
            }
            [b'L', ..] => &rest[1..],
            [b'0'..=b'9', ..] => {
                let (name, after) = part(rest)?;
                // How compilers name what has none.
                parts.push(if name.starts_with("_GLOBAL__N") {
                    "(anonymous namespace)"
                } else {
                    name
                });
                after
            }
            [b'C', b'1'..=b'5', ..] => {
                parts.push(parts.last().copied()?);
                &rest[2..]
            }
            [b'I', ..] => arguments(rest)?,
            // Operators, destructors, lambdas, substitutions: as far as it is known.
            _ => break,
        };
        rest = after;
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// A name with its length before it, and what follows.
fn part(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    Some((rest.get(..length)?, rest.get(length..)?))
}

/// What follows template arguments, which are between `I` and the `E` that belongs to it.
fn arguments(text: &str) -> Option<&str> {
    let mut depth = 0_u32;
    let mut rest = text;
    loop {
        let letter = *rest.as_bytes().first()?;
        rest = match letter {
            b'0'..=b'9' => part(rest)?.1,
            // A literal's value may have digits that are no length.
            b'L' => {
                let end = rest.find('E')?;
                &rest[end + 1..]
            }
            _ => rest.get(1..)?,
        };
        match letter {
            b'I' | b'N' | b'X' | b'J' | b'F' => depth += 1,
            b'E' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_that_people_know() {
        let cases = [
            ("_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE", "c10d::Work::wait"),
            (
                "_ZN4c10d16ProcessGroupGloo9AsyncWork7executeERKN3c1013intrusive_ptrIS1_EE",
                "c10d::ProcessGroupGloo::AsyncWork::execute",
            ),
            ("_ZN4gloo9allreduceERKNS_16AllreduceOptionsE", "gloo::allreduce"),
            (
                "_ZN4c10d12_GLOBAL__N_118AsyncAllreduceWork3runEv",
                "c10d::(anonymous namespace)::AsyncAllreduceWork::run",
            ),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back"),
            (
                "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EE",
                "torch::autograd::Engine::execute",
            ),
            ("_ZNK2at6Tensor4itemEv", "at::Tensor::item"),
            ("_ZN3FooC1Ev", "Foo::Foo"),
            ("_ZL6helperi", "helper"),
            ("_Z4mainv", "main"),
            ("futex_wait", "futex_wait"),
            ("_ZN99999Zcut", "_ZN99999Zcut"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ];
        for (symbol, name) in cases {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn garbage_is_left_as_it_is_or_cut() {
        for symbol in [
            "_Z",
            "_ZN",
            "_ZNI",
            "_ZN4c10dIII",
            "_ZNSt",
            "_ZN1\u{e9}E",
            "_ZN3fooIL",
            "_ZN3fooIEEEE",
        ] {
            readable(symbol);
        }
    }
}
