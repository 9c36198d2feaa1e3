//! What operators order.

use super::*;

#[test]
fn a_drained_node_leaves_when_a_spare_is_there() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    assert_eq!(cluster.operate(OperatorOrder::Drain(name("a"))), Ok(()));
    cluster.pass(SECOND);
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (1, "a b"));
    cluster.register("c");
    assert_eq!((cluster.epoch(), cluster.map().as_str()), (2, "c b"));
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.coordinator.figures().evictions, 0);
}

#[test]
fn a_removed_node_leaves_at_once_and_stays_away() {
    let mut cluster = Cluster::formed(2, &["a", "b"], Policy::default());
    assert_eq!(cluster.operate(OperatorOrder::Remove(name("b"))), Ok(()));
    cluster.register("b");
    cluster.pass(SECOND);
    assert_eq!((cluster.map().as_str(), &cluster.state().phase), ("a -", &Phase::Preparing));
    assert_eq!(cluster.operate(OperatorOrder::Readmit(name("b"))), Ok(()));
    assert_eq!(cluster.map(), "a b");
}

#[test]
fn an_order_that_cannot_be_carried_out_is_refused() {
    let mut cluster = Cluster::leading(1, Policy::default());
    let unknown = OrderRefused::UnknownNode { node: name("x") };
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotStarted));
    assert_eq!(cluster.operate(OperatorOrder::Drain(name("x"))), Err(unknown));
    cluster.register("a");
    cluster.refuses = Some(StoreOutcome::Failed);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotStored));
    cluster.input(Input::LeadershipLost);
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::NotLeading));
}

#[test]
fn orders_wait_for_the_store_and_not_without_bound() {
    let mut cluster = Cluster::formed(1, &["a"], Policy::default());
    cluster.refuses = Some(StoreOutcome::Unknown);
    cluster.input(Input::Operator { request: RequestId(0), order: OperatorOrder::Restart });
    for request in 1..=super::super::MAX_WAITING_ORDERS + 1 {
        let request = RequestId(u64::try_from(request).unwrap());
        cluster.input(Input::Operator { request, order: OperatorOrder::Restart });
    }
    assert_eq!(cluster.answers, [Err(OrderRefused::TooMany)]);
    // The same decision is given to the store until it answers.
    cluster.pass(2 * SECOND);
    let numbers: BTreeSet<_> = cluster.decisions.iter().skip(2).map(|one| one.number).collect();
    assert!(cluster.decisions.len() > 3 && numbers.len() == 1);
    cluster.refuses = None;
    cluster.pass(2 * SECOND);
    assert!(cluster.coordinator.runs());
    assert_eq!(cluster.answers.len(), super::super::MAX_WAITING_ORDERS + 2);
}
