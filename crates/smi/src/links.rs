//! What to say of PCIe links that are less than device and slot can do.

use telltale_schema::sensor::SENSORS;
use telltale_schema::snapshot::{Device, LinkState};

use crate::faults::named;

/// What a device's link is, where it is known: `4.0 x16`, and how it stands.
pub(crate) fn words(device: &Device) -> Option<(String, LinkState)> {
    let link = device.telemetry.link.as_deref()?;
    let state = link.state(&device.identity).unwrap_or(LinkState::Full);
    Some((link.words().value()?.clone(), state))
}

/// What goes over it, where that is known: `received 1.5 GiB/s, sent 0 B/s`.
pub(crate) fn rates(device: &Device) -> Option<String> {
    let rates = SENSORS
        .iter()
        .filter(|sensor| sensor.part == Some("link") && sensor.metric.rate_of.is_some());
    let words: Vec<String> = rates
        .filter_map(|sensor| {
            let value = *sensor.read(&device.telemetry)?.value()?;
            let name = sensor.title.strip_prefix("PCIe ").unwrap_or(sensor.title);
            Some(format!("{name} {}", sensor.text(value.as_f64(), sensor.decimals)))
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The NUMA node that it is near, where that is known.
pub(crate) fn near(device: &Device) -> Option<String> {
    let link = device.telemetry.link.as_deref()?;
    link.numa_node.value().map(|node| format!("NUMA node {node}"))
}

/// Whether it is known to be less than device and slot can do.
pub(crate) fn is_reduced(device: &Device) -> bool {
    matches!(words(device), Some((_, LinkState::Reduced)))
}

/// A line for each kind of link that is reduced, with the devices that have it.
pub(crate) fn reduced(devices: &[Device]) -> Vec<String> {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for device in devices {
        let Some((words, LinkState::Reduced)) = words(device) else { continue };
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, ids)) => ids.push(&device.id),
            None => kinds.push((words, vec![&device.id])),
        }
    }
    let line = |(words, ids): (String, Vec<&str>)| format!("{}: PCIe link {words}", named(&ids));
    kinds.into_iter().map(line).collect()
}
