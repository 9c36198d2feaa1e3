//! The dashboard answers who holds the memory: its queries run in a real Prometheus that scrapes a
//! Galaxy with 64 processes, five of them of one name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use telltale_harness::{needs_root, wait_until};
use telltale_schema::memory::MemorySpace;
use telltale_schema::snapshot::Process;

use crate::cli::command::TIMEOUT;
use crate::deploy::dashboard::{Dashboard, RANGE_SECONDS};
use crate::deploy::galaxy::{ALIKE, ANOTHER, Galaxy, OF_ANOTHER, TOKEN, WORKLOADS, held_bytes};
use crate::deploy::prometheus::{Prometheus, Series};

const TABLE: &str = "Who holds it";
const STACK: &str = "Memory by process";

/// Queries of the dashboard that have nothing to return here: no workload is in a pod or has a program
/// cache, and no source of the machine says how busy a chip is.
const EMPTY: [(&str, &str); 3] =
    [(TABLE, "E"), ("Busy", "A"), ("Programs found in the cache", "A")];

/// A Galaxy that a Prometheus scrapes, and the dashboard.
struct ScrapedGalaxy {
    galaxy: Galaxy,
    prometheus: Prometheus,
    dashboard: Dashboard,
}

impl ScrapedGalaxy {
    /// None without root or Prometheus, which is recorded for `test`.
    fn start(test: &str) -> Option<Self> {
        if !needs_root(test) {
            return None;
        }
        let galaxy = Galaxy::start();
        let prometheus = Prometheus::start(test, &galaxy.address, TOKEN)?;
        let it = Self { galaxy, prometheus, dashboard: Dashboard::read() };
        it.wait_for(WORKLOADS);
        Some(it)
    }

    /// Waits until so many processes are scraped, each on one device.
    fn wait_for(&self, count: usize) {
        wait_until("the processes to be scraped", TIMEOUT, || {
            let found = self.prometheus.now("telltale_holder_memory_live_bytes{space=\"l1\"}");
            found.len() == count
        });
    }

    /// What a query returns now, with these values of variables.
    #[track_caller]
    fn now(&self, panel: &str, ref_id: &str, chosen: &[(&str, &str)]) -> Vec<Series> {
        self.prometheus.now(&self.dashboard.query(panel, ref_id, chosen))
    }

    /// How many rows the table has, and series the stack.
    fn counts(&self, chosen: &[(&str, &str)]) -> [usize; 2] {
        [TABLE, STACK].map(|panel| self.now(panel, "A", chosen).len())
    }
}

/// The values by pid, which is another one in each series.
#[track_caller]
fn by_pid(series: &[Series]) -> BTreeMap<u32, u64> {
    let pair = |one: &Series| (one.label("pid").parse().unwrap(), one.values[0] as u64);
    let found: BTreeMap<u32, u64> = series.iter().map(pair).collect();
    assert_eq!(found.len(), series.len(), "{series:?}");
    found
}

/// What the snapshot has of these processes, in a space or, without one, in DRAM and L1.
fn expected<'a>(
    processes: impl IntoIterator<Item = &'a Process>,
    space: Option<MemorySpace>,
) -> BTreeMap<u32, u64> {
    let spaces = space.map_or(vec![MemorySpace::Dram, MemorySpace::L1], |space| vec![space]);
    let bytes = |process| spaces.iter().map(|space| held_bytes(process, *space)).sum();
    processes.into_iter().map(|process| (process.pid.unwrap(), bytes(process))).collect()
}

fn sum(series: &[Series]) -> u64 {
    series.iter().map(|one| one.values[0] as u64).sum()
}

#[test]
fn the_dashboard_says_who_holds_the_memory_of_a_galaxy() {
    let test = "deploy::who::the_dashboard_says_who_holds_the_memory_of_a_galaxy";
    let Some(mut it) = ScrapedGalaxy::start(test) else { return };
    five_of_one_name_are_five_rows_with_all_columns(&it);
    five_of_one_name_are_five_series_that_add_up(&it);
    the_biggest_are_shown_and_the_rest_is_one_series(&it);
    variables_select(&it);
    every_query_is_answered(&it);
    one_that_ended_stays_in_the_stack(&mut it);
    it.galaxy.end();
}

fn five_of_one_name_are_five_rows_with_all_columns(it: &ScrapedGalaxy) {
    let device = it.galaxy.snapshot.devices[0].id.as_str();
    let column = |ref_id| it.now(TABLE, ref_id, &[("device", device)]);
    let alike = it.galaxy.holders(0);
    assert_eq!(alike.len(), ALIKE);
    let rows = column("A");
    let dram = expected(alike.iter().copied(), Some(MemorySpace::Dram));
    assert_eq!(by_pid(&rows), dram);
    for row in &rows {
        let labels = ["instance", "process", "device"].map(|name| row.label(name));
        assert_eq!(labels, [it.galaxy.address.as_str(), "train", device]);
    }
    assert_eq!(by_pid(&column("B")), expected(alike.iter().copied(), Some(MemorySpace::L1)));
    // Each has freed a mebibyte.
    let peaks = dram.iter().map(|(pid, bytes)| (*pid, bytes + (1 << 20)));
    assert_eq!(by_pid(&column("C")), peaks.collect());
    // Grafana makes one row of those that have all labels in common.
    let labels = |series: &[Series]| -> BTreeSet<BTreeMap<String, String>> {
        series.iter().map(|one| one.labels().clone()).collect()
    };
    for ref_id in ["B", "C", "D"] {
        assert_eq!(labels(&column(ref_id)), labels(&rows), "{ref_id}");
    }
    let taken_ms = it.galaxy.snapshot.taken_at.0 as f64 / 1e6;
    for since in column("D") {
        let age_ms = taken_ms - since.values[0];
        assert!((-1_000.0..600_000.0).contains(&age_ms), "{since:?}");
    }
}

