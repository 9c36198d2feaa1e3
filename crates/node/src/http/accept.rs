//! Which text of metrics an `Accept` header asks for (RFC 9110, section 12.5.1). Pure.

use telltale_wire::exposition::Format;

/// Media ranges that are looked at; a header with more is one that nobody needs.
const MAX_RANGES: usize = 32;

/// How closely a range names a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Anything,
    AnyOfType,
    Type,
    Version,
}

/// The format to answer with; none where the header wants neither. Of two that are as good, the
/// older one, which every reader knows.
pub(super) fn format(accept: Option<&str>) -> Option<Format> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return Some(Format::Text);
    };
    let quality = |format| quality(accept, format);
    let (text, open_metrics) = (quality(Format::Text), quality(Format::OpenMetrics));
    match (text, open_metrics) {
        (0, 0) => None,
        (text, open_metrics) if open_metrics > text => Some(Format::OpenMetrics),
        _ => Some(Format::Text),
    }
}

/// How much a format is wanted, in thousandths: what the closest range says.
fn quality(accept: &str, format: Format) -> u32 {
    let ranges = accept.split(',').take(MAX_RANGES).filter_map(|range| read(range, format));
    // Of several that are as close, the most willing one.
    ranges.max().map_or(0, |(_, quality)| quality)
}

/// How close one range is to a format, and how much it wants it; none if it is not about it.
fn read(range: &str, format: Format) -> Option<(Closeness, u32)> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let (name, version) = match format {
        Format::Text => ("text/plain", "0.0.4"),
        Format::OpenMetrics => ("application/openmetrics-text", "1.0.0"),
    };
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
            if value != version {
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
    use super::format;
    use telltale_wire::exposition::Format::{OpenMetrics, Text};

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
            assert_eq!(format(accept), expected, "{accept:?}");
        }
    }
}
