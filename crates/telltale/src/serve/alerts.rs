//! The service's alerts: their rules, at the start and after each change, and who is told.

use telltale_node::configuration::Configuration;
use telltale_node::parts::Parts;
use telltale_node::service::View;
use telltale_server::log;

/// Looks for what the configuration says, and tells its webhook.
pub(super) fn start(parts: &mut Parts, configuration: &Configuration, view: &View) {
    follow(configuration, view);
    let (read_again, stopped) = (parts.configuration(), parts.stopped());
    parts.run("alerts", telltale_node::alerts::serve(view.clone(), read_again, stopped));
}

/// Goes by the rules of this configuration from now on.
pub(super) fn follow(configuration: &Configuration, view: &View) {
    match configuration.alerts.rules() {
        Ok(rules) => view.set_rules(rules),
        // A configuration that was read has been checked for it.
        Err(error) => log::error(&error.to_string()),
    }
}
