//! The certificates of a listening part, followed as the configuration and their files change.

use std::convert::Infallible;
use tracing::{error, info};

use telltale_schema::text::with_causes;
use telltale_server::door::{Tls, TlsFiles};
use tokio::sync::watch::Receiver;

/// Checks the files each time that the options are read again, as `files` finds them in the options, and says for
/// `what` they are. What cannot be used is logged, and all stays as it was. Never ends.
pub(crate) async fn follow<O: Clone, E: std::error::Error + 'static>(
    options: Option<Receiver<O>>,
    files: impl Fn(&O) -> Result<Option<TlsFiles>, E>,
    tls: &Tls,
    what: &str,
) -> Infallible {
    let Some(mut options) = options else { return std::future::pending().await };
    while options.changed().await.is_ok() {
        let now = options.borrow_and_update().clone();
        let replaced = files(&now).map_err(|error| with_causes(&error));
        let replaced =
            replaced.and_then(|files| tls.replace(files).map_err(|error| with_causes(&error)));
        match replaced {
            Ok(true) => {
                info!("{what} takes new connections with the TLS files as they are now");
            }
            Ok(false) => {}
            Err(why) => error!("keeping {what}'s TLS files: {why}"),
        }
    }
    std::future::pending().await
}
