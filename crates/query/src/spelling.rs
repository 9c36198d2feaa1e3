//! Which known name was probably meant where another was written. Knows no names itself.

use strsim::levenshtein;

/// Letters that a name may be away from the one that was meant.
const NEAR: usize = 3;

/// The known name that was probably meant by `name`: at most three letters and less than half of
/// `name` away, if there is one. The first in the alphabet of those that are as near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|one| (levenshtein(name, one), one)).min()?;
    (near.0 <= NEAR && near.0 * 2 < name.chars().count()).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_what_was_meant_and_nonsense_finds_nothing() {
        let known = ["power", "temperature", "l1"];
        for (slip, meant) in [
            ("powr", Some("power")),
            ("temprature", Some("temperature")),
            ("nope", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, known.into_iter()), meant, "{slip}");
        }
    }
}
