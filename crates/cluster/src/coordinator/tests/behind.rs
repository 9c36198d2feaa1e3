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
    // New nodes are not taken either, or the job would begin without the others.
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    cluster.register_on(&["a", "b", "c"], 20);
    assert_eq!((cluster.decisions.len(), cluster.orders.len()), (0, 0));
    assert_eq!(cluster.operate(OperatorOrder::Restart), Err(OrderRefused::Behind));
    let reported = cluster.coordinator.behind().unwrap().to_string();
    for words in ["it is empty", "nodes a, b, c know of epoch 1", "--reset-job", "Restore it"] {
        assert!(reported.contains(words), "{reported}");
    }
    // They end: nothing more is known.
    for node in ["a", "b", "c"] {
        cluster.nodes.remove(&name(node));
        cluster.input(Input::Closed { node: name(node) });
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
fn an_operator_may_have_the_job_begin_again() {
    for is_empty in [true, false] {
        let mut cluster = Cluster::named(1);
        let copy = cluster.store.clone().filter(|_| !is_empty);
        assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
        cluster.begin_again(copy, true);
        cluster.register_on(&["a", "b", "c"], 1);
        cluster.pass(SECOND);
        // Epochs count on, so that no message is taken for one of an earlier epoch.
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
    stray.activity = AgentActivity::Committed(epoch);
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

#[test]
fn a_network_that_is_cut_does_not_begin_a_second_job() {
    let mut cluster = Cluster::named(1);
    cluster.begin_again(None, false);
    let mut cut_off = std::mem::take(&mut cluster.nodes);
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    // What a proxy closes while no node was heard says nothing either.
    cluster.register_on(&["x", "y"], 4);
    cluster.input(Input::Closed { node: name("a") });
    cluster.register_on(&["x", "y"], 50);
    assert_eq!((cluster.behind(), cluster.decisions.len()), (Some((1, 0, true)), 0));
    cluster.nodes.append(&mut cut_off);
    cluster.register_on(&["a", "b", "c", "x", "y"], 2);
    assert_eq!((cluster.behind(), cluster.decisions.len()), (Some((1, 0, true)), 0));
    // Who is silent for as long as a crowd may be does not come back.
    cluster.register_on(&["x", "y"], 70);
    assert_eq!((cluster.behind(), cluster.map().as_str()), (None, "x y"));
}

#[test]
fn who_registers_while_nothing_is_decided_counts_as_heard() {
    let mut cluster = Cluster::named(1);
    let copy = cluster.store.clone();
    let mut ahead = cluster.nodes.remove(&name("a")).unwrap();
    ahead.known.as_mut().unwrap().epoch = Epoch::new(9);
    cluster.begin_again(copy, false);
    assert_eq!(cluster.behind(), None, "the others are welcome");
    cluster.nodes.insert(name("a"), ahead);
    cluster.register_on(&["a", "b", "c"], 20);
    assert_eq!(cluster.behind(), Some((9, 1, false)));
    cluster.lose("a");
    cluster.input(Input::Closed { node: name("a") });
    cluster.register_on(&["b", "c"], 8);
    cluster.pass(SECOND);
    assert_eq!((cluster.behind(), cluster.map().as_str()), (None, "c b"));
    assert_eq!((cluster.coordinator.runs(), cluster.state().failures.len()), (true, 0));
}

#[test]
fn an_epoch_that_no_job_reaches_leaves_room_for_the_next() {
    for lie in [Epoch::MAX.number(), u64::MAX] {
        let mut cluster = Cluster::named(1);
        let liar = cluster.nodes.get_mut(&name("c")).unwrap();
        let known = liar.known.unwrap();
        liar.known = Some(KnownJob { epoch: Epoch::new(lie), ..known });
        cluster.begin_again(None, true);
        cluster.register_on(&["a", "b", "c"], 1);
        cluster.pass(SECOND);
        assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (2, true));
        assert_eq!(cluster.operate(OperatorOrder::Restart), Ok(()));
        cluster.pass(SECOND);
        assert_eq!((cluster.epoch(), cluster.coordinator.runs()), (3, true));
    }
}

#[test]
fn long_after_a_reset_only_agents_of_jobs_that_were_ended_are_ended() {
    let mut cluster = Cluster::named(1);
    cluster.register("d");
    let mut late = cluster.nodes.clone();
    cluster.nodes.retain(|node, _| node.as_str() == "c");
    cluster.begin_again(None, true);
    ["x", "y"].into_iter().for_each(|node| cluster.register(node));
    cluster.pass(11 * 60 * SECOND);
    assert!(cluster.coordinator.runs());
    let stray = late.get_mut(&name("d")).unwrap();
    let (job, epoch) = (JobIdentity::new(NonZeroU64::new(77).unwrap()), Epoch::new(40));
    (stray.known, stray.activity) =
        (Some(KnownJob { job, epoch }), AgentActivity::Committed(epoch));
    late.remove(&name("c"));
    cluster.nodes.append(&mut late);
    cluster.orders.clear();
    cluster.register_on(&["a", "b", "d"], 2);
    let ended =
        cluster.orders.iter().filter(|(_, reported)| matches!(reported.order, Order::Forget(_)));
    let ended: Vec<&str> = ended.map(|(node, _)| node.as_str()).collect();
    assert_eq!((ended, cluster.strays.as_slice()), (vec!["a", "b"], &[name("d")][..]));
    assert_eq!(cluster.nodes[&name("d")].activity, AgentActivity::Committed(epoch));
}

#[test]
fn of_many_agents_that_know_more_a_few_are_named() {
    let mut cluster = Cluster::named(1);
    let known = cluster.nodes[&name("a")].clone();
    for number in 0..20 {
        cluster.nodes.insert(name(&format!("n{number:02}")), known.clone());
    }
    cluster.begin_again(None, false);
    let behind = cluster.coordinator.behind().unwrap();
    assert_eq!((behind.nodes.len(), behind.count), (8, 23));
    let text = behind.to_string();
    assert!(text.contains("nodes a, b, c, n00, n01, n02, n03, n04 and 15 more know"), "{text}");
}
