//! Agents that know more of the job than the store does.

use std::num::NonZeroU64;

use super::*;
use crate::coordinator::Behind;
use crate::epoch::JobIdentity;

impl Cluster {
    /// Two nodes that run a job that is named, with a spare.
    fn named(identity: u64) -> Self {
        let mut cluster = Self::leading(2, Policy::default());
        cluster.name(identity);
        ["a", "b", "c"].into_iter().for_each(|node| cluster.register(node));
        cluster.pass(SECOND);
        assert!(cluster.coordinator.runs());
        cluster
    }

    fn name(&mut self, identity: u64) {
        let identity = NonZeroU64::new(identity).unwrap();
        self.coordinator.name_new_job(JobIdentity::new(identity));
    }

    /// Another coordinator begins, with this store; agents register with it as what they are.
    fn begin_again(&mut self, store: Option<(StoredState, Revision)>, resets: bool) {
        let job = Job {
            name: "job".to_owned(),
            slots: 2,
            workers: WorkersPerNode::new(self.workers).unwrap(),
        };
        self.coordinator = Coordinator::new(job, Policy::default()).unwrap();
        if resets {
            self.coordinator.reset_other_job();
        }
        self.name(2);
        self.store = store;
        (self.orders, self.decisions) = (Vec::new(), Vec::new());
        self.lead(9);
        let nodes: Vec<NodeName> = self.nodes.keys().cloned().collect();
        nodes.iter().for_each(|node| self.register_as_is(node.as_str()));
    }

    fn behind(&self) -> Option<(u64, u64, bool)> {
        let behind: Option<Behind> = self.coordinator.behind();
        behind.map(|it| (it.known.number(), it.stored.number(), it.is_empty))
    }

    /// Agents that are not welcomed register each second.
    fn register_on(&mut self, nodes: &[&str], seconds: u32) {
        for _ in 0..seconds {
            nodes.iter().for_each(|node| self.register_as_is(node));
            self.now = self.now.after(SECOND);
            self.input(Input::Tick);
        }
    }
}

#[test]
fn an_empty_store_begins_nothing_while_agents_know_the_job() {
    let mut cluster = Cluster::named(1);
    cluster.begin_again(None, false);
    assert_eq!(cluster.behind(), Some((1, 0, true)));
    // Whoever is new is not taken either, or the job would begin without the others.
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    cluster.register_on(&["a", "b", "c"], 20);
    assert_eq!((cluster.decisions.len(), cluster.orders.len()), (0, 0));
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::Behind));
    let told = cluster.coordinator.behind().unwrap().to_string();
    for words in ["it is empty", "nodes a, b, c know of epoch 1", "--reset-job", "Restore it"] {
        assert!(told.contains(words), "{told}");
    }
    // They end: nobody knows more.
    for node in ["a", "b", "c"] {
        cluster.nodes.remove(&name(node));
    }
    ["x", "y"].into_iter().for_each(|node| cluster.lose(node));
    cluster.pass(6 * SECOND);
    assert_eq!(cluster.behind(), None);
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("x y", 1));
}

#[test]
fn a_shorter_store_commands_nobody() {
    let mut cluster = Cluster::named(1);
    let copy = cluster.store.clone();
    assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
    let whole = cluster.store.clone();
    cluster.begin_again(copy, false);
    assert_eq!(cluster.behind(), Some((2, 1, false)));
    cluster.register_on(&["a", "b"], 20);
    assert!(cluster.decisions.is_empty());
    assert!(cluster.orders.iter().all(|(_, message)| message.order == Order::Welcome));
    // With the store that they know it goes on as if nothing had been.
    cluster.begin_again(whole, false);
    cluster.pass(10 * SECOND);
    assert_eq!((cluster.behind(), cluster.epoch(), cluster.coordinator.runs()), (None, 2, true));
    assert!(cluster.orders.iter().all(|(_, message)| message.order == Order::Welcome));
}

#[test]
fn an_operator_may_have_the_job_begin_anew() {
    for is_empty in [true, false] {
        let mut cluster = Cluster::named(1);
        let copy = cluster.store.clone().filter(|_| !is_empty);
        assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
        cluster.begin_again(copy, true);
        cluster.register_on(&["a", "b", "c"], 1);
        cluster.pass(SECOND);
        // Epochs count on, so that nobody takes what comes for what was.
        assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 3), "{is_empty}");
        assert!(cluster.coordinator.runs());
        assert_eq!((cluster.behind(), cluster.state().failures.len()), (None, 0));
        for node in ["a", "b"] {
            let forgets = |(to, message): &(NodeName, ToNode)| {
                to.as_str() == node && matches!(message.order, Order::Forget(_))
            };
            assert!(cluster.orders.iter().any(forgets), "{node} heard a later leader");
        }
    }
}

#[test]
fn who_comes_late_is_ended_too_where_an_operator_wants_it() {
    let mut cluster = Cluster::named(1);
    let late = cluster.nodes.clone();
    cluster.nodes.clear();
    cluster.begin_again(None, true);
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("x y", 1));
    cluster.nodes.extend(late);
    cluster.register_on(&["a", "b", "c"], 2);
    assert!(
        cluster.nodes.values().all(|node| node.known.is_none_or(|known| known.job.number() == 2))
    );
    assert_eq!((cluster.map().as_str(), cluster.coordinator.runs()), ("x y", true));
    assert_eq!((cluster.behind(), cluster.strays.len()), (None, 0));
}

#[test]
fn an_agent_of_another_job_is_not_taken_and_not_stopped() {
    let mut cluster = Cluster::named(1);
    cluster.register("d");
    let stray = cluster.nodes.get_mut(&name("d")).unwrap();
    let job = JobIdentity::new(NonZeroU64::new(77).unwrap());
    let epoch = Epoch::new(40);
    stray.known = Some(KnownJob { job, epoch });
    stray.activity = Activity::Committed(epoch);
    stray.incarnation += 1;
    cluster.orders.clear();
    for _ in 0..3 {
        cluster.register_as_is("d");
    }
    assert_eq!(cluster.strays, [name("d")], "it is told once");
    assert!(cluster.orders.iter().all(|(node, _)| node.as_str() != "d"));
    assert!(cluster.refusals.contains(&(name("d"), Stale::OtherJob)));
    // This job is not concerned.
    cluster.fail("b", WorkerEnd::Signal(9));
    assert_eq!((cluster.epoch(), cluster.coordinator.runs(), cluster.behind()), (2, true, None));
}

#[test]
fn an_agent_that_ran_nothing_hinders_nobody() {
    let mut cluster = Cluster::leading(2, Policy::default());
    cluster.name(1);
    // A first decision before the job has begun.
    assert_eq!(cluster.operate(OperatorOrder::SetMode(crate::policy::Mode::Act)), Ok(()));
    cluster.register("a");
    cluster.begin_again(None, false);
    cluster.register("b");
    assert_eq!((cluster.map().as_str(), cluster.epoch()), ("a b", 1));
}
