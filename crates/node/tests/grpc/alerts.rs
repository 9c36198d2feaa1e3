//! Alerts by gRPC.

use std::sync::Arc;

use telltale_node::alerts::{Alert, AlertState, AlertStates, Severity, Subject, VisibleAlerts};
use telltale_schema::memory::MemorySpace;

use crate::grpc::machine::{NOW, machine, own_metrics};
use crate::grpc::serving::{Served, wait};

#[test]
fn what_is_published_is_reported() {
    let mut served = Served::of(machine(1, 1));
    let ask = |served: &Served| wait(async { served.client().await.alerts().await.unwrap() });
    assert_eq!(ask(&served), VisibleAlerts::default());
    let alert = Alert {
        rule: String::from("device_memory_nearly_full"),
        severity: Severity::Warning,
        subject: Subject::Space { device: String::from("a"), space: MemorySpace::Dram },
        uid: None,
        state: AlertState::Firing,
        since: NOW,
        fired_at: Some(NOW),
        value: 0.97,
        text: String::from("it is nearly full"),
    };
    let alerts = vec![alert];
    let states = AlertStates { alerts: alerts.clone(), ..AlertStates::default() };
    served.publisher.set_alerts(Arc::new(states));
    served.publisher.publish(machine(1, 1), own_metrics());
    assert_eq!(ask(&served), VisibleAlerts { alerts, withheld: 0 });
}
