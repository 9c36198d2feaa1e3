//! Which of several representations an `Accept` header asks for (RFC 9110, section 12.5.1). Pure.

use super::Format;

/// Media ranges that are read; no client needs a header with more.
const MAX_RANGES: usize = 32;

/// How closely a range names a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Anything,
    AnyOfType,
    Type,
    Version,
}

/// A representation that can be sent: its media type, and the version of it where it has one.
pub type Offer = (&'static str, Option<&'static str>);

/// The one of these to answer with, by its number; none where the header wants none of them. Of those
/// that are as good the first one, which is what is sent to who has no wish.
pub fn choose(accept: Option<&str>, offers: &[Offer]) -> Option<usize> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return (!offers.is_empty()).then_some(0);
    };
    let qualities = offers.iter().map(|offer| quality(accept, *offer)).enumerate();
    let wanted = qualities.filter(|(_, quality)| *quality > 0);
    wanted.rev().max_by_key(|(_, quality)| *quality).map(|(offer, _)| offer)
}

impl Format {
    /// The format that an `Accept` header asks for; none where it wants neither. Of two that are as good,
    /// the older one, which every reader knows.
    pub fn asked(accept: Option<&str>) -> Option<Self> {
        choose(accept, &Self::ALL.map(Self::offer)).map(|offer| Self::ALL[offer])
    }

    /// As what it is offered.
    pub const fn offer(self) -> Offer {
        match self {
            Self::Text => ("text/plain", Some("0.0.4")),
            Self::OpenMetrics => ("application/openmetrics-text", Some("1.0.0")),
        }
    }
}

/// How much one is wanted, in thousandths: what the closest range says.
fn quality(accept: &str, offer: Offer) -> u32 {
    let ranges = accept.split(',').take(MAX_RANGES).filter_map(|range| read(range, offer));
    // Of several that are as close, the most willing one.
    ranges.max().map_or(0, |(_, quality)| quality)
}

/// How close one range is to an offer, and how much it wants it; none if it is not about it.
fn read(range: &str, (name, version): Offer) -> Option<(Closeness, u32)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let any_of_type = format!("{}/*", name.split('/').next()?);
    let mut closeness = match media.as_str() {
        "*/*" => Closeness::Anything,
        media if media == any_of_type => Closeness::AnyOfType,
        media if media == name => Closeness::Type,
        _ => return None,
    };
    let mut quality = 1000;
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        let value = value.trim().trim_matches('"');
        if key.trim().eq_ignore_ascii_case("q") {
            quality = thousandths(value)?;
        } else if key.trim().eq_ignore_ascii_case("version") && closeness == Closeness::Type {
            if Some(value) != version {
                return None;
            }
            closeness = Closeness::Version;
        }
    }
    Some((closeness, quality))
}

/// A quality from 0 to 1 in thousandths; none where it is no such number.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let rest = format!("{rest:0<3}").parse::<u32>().ok().filter(|_| digits)?;
    match whole {
        "0" => Some(rest),
        "1" if rest == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Text};
    use super::choose;

    #[test]
    fn the_format_that_is_wanted_most_is_chosen() {
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,\
             application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let cases = [
            (None, Some(Text)),
            (Some(""), Some(Text)),
            (Some("*/*"), Some(Text)),
            (Some("text/plain"), Some(Text)),
            (Some("text/*;q=0.2, application/*"), Some(OpenMetrics)),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), Some(Text)),
            (Some(prometheus_2), Some(OpenMetrics)),
            (Some(prometheus_3), Some(OpenMetrics)),
            (Some("application/openmetrics-text; version=1.0.0; charset=utf-8"), Some(OpenMetrics)),
            (Some("APPLICATION/OpenMetrics-Text;Version=\"1.0.0\""), Some(OpenMetrics)),
            (Some("application/openmetrics-text;version=2.0.0, */*;q=0.1"), Some(Text)),
            (Some("application/openmetrics-text;version=2.0.0"), None),
            (Some("text/plain;version=1.0.0"), None),
            // The closest range decides, not the most willing one.
            (Some("text/plain;version=0.0.4;q=0, */*"), Some(OpenMetrics)),
            (Some("text/plain;q=0.1, application/openmetrics-text;q=0.2"), Some(OpenMetrics)),
            (Some("text/plain;q=0, */*;q=0"), None),
            (Some("image/png, application/json"), None),
            (Some("text/plain;q=2"), None),
            (Some("text/plain;q=0.0001"), None),
            (Some(",;=,;;q"), None),
        ];
        for (accept, expected) in cases {
            assert_eq!(Format::asked(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn what_has_no_version_is_asked_for_as_well() {
        let offers = [("application/json", None), Format::Text.offer()];
        let cases = [
            (None, Some(0)),
            (Some("*/*"), Some(0)),
            (Some("text/plain"), Some(1)),
            (Some("text/plain;q=0.5, application/json;q=0.4"), Some(1)),
            (Some("text/plain;q=0, */*"), Some(0)),
            (Some("image/png"), None),
        ];
        for (accept, expected) in cases {
            assert_eq!(choose(accept, &offers), expected, "{accept:?}");
        }
        assert_eq!(choose(None, &[]), None);
    }
}
