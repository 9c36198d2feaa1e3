//! `/api/v1/history`: series over time, as far as the caller may see them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use telltale_schema::calendar;
use telltale_schema::clock::{Clock, Timestamp};
use telltale_schema::history::{HistoryQuery, Subjects, USUAL_SECONDS};
use telltale_schema::text::with_causes;

use super::App;
use crate::access::Visibility;
use crate::history::{ReadHistoryError, SharedReadError};
use telltale_collector::clock::SystemClock;
use telltale_server::problem::Problem;

/// Devices, processes and metrics that one question may name, each.
const MAX_NAMED: usize = 64;

/// Answers with a [`telltale_schema::history::HistoryAnswer`].
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Extension(visibility): Extension<Visibility>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let query = query(&pairs, SystemClock.now())
        .map_err(|detail| Problem::new(StatusCode::BAD_REQUEST, detail))?;
    let reader = app.history.as_ref().ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "this service keeps no history; its log says why")
    })?;
    let answer =
        reader.read(move |reader| reader.query(&query, visibility)).await.map_err(refused)?;
    Ok(axum::Json(answer).into_response())
}

fn refused(error: SharedReadError) -> Problem {
    let status = match &error {
        SharedReadError::Closed(_) | SharedReadError::GivenUp => StatusCode::SERVICE_UNAVAILABLE,
        SharedReadError::Read(ReadHistoryError::Sqlite(_)) => StatusCode::INTERNAL_SERVER_ERROR,
        SharedReadError::Read(_) => StatusCode::NOT_FOUND,
    };
    Problem::new(status, with_causes(&error))
}

/// The question, or what is wrong with it.
fn query(pairs: &[(String, String)], now: Timestamp) -> Result<HistoryQuery, String> {
    let mut query = HistoryQuery::over(Timestamp(0), now);
    let (mut from, mut seconds) = (None, None);
    for (name, value) in pairs {
        let number = || value.parse::<u64>().map_err(|_| format!("{name} is a whole number"));
        match name.as_str() {
            "from" => from = Some(moment(name, value)?),
            "to" => query.to = moment(name, value)?,
            "seconds" => seconds = Some(number()?),
            "step_ms" => {
                let step = number()?;
                if step == 0 {
                    return Err(String::from(
                        "step_ms is a whole number of milliseconds from 1 on",
                    ));
                }
                query.step_ms = Some(step);
            }
            "subjects" => {
                query.subjects = match value.as_str() {
                    "all" => Subjects::All,
                    "devices" => Subjects::Devices,
                    "processes" => Subjects::Processes,
                    "faults" => Subjects::Faults,
                    _ => {
                        return Err(String::from("subjects is all, devices, processes or faults"));
                    }
                }
            }
            "device" => query.devices.push(value.clone()),
            "process" => query.processes.push(value.parse()?),
            "metric" => query.metrics.push(value.clone()),
            _ => {
                return Err(format!(
                    "there is no parameter {name}; there are from, to, seconds, step_ms, subjects, \
                     device, process and metric"
                ));
            }
        }
    }
    if query.devices.len().max(query.processes.len()).max(query.metrics.len()) > MAX_NAMED {
        return Err(format!("a question names at most {MAX_NAMED} devices, processes or metrics"));
    }
    query.from = match (from, seconds) {
        (Some(_), Some(_)) => return Err(String::from("give from or seconds, not both")),
        (Some(from), None) => from,
        (None, seconds) => {
            let span = seconds.unwrap_or(USUAL_SECONDS).saturating_mul(1_000_000_000);
            Timestamp(query.to.0.saturating_sub(span))
        }
    };
    if query.from >= query.to {
        return Err(String::from("from must be before to"));
    }
    Ok(query)
}

/// RFC 3339, or seconds since 1970.
fn moment(name: &str, text: &str) -> Result<Timestamp, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Err(format!(
                "{name} is not from 0 to {MAX_SECONDS} seconds since 1970; milliseconds are not taken"
            ));
        }
        // A double keeps seconds of this century to a microsecond.
        return Ok(Timestamp((seconds * 1e9) as u64));
    }
    calendar::parse(text).ok_or_else(|| {
        format!("{name} is a time such as 2026-11-21T10:00:00Z, or seconds since 1970")
    })
}

/// Until the year 2554, when nanoseconds in 64 bits end.
const MAX_SECONDS: f64 = 1.8e10;

#[cfg(test)]
mod tests {
    use super::query;
    use telltale_schema::clock::Timestamp;

    const NOW: Timestamp = Timestamp(10_000_000_000_000);

    fn asked(pairs: &[(&str, &str)]) -> Result<telltale_schema::history::HistoryQuery, String> {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        query(&pairs, NOW)
    }

    #[test]
    fn a_question_is_of_the_last_hour_unless_it_says_otherwise() {
        let usual = asked(&[]).unwrap();
        assert_eq!((usual.from.0, usual.to), (6_400_000_000_000, NOW));
        let minute = asked(&[("seconds", "60"), ("device", "a"), ("device", "b")]).unwrap();
        assert_eq!((minute.from.0, minute.devices.len()), (9_940_000_000_000, 2));
        let span = asked(&[("from", "1.5"), ("to", "1970-01-01T00:00:03Z")]).unwrap();
        assert_eq!((span.from.0, span.to.0), (1_500_000_000, 3_000_000_000));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (pairs, words) in [
            (vec![("form", "1")], "there is no parameter form"),
            (vec![("from", "soon")], "from is a time"),
            (vec![("from", "-1")], "from is not from 0 to"),
            (vec![("from", "1e300")], "milliseconds are not taken"),
            (vec![("step_ms", "0")], "from 1 on"),
            (vec![("seconds", "-1")], "seconds is a whole number"),
            (vec![("from", "1"), ("seconds", "1")], "not both"),
            (vec![("from", "9999999")], "before"),
            (vec![("process", "")], "a process is named"),
            (vec![("subjects", "some")], "subjects is"),
            (vec![("device", "a"); 65], "at most 64"),
        ] {
            let refused = asked(&pairs).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
