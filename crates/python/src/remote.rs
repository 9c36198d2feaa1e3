//! What services of other hosts answer: one host as a snapshot, several as a fleet.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use telltale_client::Tls;
use telltale_query::Query;
use telltale_schema::fleet;
use telltale_sources::{ClientTlsFiles, GRACE, HostAddress, HostItem, Inquiry, Terms, read_all};

use crate::error::ErrorClass;
use crate::fleet::Fleet;
use crate::signals;
use crate::snapshot::Snapshot;
use crate::value;

/// How long one host may take where the user does not say it.
const USUAL_TIMEOUT: Duration = Duration::from_secs(2);

/// One host, or several.
#[derive(FromPyObject)]
pub(crate) enum HostNames {
    One(String),
    Several(Vec<String>),
}

/// How hosts are asked, as the arguments say it.
pub(crate) struct Asking {
    pub(crate) query: Option<Query>,
    pub(crate) usage: bool,
    pub(crate) timeout: Option<f64>,
    pub(crate) token: Option<String>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// What one host says, or several.
pub(crate) fn snapshot(py: Python<'_>, host: HostNames, asking: Asking) -> PyResult<Py<PyAny>> {
    match host {
        HostNames::One(name) => of_one(py, &name, asking)?.into_py_any(py),
        HostNames::Several(names) => {
            let addresses = addresses(py, &names)?;
            let inner = Arc::new(asked(py, addresses, asking)?);
            Fleet { inner }.into_py_any(py)
        }
    }
}

/// What one host says.
fn of_one(py: Python<'_>, name: &str, asking: Asking) -> PyResult<Snapshot> {
    let refused = |what: &str, list: &[&str]| {
        let message = format!("{name:?} names {what}; ask several by a list: host={list:?}");
        ErrorClass::Query.of(py, &message, None)
    };
    if name.contains(',') {
        let names: Vec<&str> = name.split(',').map(str::trim).collect();
        return Err(refused("no host", &names));
    }
    let addresses = addresses(py, &[name.to_owned()])?;
    if addresses.len() > 1 {
        return Err(refused(&format!("{} hosts", addresses.len()), &[name]));
    }
    let host = asked(py, addresses, asking)?.hosts.into_iter().next();
    let host = host.expect("a host that is asked is there");
    match host.snapshot {
        Some(inner) => Ok(Snapshot { inner }),
        None => {
            let message = format!("{} does not answer", host.name);
            Err(ErrorClass::Service.of(py, &message, host.reason.as_deref()))
        }
    }
}

/// The hosts that are named, also in files.
fn addresses(py: Python<'_>, names: &[String]) -> PyResult<Vec<HostAddress>> {
    let items: Result<Vec<HostItem>, _> = names.iter().map(|name| name.parse()).collect();
    let items = items.map_err(|error| ErrorClass::Query.because(py, &error))?;
    read_all(&items).map_err(|error| ErrorClass::Query.because(py, &error))
}

/// What several hosts say, each with only the rows that are wanted.
fn asked(py: Python<'_>, addresses: Vec<HostAddress>, asking: Asking) -> PyResult<fleet::Fleet> {
    let query = asking.query.clone();
    let terms = terms(py, asking)?;
    if let Some(address) = terms.exposed(&addresses) {
        let message = format!(
            "the token would be sent to {} for anyone on the network to read; give authority=, or \
             reach it by ssh://",
            address.name
        );
        return Err(ErrorClass::Service.of(py, &message, None));
    }
    let begun = Instant::now();
    let most = terms.timeout.saturating_add(GRACE);
    let inquiry = py.detach(|| Inquiry::start(addresses, terms));
    let inquiry = inquiry.map_err(|error| ErrorClass::Service.because(py, &error))?;
    let waited = signals::wait(py, |period| {
        let left = most.saturating_sub(begun.elapsed());
        (inquiry.wait(left.min(period)) || left <= period).then_some(())
    });
    py.detach(move || {
        let mut fleet = inquiry.now();
        // Its connections end here, also when a signal ended the wait.
        drop(inquiry);
        if waited.is_ok()
            && let Some(query) = query
        {
            select(&mut fleet, &query);
        }
        waited.map(|()| fleet)
    })
}

/// Leaves the rows that are wanted: a service of another version, and a shell, may have sent all.
fn select(fleet: &mut fleet::Fleet, query: &Query) {
    for host in &mut fleet.hosts {
        if let Some(snapshot) = &mut host.snapshot {
            *snapshot = Arc::new(query.select(snapshot));
        }
    }
}

fn terms(py: Python<'_>, asking: Asking) -> PyResult<Terms> {
    let timeout = asking.timeout.map(|seconds| value::seconds(py, seconds)).transpose()?;
    Ok(Terms {
        tls: tls(py, asking.authority, asking.certificate, asking.key)?,
        token: asking.token,
        usage: asking.usage,
        chooses_by_usage: asking.query.as_ref().is_some_and(Query::asks_for_usage),
        filter: asking.query,
        timeout: timeout.unwrap_or(USUAL_TIMEOUT),
        period: None,
    })
}

/// What the files of TLS say, where any is named.
fn tls(
    py: Python<'_>,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> PyResult<Option<Tls>> {
    let refused = |message: &str| Err(ErrorClass::Query.of(py, message, None));
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return refused("certificate= and key= belong together; give both"),
    };
    let Some(authority) = authority else {
        return match identity {
            Some(_) => refused("certificate= and key= are for TLS; give authority= too"),
            None => Ok(None),
        };
    };
    let files = ClientTlsFiles { authority, identity };
    let read = py.detach(|| files.read());
    read.map(Some).map_err(|error| ErrorClass::Service.because(py, &error))
}
