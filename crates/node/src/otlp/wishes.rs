//! When a receiver wants to be asked again: `Retry-After` of HTTP (RFC 9110 §10.2.3), `RetryInfo` of
//! gRPC (`google/rpc/error_details.proto`), in the details of its status. Pure.

use std::time::{Duration, SystemTime};

use prost::Message;

/// The longest wait that a receiver may ask for.
pub(super) const LONGEST_WISH: Duration = Duration::from_secs(300);

/// The type of the detail that says when.
const RETRY_INFO: &str = "google.rpc.RetryInfo";

/// Details that are checked.
const MOST_DETAILS: usize = 16;

/// `google.rpc.Status`, as far as it is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Details {
    #[prost(message, repeated, tag = "3")]
    pub(super) details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Detail {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Delay {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// When, by the details of a gRPC status. Their length is limited by that of the headers.
pub(super) fn of_status(details: &[u8]) -> Option<Duration> {
    let details = Details::decode(details).ok()?.details;
    let is_it = |one: &&Detail| one.type_url.rsplit('/').next() == Some(RETRY_INFO);
    let found = details.iter().take(MOST_DETAILS).find(is_it)?;
    let delay = RetryInfo::decode(found.value.as_slice()).ok()?.retry_delay.unwrap_or_default();
    let seconds = u64::try_from(delay.seconds).unwrap_or(0);
    let nanos = u32::try_from(delay.nanos).unwrap_or(0).min(999_999_999);
    Some(Duration::new(seconds, nanos).min(LONGEST_WISH))
}

/// When, by a header: seconds, or a date.
pub(super) fn of_header(value: &str, now: SystemTime) -> Option<Duration> {
    let wish = match value.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A date that has passed means now.
        Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wish.min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use super::{Delay, Detail, Details, LONGEST_WISH, RetryInfo, of_header, of_status};
    use proptest::prelude::*;
    use prost::Message;
    use std::time::{Duration, SystemTime};

    fn status(type_url: &str, seconds: i64, nanos: i32) -> Vec<u8> {
        let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) };
        let other = Detail { type_url: String::from("x/google.rpc.DebugInfo"), value: vec![255] };
        let one = Detail { type_url: type_url.to_owned(), value: info.encode_to_vec() };
        Details { details: vec![other, one] }.encode_to_vec()
    }

    #[test]
    fn a_status_says_when_in_its_details() {
        let known = "type.googleapis.com/google.rpc.RetryInfo";
        let cases = [
            (status(known, 7, 500_000_000), Some(Duration::from_millis(7_500))),
            (status(known, -1, -5), Some(Duration::ZERO)),
            (status(known, i64::MAX, i32::MAX), Some(LONGEST_WISH)),
            (status("type.googleapis.com/google.rpc.Help", 7, 0), None),
            (Vec::new(), None),
            (vec![255; 9], None),
        ];
        for (details, expected) in cases {
            assert_eq!(of_status(&details), expected, "{details:?}");
        }
    }

    #[test]
    fn a_header_says_when_in_seconds_or_by_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let cases = [
            ("0", Some(Duration::ZERO)),
            (" 120 ", Some(Duration::from_secs(120))),
            ("99999999999", Some(LONGEST_WISH)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(Duration::from_secs(10))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Duration::ZERO)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(LONGEST_WISH)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ];
        for (value, expected) in cases {
            assert_eq!(of_header(value, now), expected, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_sent_does_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,60}") {
            prop_assert!(of_status(&bytes).is_none_or(|wish| wish <= LONGEST_WISH));
            prop_assert!(of_header(&text, SystemTime::now()).is_none_or(|wish| wish <= LONGEST_WISH));
        }
    }
}