fn five_of_one_name_are_five_series_that_add_up(it: &ScrapedGalaxy) {
    let chosen = [("device", it.galaxy.snapshot.devices[0].id.as_str())];
    let stacked = by_pid(&it.now(STACK, "A", &chosen));
    assert_eq!(stacked, expected(it.galaxy.holders(0), None));
    assert_eq!(stacked.values().sum::<u64>(), it.galaxy.used_bytes(Some(0)));
    assert_eq!(sum(&it.now(STACK, "B", &chosen)), 0, "nothing is left for others");
}

fn the_biggest_are_shown_and_the_rest_is_one_series(it: &ScrapedGalaxy) {
    let all = expected(&it.galaxy.snapshot.processes, None);
    let mut ranked: Vec<(u32, u64)> = all.into_iter().collect();
    ranked.sort_by_key(|(_, bytes)| Reverse(*bytes));
    for top in [1, 5, 50] {
        let text = top.to_string();
        let chosen = [("top", text.as_str())];
        let stacked = it.now(STACK, "A", &chosen);
        assert_eq!(by_pid(&stacked), ranked[..top].iter().copied().collect(), "{top}");
        let table: BTreeSet<u32> = by_pid(&it.now(TABLE, "A", &chosen)).into_keys().collect();
        assert_eq!(table, ranked[..top].iter().map(|(pid, _)| *pid).collect(), "{top}");
        let rest = it.now(STACK, "B", &chosen);
        assert_eq!(rest.len(), 1);
        assert_eq!(sum(&stacked) + sum(&rest), it.galaxy.used_bytes(None), "{top}");
    }
    // What it costs: five series for each process on one device.
    let series = it.prometheus.now("count({__name__=~\"telltale_holder_.+\"})");
    assert_eq!(sum(&series), 5 * u64::try_from(WORKLOADS).unwrap());
}

fn variables_select(it: &ScrapedGalaxy) {
    let devices: BTreeSet<&str> =
        it.galaxy.snapshot.devices.iter().map(|device| device.id.as_str()).collect();
    let user = it.galaxy.holders(0)[0].user.value().unwrap().as_str();
    let another = ANOTHER.to_string();
    let known = [
        ("instance", BTreeSet::from([it.galaxy.address.as_str()])),
        ("device", devices.clone()),
        ("user", BTreeSet::from([user, &another])),
    ];
    for ((name, selector, label), (expected_name, values)) in
        it.dashboard.asked_for().iter().zip(known)
    {
        assert_eq!(name, expected_name);
        let found = it.prometheus.label_values(selector, label);
        assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), values, "{name}");
    }
    let all = ("top", "100");
    assert_eq!(it.counts(&[all]), [WORKLOADS; 2]);
    assert_eq!(it.counts(&[all, ("user", user)]), [WORKLOADS - OF_ANOTHER; 2]);
    assert_eq!(it.counts(&[all, ("user", &another)]), [OF_ANOTHER; 2]);
    assert_eq!(it.counts(&[all, ("instance", "elsewhere")]), [0; 2]);
    let some = it.galaxy.snapshot.devices[..2].iter().map(|device| device.id.as_str());
    // As Grafana writes several values.
    let two = format!("({})", some.collect::<Vec<_>>().join("|"));
    let held = ALIKE + it.galaxy.holders(1).len();
    assert_eq!(it.counts(&[all, ("device", &two)]), [held; 2]);
    // What others hold is in use on the devices all the same.
    let theirs = [all, ("user", another.as_str())];
    let parts = ["A", "B"].map(|ref_id| sum(&it.now(STACK, ref_id, &theirs)));
    assert_eq!(parts.iter().sum::<u64>(), it.galaxy.used_bytes(None));
    assert!(parts[1] > 0);
}

fn every_query_is_answered(it: &ScrapedGalaxy) {
    let queries = it.dashboard.queries();
    // A rate needs a second scrape.
    wait_until("each query to return something", TIMEOUT, || {
        let empty = queries.iter().filter(|query| {
            let text = it.dashboard.filled_in(query, &[]);
            let found = match query.is_instant {
                true => it.prometheus.now(&text),
                false => it.prometheus.lately(&text, RANGE_SECONDS),
            };
            found.is_empty()
        });
        empty.map(|query| (&*query.panel, &*query.ref_id)).eq(EMPTY)
    });
}

/// The stack is bounded by who had most in the time shown, and not by who has it at each moment.
fn one_that_ended_stays_in_the_stack(it: &mut ScrapedGalaxy) {
    let device = it.galaxy.snapshot.devices[0].id.clone();
    it.galaxy.workloads[0].kill();
    it.wait_for(WORKLOADS - 1);
    let chosen = [("device", device.as_str()), ("top", "5")];
    assert_eq!(it.counts(&chosen), [ALIKE - 1; 2]);
    let stack = it.dashboard.query(STACK, "A", &chosen);
    assert_eq!(it.prometheus.lately(&stack, RANGE_SECONDS).len(), ALIKE);
}
