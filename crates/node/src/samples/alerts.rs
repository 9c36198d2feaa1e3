//! Samples of alerts: how many of each rule fire, and what became of notifications.

use telltale_schema::metric::definitions::{
    ALERT_FIRING, ALERT_NOTIFICATIONS_TOTAL, ALERTS_DROPPED_TOTAL,
};
use telltale_wire::exposition::Number;

use super::label_sets::SetId;
use super::{Samples, place};
use crate::service::Published;

/// Adds all of them.
pub(super) fn add<'a>(samples: &mut Samples<'a>, published: &'a Published) {
    for definition in [ALERTS_DROPPED_TOTAL, ALERT_NOTIFICATIONS_TOTAL] {
        samples.families[place(definition)].created = Some(published.service.started_at);
    }
    let alerts = &published.alerts;
    for rule in &*alerts.rules {
        let labels = [("rule", rule.name.as_str()), ("severity", rule.severity.name())];
        let set = samples.sets.of(labels.map(|(name, value)| (name.into(), value.into())));
        let sets = [set, SetId::default(), SetId::default()];
        samples.put(ALERT_FIRING, sets, Number::Whole(alerts.firing(rule)));
    }
    samples.put(ALERTS_DROPPED_TOTAL, [SetId::default(); 3], Number::Whole(alerts.dropped));
    let reported = alerts.notifications;
    let results =
        [("sent", reported.sent), ("failed", reported.failed), ("dropped", reported.dropped)];
    for (result, count) in results {
        let result = samples.sets.one("result", result);
        let sets = [result, SetId::default(), SetId::default()];
        samples.put(ALERT_NOTIFICATIONS_TOTAL, sets, Number::Whole(count));
    }
}
