//! Parts of events as a person reads them, cut to the columns there are. Nothing of a stranger's
//! leaves here that could steer a terminal.

use telltale_debug_stream::Losses;
use telltale_debug_stream::capture::CapturedEvent;
use telltale_schema::quantity::count;
use telltale_schema::text::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a number.
pub(super) const NUMBER_COLUMNS: usize = 9;
/// What stands for what was cut out.
const CUT: &str = "..";

/// A number with its noun.
pub(super) fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// The prefix and the iteration.
pub(super) fn name_of(event: &CapturedEvent) -> String {
    let number = match (event.iteration, event.sequence) {
        (Some(iteration), _) => format!("#{iteration}"),
        (None, Some(sequence)) => format!(" sequence {sequence}"),
        (None, None) => String::new(),
    };
    format!("{}{number}", printable(&event.prefix))
}

/// A text in at most so many columns: what is in the middle goes, since names differ at both ends.
pub(super) fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(CUT.len());
    let head = taken(text.chars(), room / 2);
    let tail = taken(text.chars().rev(), room - head.width());
    let tail: String = tail.chars().rev().collect();
    format!("{head}{CUT}{tail}")
}

/// The first characters that fit.
fn taken(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    characters
        .take_while(|character| {
            let width = character.width().unwrap_or(0);
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

/// A text filled up to so many columns.
pub(super) fn filled(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// A shape such as `(2, 3)`, without spaces.
pub(super) fn shape(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    format!("({})", sizes.join(","))
}

/// A number in at most nine columns, with up to six digits.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 {
        return String::from("0");
    }
    if !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let rounded =
        |digits: usize| format!("{value:.digits$e}").parse::<f64>().unwrap_or(value).to_string();
    let short = [5, 4, 3].into_iter().map(rounded).find(|text| text.len() <= NUMBER_COLUMNS);
    short.unwrap_or_else(|| format!("{value:.2e}"))
}

/// What was lost, and why.
pub(super) fn lost(losses: &Losses) -> String {
    let causes =
        [(losses.events, "full"), (losses.bytes, "too many bytes"), (losses.memory, "no memory")];
    let causes: Vec<(u64, &str)> = causes.into_iter().filter(|(number, _)| *number > 0).collect();
    let causes = match &causes[..] {
        [(_, cause)] => (*cause).to_owned(),
        several => {
            let each = several.iter().map(|(number, cause)| format!("{} {cause}", count(*number)));
            each.collect::<Vec<_>>().join(", ")
        }
    };
    format!("{} lost here: {causes}", plural(losses.sum(), "event"))
}

/// What is missing between two events of a core.
pub(super) fn missing(core: Option<u32>, events: u64) -> String {
    let of_core = core.map_or_else(String::new, |core| format!(" of core {core}"));
    let are = if events == 1 { "is" } else { "are" };
    format!("{}{of_core} {are} not in this capture", plural(events, "event"))
}

#[cfg(test)]
mod tests {
    use telltale_debug_stream::Losses;

    use super::{NUMBER_COLUMNS, fitted, lost, missing, number};

    #[test]
    fn numbers_are_short_at_every_size() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (123.456_789, "123.457"),
            (0.001_234_567, "0.0012346"),
            (-0.123_456_7, "-0.123457"),
            (-0.001_234_567, "-0.001235"),
            (999_999.0, "999999"),
            (1e6, "1.00e6"),
            (-1.234_567e-30, "-1.23e-30"),
            (3.4e38, "3.40e38"),
        ] {
            assert_eq!(number(value), expected);
            assert!(number(value).len() <= NUMBER_COLUMNS, "{value}");
        }
    }

    #[test]
    fn names_keep_both_ends() {
        for (text, columns, expected) in [
            ("layer.12.attention.out", 12, "layer..n.out"),
            ("short", 12, "short"),
            ("訓練訓練", 7, "訓..練"),
            ("abc", 2, ".."),
        ] {
            assert_eq!(fitted(text, columns), expected);
        }
    }

    #[test]
    fn losses_say_why() {
        let one = Losses { events: 12, ..Losses::default() };
        assert_eq!(lost(&one), "12 events lost here: full");
        let two = Losses { events: 1_200, memory: 1, bytes: 0 };
        assert_eq!(lost(&two), "1,201 events lost here: 1,200 full, 1 no memory");
        assert_eq!(missing(Some(2), 1), "1 event of core 2 is not in this capture");
    }
}
