//! What operators may ask, over HTTP as JSON: the same answers as by gRPC, in the form of
//! [`crate::view`]. Nothing can be ordered here.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use telltale_server::problem::Problem;

use super::http::Web;
use super::mailbox::MailboxError;
use super::standing::Standing;
use crate::view::{ExplanationView, IncidentView, JobStepsView, NodeView, StatusView};

/// Incidents of one answer.
const MAX_INCIDENTS: usize = 100;
/// The name that stands for the newest incident.
const NEWEST: &str = "newest";

pub(super) async fn status(State(web): State<Web>) -> Response {
    let asked = async {
        let status = web.mailbox.status().await?;
        let open = match &status.open_incident {
            // It may be closed by now, and is not what was asked for.
            Some(id) => {
                web.mailbox.incident(id.clone()).await.ok().and_then(|found| found.incident)
            }
            None => None,
        };
        Ok(StatusView::from(&status).with_incident(open.as_ref()))
    };
    answer(asked.await)
}

pub(super) async fn steps(State(web): State<Web>) -> Response {
    answer(web.mailbox.steps().await.map(|steps| JobStepsView::from(&steps)))
}

pub(super) async fn nodes(State(web): State<Web>) -> Response {
    let views = |nodes: &[_]| nodes.iter().map(NodeView::from).collect::<Vec<_>>();
    answer(web.mailbox.nodes().await.map(|listed| views(&listed.nodes)))
}

pub(super) async fn incidents(State(web): State<Web>) -> Response {
    let views = |incidents: &[_]| incidents.iter().map(IncidentView::from).collect::<Vec<_>>();
    answer(web.mailbox.incidents(MAX_INCIDENTS).await.map(|listed| views(&listed.incidents)))
}

pub(super) async fn incident(State(web): State<Web>, Path(id): Path<String>) -> Response {
    let id = if id == NEWEST { String::new() } else { id };
    answer(web.mailbox.incident(id).await.map(|incident| ExplanationView::from(&incident)))
}

fn answer<View: Serialize>(asked: Result<View, MailboxError>) -> Response {
    match asked {
        Ok(view) => json(StatusCode::OK, &view),
        Err(error) => {
            let status = match &error {
                MailboxError::NoIncident | MailboxError::NoneYet => StatusCode::NOT_FOUND,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            let problem = Problem::new(status, error.to_string()).with_error();
            match &error {
                // The address of the coordinator that leads.
                MailboxError::NotLeading(Standing { leader: Some(leader), .. }) => {
                    problem.member("leader", leader.as_str())
                }
                _ => problem,
            }
            .into_response()
        }
    }
}

fn json(status: StatusCode, view: &impl Serialize) -> Response {
    let text = serde_json::to_string(view).expect("views are JSON");
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, text).into_response()
}
