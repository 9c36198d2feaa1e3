//! A job whose nodes report each second what a test says.

use std::time::Duration;

use telltale_cluster::detection::{DetectionSettings, Detector};
use telltale_cluster::group::GroupId;
use telltale_cluster::latency::{
    Collective, Direction, EdgeKey, EdgeWindow, SizeBucket, WaitKey, WaitWindow, Window,
};
use telltale_cluster::node::NodeName;
use telltale_cluster::observation::{GroupProgress, Observation};
use telltale_cluster::rank::{Rank, RankMap, Slot, WorkersPerNode};
use telltale_cluster::time::Moment;
use telltale_cluster::verdict::{Suspects, Verdict, VerdictKind};

pub(crate) struct Job {
    pub(crate) detector: Detector,
    pub(crate) names: Vec<NodeName>,
    pub(crate) now: Moment,
    seconds: u64,
}

impl Job {
    /// A job of one worker on each of the nodes `a`, `b`, `c`, …
    pub(crate) fn of(nodes: u8) -> Self {
        let names = (0..nodes).map(|node| char::from(b'a' + node).to_string());
        Self::named(names.collect())
    }

    pub(crate) fn named(names: Vec<String>) -> Self {
        Self::with(names, DetectionSettings::default())
    }

    pub(crate) fn with(names: Vec<String>, settings: DetectionSettings) -> Self {
        let names: Vec<NodeName> = names.iter().map(|one| NodeName::new(one).unwrap()).collect();
        let (detector, now) = (Detector::new(settings), Moment::from_ns(7));
        let mut job = Self { detector, names, now, seconds: 0 };
        job.begin_epoch();
        job
    }

    pub(crate) fn begin_epoch(&mut self) {
        self.begin_epoch_of(1);
    }

    /// Begins an epoch with so many workers on each node.
    pub(crate) fn begin_epoch_of(&mut self, workers: u32) {
        let slots = u32::try_from(self.names.len()).unwrap();
        let mut map = RankMap::vacant(slots, WorkersPerNode::new(workers).unwrap());
        for (slot, name) in (0..).map(Slot).zip(&self.names) {
            assert!(map.fill(slot, name));
        }
        self.detector.set_ranks(self.now, &map);
    }

    /// A second passes, each node reports, and the detector looks. The windows of collectives say how many there are
    /// in a second; they are added up here.
    pub(crate) fn second(&mut self, report: impl Fn(u32) -> Option<Observation>) -> Vec<Verdict> {
        self.now = self.now.after(Duration::from_secs(1));
        self.seconds += 1;
        for (node, name) in (0..).zip(&self.names) {
            if let Some(mut observation) = report(node) {
                let waits = observation.waits.iter_mut();
                waits.for_each(|wait| wait.window.last_sequence *= self.seconds);
                assert!(self.detector.observe(self.now, name, &observation));
            }
        }
        self.detector.evaluate(self.now)
    }

    /// Seconds until something is said, and what; at most `limit`.
    pub(crate) fn seconds_until_verdict(
        &mut self,
        limit: u32,
        report: impl Fn(u32) -> Option<Observation>,
    ) -> Option<(u32, Vec<Said>)> {
        (1..=limit).find_map(|second| {
            let verdicts = self.second(&report);
            (!verdicts.is_empty()).then(|| (second, said(&verdicts)))
        })
    }
}

/// A verdict in short: its kind, whether it could tell, and whom it names.
pub(crate) type Said = (VerdictKind, bool, Vec<String>);

pub(crate) fn said(verdicts: &[Verdict]) -> Vec<Said> {
    let short = |verdict: &Verdict| {
        let is_certain = matches!(verdict.suspects, Suspects::One(_));
        let names = verdict.suspects.all().iter().map(ToString::to_string).collect();
        (verdict.kind, is_certain, names)
    };
    verdicts.iter().map(short).collect()
}

pub(crate) fn certain(kind: VerdictKind, name: &str) -> Said {
    (kind, true, vec![name.to_owned()])
}

pub(crate) fn progress(rank: u32, group: u64, entered: u64, finished: u64) -> GroupProgress {
    let (group, rank) = (GroupId::new(group), Rank(rank));
    let (sends_to, receives_from) = (Vec::new(), Vec::new());
    GroupProgress { group, rank, entered, finished, sends_to, receives_from, transferred: 0 }
}

pub(crate) fn at(progress: GroupProgress) -> Observation {
    Observation { progress: vec![progress], ..Observation::default() }
}

/// What `to` reports of receiving from `from`.
pub(crate) fn received(from: u32, to: u32, median_ns: u64) -> EdgeWindow {
    let key = EdgeKey {
        group: GroupId::WORLD,
        rank: Rank(to),
        peer: Rank(from),
        direction: Direction::Receive,
        bucket: SizeBucket::of(4096),
    };
    EdgeWindow { key, window: window(median_ns) }
}

/// What `from` reports of sending to `to`.
pub(crate) fn sent(from: u32, to: u32, median_ns: u64) -> EdgeWindow {
    let EdgeWindow { key, window } = received(to, from, median_ns);
    EdgeWindow { key: EdgeKey { direction: Direction::Send, ..key }, window }
}

pub(crate) fn waited(rank: u32, mean_ns: u64) -> WaitWindow {
    let key = WaitKey {
        group: GroupId::WORLD,
        rank: Rank(rank),
        collective: Collective::AllReduce,
        bucket: SizeBucket::of(4096),
    };
    WaitWindow { key, window: window(mean_ns) }
}

fn window(median_ns: u64) -> Window {
    Window {
        count: 100,
        mean_ns: median_ns,
        median_ns,
        deviation_ns: 0,
        high_ns: median_ns,
        last_sequence: 100,
        late: 0,
        overlapped: 0,
    }
}
