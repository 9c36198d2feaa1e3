//! The service's alerts: their rules, at the start and after each change, and who is notified.

use std::sync::Arc;
use tracing::error;

use telltale_node::alerts::{self, Payload};
use telltale_node::configuration::Configuration;
use telltale_node::parts::ServiceParts;
use telltale_node::service::Control;

/// Searches for what the configuration says, and tells its webhook.
pub(super) fn start(parts: &mut ServiceParts, configuration: &Configuration, control: &Control) {
    follow(configuration, control);
    let options = parts.follow(|configuration| configuration.alerts.webhook.clone());
    let (states, stopped) = (control.view(), parts.stopped());
    let found = Payload {
        notices: Arc::clone(control.notices()),
        states: Box::new(move || Arc::clone(&states.latest().alerts)),
        service_started_at: control.view().latest().service.started_at,
    };
    parts.run("alerts", alerts::serve(found, options, stopped));
}

/// Goes by the rules of this configuration from now on.
pub(super) fn follow(configuration: &Configuration, control: &Control) {
    match configuration.alerts.rules() {
        Ok(rules) => control.set_rules(rules),
        // A configuration that was read has been checked for it.
        Err(error) => error!("{}", error.to_string()),
    }
}
