//! Several machines, asked at the same time, as the command line names them.

use std::borrow::Cow;
use std::sync::Arc;

use telltale_query::Query;
use telltale_schema::fleet::{Fleet, Host};
use telltale_schema::snapshot::Snapshot;
use telltale_server::token::Token;
use telltale_sources::{HostAddress, Terms, read_all};

use crate::arguments::HostsArguments;
use crate::exit::Failure;

/// The machines that were named, and the terms on which they are asked periodically or, without
/// a period, once; with a filter, for the rows that it wants.
pub(crate) fn prepare(
    arguments: &HostsArguments,
    period: Option<std::time::Duration>,
    filter: Option<&Query>,
) -> Result<(Vec<HostAddress>, Terms), Failure> {
    let addresses = read_all(&arguments.items).map_err(|error| Failure::because(&error))?;
    let tls = arguments.tls().map(|files| files.read()).transpose();
    let tls = tls.map_err(|error| Failure::because(&error))?;
    let token = arguments.token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|error| Failure::because(&error))?;
    let token = token.map(|token| token.expose().to_owned());
    let (timeout, filter) = (arguments.timeout, filter.cloned());
    let (usage, chooses_by_usage) = (false, false);
    let terms = Terms { tls, token, filter, usage, chooses_by_usage, timeout, period };
    if let Some(address) = terms.exposed(&addresses) {
        return Err(Failure::Usage(format!(
            "the token would be sent to {} for anyone on the network to read; add --authority, or \
             reach it by ssh://",
            address.name
        )));
    }
    Ok((addresses, terms))
}

/// The machines with only the rows that `select` leaves.
pub(crate) fn select<'f>(
    fleet: &'f Fleet,
    select: impl Fn(&'f Snapshot) -> Cow<'f, Snapshot>,
) -> Fleet {
    let chosen = |host: &'f Host| Host {
        snapshot: host.snapshot.as_ref().map(|it| match select(it) {
            Cow::Borrowed(_) => Arc::clone(it),
            Cow::Owned(selected) => selected.into(),
        }),
        ..host.clone()
    };
    Fleet { hosts: fleet.hosts.iter().map(chosen).collect(), ..fleet.clone() }
}
