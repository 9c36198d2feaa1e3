//! Samples of health: how the machine around its devices is, and each thing that is wrong.

use telltale_schema::health::HealthState;
use telltale_schema::metric::definitions::{FAULT, HOST_HEALTH};
use telltale_schema::snapshot::Snapshot;
use telltale_wire::exposition::Number;

use super::Samples;
use super::label_sets::SetId;

/// Adds all of them. That of each device is with its other samples.
pub(super) fn add<'a>(samples: &mut Samples<'a>, snapshot: &'a Snapshot) {
    let present = snapshot.host_health().state;
    let possible = HealthState::ALL.into_iter().filter(|state| *state != HealthState::Unknown);
    for state in possible {
        let set = samples.sets.one("state", state.name());
        let is_present = Number::Whole(u64::from(state == present));
        samples.put(HOST_HEALTH, [set, SetId::default(), SetId::default()], is_present);
    }
    for (name, fault) in snapshot.wrong() {
        let (device, part) = if fault.part.is_empty() { (name, "") } else { ("", name) };
        let labels = [
            ("device", device),
            ("part", part),
            ("fault", fault.kind.name()),
            ("state", fault.kind.state().name()),
        ];
        let set = samples.sets.of(labels.map(|(label, value)| (label.into(), value.into())));
        samples.put(FAULT, [set, SetId::default(), SetId::default()], Number::Whole(1));
    }
}
