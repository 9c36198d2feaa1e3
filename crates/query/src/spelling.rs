//! Which known name was probably meant by somebody who wrote another one. Knows no names itself.

/// Letters that a name may be away from the one that was meant.
const NEAR: usize = 3;

/// The known name that was probably meant by `name`: at most three letters and less than half of
/// `name` away, if there is one. The first in the alphabet of those that are as near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|one| (distance(name, one), one)).min()?;
    (near.0 <= NEAR && near.0 * 2 < name.chars().count()).then_some(near.1)
}

/// How many letters have to be changed, added or taken away (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = above + 1;
        for (left, &there) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != there);
            corner = row[left + 1];
            row[left + 1] = changed.min(corner + 1).min(row[left] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_count_letters() {
        for (one, other, expected) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, other), expected);
        }
    }

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
