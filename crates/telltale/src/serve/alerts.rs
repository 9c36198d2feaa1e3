//! The service's alerts: their rules, at the start and after each change, and who is told.

use std::sync::Arc;
use tracing::error;

use telltale_node::alerts::{self, Found};
use telltale_node::configuration::Configuration;
use telltale_node::parts::Parts;
use telltale_node::service::View;

/// Looks for what the configuration says, and tells its webhook.
pub(super) fn start(parts: &mut Parts, configuration: &Configuration, view: &View) {
    follow(configuration, view);
    let options = parts.follow(|configuration| configuration.alerts.webhook.clone());
    let (states, stopped) = (view.clone(), parts.stopped());
    let found = Found {
        notices: Arc::clone(view.notices()),
        states: Box::new(move || Arc::clone(&states.latest().alerts)),
        service_started_at: view.latest().service.started_at,
    };
    parts.run("alerts", alerts::serve(found, options, stopped));
}

/// Goes by the rules of this configuration from now on.
pub(super) fn follow(configuration: &Configuration, view: &View) {
    match configuration.alerts.rules() {
        Ok(rules) => view.set_rules(rules),
        // A configuration that was read has been checked for it.
        Err(error) => error!("{}", error.to_string()),
    }
}
