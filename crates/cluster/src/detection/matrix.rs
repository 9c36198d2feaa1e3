//! The matrix of latencies between nodes: for each pair what is usual and how it is now.
//!
//! Latencies are kept by key: process group, ranks, direction and size. All keys of one pair of
//! nodes are joined into one *cell* of the matrix once each is relative to its own usual level.
//! What all keys of a class (same group, direction and size) share is taken off first, since it
//! says nothing about anybody: a checkpoint, a busy hour. What some of them share may be a fault, so
//! a class is checked when all of its keys have a new window: edges with few transfers have one in
//! some evaluations only, and those that happen to have one in the same evaluation may be those of one slow node.
//! Who is at fault is decided elsewhere.
//!
//! A transfer that was measured while its rank, or the peer's, waited for others too is another kind of
//! measurement: such windows have keys, classes and cells of their own, which are *held up*.

use std::collections::BTreeMap;

use crate::detection::cadence::Cadence;
use crate::detection::cold_start;
use crate::detection::history::{Change, Level};
use crate::detection::late::LateEnds;
use crate::detection::members::{Members, place};
use crate::detection::sharing::{KeyClass, Sharing, UNAFFECTED_PART};
use crate::group::GroupId;
use crate::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket};

/// Keys that are kept at once.
pub(super) const MAX_KEYS: usize = 4_000_000;
/// Looks without a latency after which a key is dropped when the epoch changes.
const IDLE_EVALUATIONS: u32 = 600;
/// Latencies from which on a median says something though one of them is a spike. Windows of fewer are joined.
const ROBUST_COUNT: u32 = 3;
/// By how much more a latency must grow where what the whole job shares is unknown, in logarithms: a factor of 1.2,
/// by which the load of a healthy job comes and goes.
const UNTOLD_LOAD: f32 = 0.18;
/// Looks that a class waits at least for those of its keys that are due.
const WAITING_WINDOWS: u32 = 10;

/// Latencies that were not taken, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatrixCounts {
    /// The rank does not run on the node that reported it, or nowhere.
    pub foreign: u64,
    /// Both ends are on one node.
    pub within_node: u64,
    /// There were too many keys.
    pub no_place: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Matrix {
    keys: Vec<KeyRow>,
    key_numbers: BTreeMap<(EdgeKey, Ends), u32>,
    cells: Vec<MatrixCell>,
    cell_numbers: BTreeMap<Ends, u32>,
    classes: Vec<Class>,
    class_numbers: BTreeMap<(GroupId, Direction, SizeBucket, bool), u32>,
    /// The classes that are checked together.
    units: Vec<Vec<u32>>,
    /// Whether there are keys that are in none.
    has_new_keys: bool,
    /// For each node, the keys of its last report in order: the next has mostly the same.
    last_order: Vec<Vec<(EdgeKey, bool, u32)>>,
    late: LateEnds,
    cells_of_node: Vec<Vec<u32>>,
    evaluations: u32,
    counts: MatrixCounts,
    sharing: Sharing,
}

/// What a cell is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    from: u32,
    to: u32,
    is_held_up: bool,
}

#[derive(Debug, Clone)]
pub(super) struct KeyRow {
    pub(super) cell: u32,
    pub(super) level: Level,
    /// Whether the level is known and was not yet compared with those of the others.
    pub(super) is_unchecked: bool,
    /// How much of what its cell has moved by it has.
    moved: f32,
    /// The windows that were not checked yet: their sum, in logarithms, and how many they are.
    sum: f32,
    windows: u16,
    /// Windows of too few latencies.
    thin: Thin,
    /// Whether one of them came since the last evaluation.
    is_new: bool,
    /// Since how many evaluations the first of them waits.
    waits: u32,
    /// How much slower than usual it was when it was last checked.
    residual: f32,
    cadence: Cadence,
}

#[derive(Debug, Clone)]
pub(super) struct MatrixCell {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Whether its latencies also hold what others kept its ranks waiting.
    pub(super) is_held_up: bool,
    pub(super) change: Change,
    /// The usual level with what is common to the class, as it was last.
    pub(super) usual: f32,
    /// Whether what its job shares is taken off its latencies. Not all jobs show it.
    is_shared_known: bool,
    /// By how much the usual levels of its keys have been moved, since it got faster for good.
    moved: f32,
    sum: f32,
    summed: u16,
    cadence: Cadence,
}

/// Windows that wait for others, until they have [`ROBUST_COUNT`] latencies together.
#[derive(Debug, Clone, Copy, Default)]
struct Thin {
    /// What the windows say; as many as `windows`.
    values: [f32; MOST_THIN],
    windows: usize,
    latencies: u32,
}

/// Each has a latency at least.
const MOST_THIN: usize = ROBUST_COUNT as usize;

/// From where on an edge counts as slow, in natural logarithms.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlowFrom {
    /// The smallest factor that matters.
    pub(super) meaningful: f32,
    /// The smallest latency that matters, in nanoseconds.
    pub(super) threshold: f32,
}

impl SlowFrom {
    /// Whether an edge that is `level` above its usual takes long enough to matter.
    pub(super) fn is_long(self, cell: &MatrixCell, level: f32) -> bool {
        cell.usual + level >= self.threshold
    }

    /// How far above its usual an edge must be.
    pub(super) const fn least(self, cell: &MatrixCell) -> f32 {
        self.meaningful + if cell.is_shared_known { 0.0 } else { UNTOLD_LOAD }
    }

    /// Whether an edge that is `level` above its usual is slow.
    pub(super) fn is_slow(self, cell: &MatrixCell, level: f32) -> bool {
        level >= self.least(cell) && self.is_long(cell, level)
    }
}

#[derive(Debug, Clone, Default)]
struct Class {
    keys: Vec<u32>,
    is_unchecked: bool,
    /// Nodes that wait for others differ by their places, and are not compared.
    is_held_up: bool,
}

/// Which keys of a class are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// None yet: some are due that have no new window.
    No,
    /// Those with a new window, which are all that are due but for one in ten at most.
    All,
    /// The same, though more are due: they have been waited for long enough.
    Some,
}

/// Keys that are due.
#[derive(Debug, Clone, Copy, Default)]
struct DueKeys {
    /// Those with a new window, and those without.
    new: usize,
    missing: usize,
    /// Whether one of the first has waited for long enough.
    for_long: bool,
}

impl DueKeys {
    const fn ready(self) -> Ready {
        if self.new == 0 {
            Ready::No
        } else if self.missing * UNAFFECTED_PART <= self.missing + self.new {
            Ready::All
        } else if self.for_long {
            Ready::Some
        } else {
            Ready::No
        }
    }
}

impl Matrix {
    /// Takes the windows of one node's report.
    pub(super) fn observe(&mut self, node: u32, windows: &[EdgeWindow], members: &Members) {
        if self.last_order.len() < members.count() {
            self.last_order.resize(members.count(), Vec::new());
        }
        let mut order = std::mem::take(&mut self.last_order[place(node)]);
        for (position, window) in windows.iter().enumerate() {
            // Of another node's rank nothing is taken, and so not this.
            let is_own = members.of_rank(window.key.rank) == Some(node);
            let is_held_up = is_own && self.late.is_held_up(window);
            let number = match order.get(position) {
                Some((key, held_up, number)) if (*key, *held_up) == (window.key, is_held_up) => {
                    Some(*number)
                }
                _ => self.number(node, window.key, is_held_up, members),
            };
            let Some(number) = number else { continue };
            if position < order.len() {
                order[position] = (window.key, is_held_up, number);
            } else if position == order.len() {
                order.push((window.key, is_held_up, number));
            }
            let key = &mut self.keys[place(number)];
            // A clock of microseconds may say 0.
            let value = (window.window.median_ns.max(1) as f64).ln() as f32;
            key.add(value, window.window.count);
        }
        self.last_order[place(node)] = order;
    }

    /// The number of a key that `node` reported, new if need be.
    fn number(
        &mut self,
        node: u32,
        key: EdgeKey,
        is_held_up: bool,
        members: &Members,
    ) -> Option<u32> {
        let peer = members.of_rank(key.peer);
        let (Some(peer), true) = (peer, members.of_rank(key.rank) == Some(node)) else {
            self.counts.foreign += 1;
            return None;
        };
        if peer == node {
            self.counts.within_node += 1;
            return None;
        }
        let (from, to) = ends(key.direction, node, peer);
        let ends = Ends { from, to, is_held_up };
        if let Some(number) = self.key_numbers.get(&(key, ends)) {
            return Some(*number);
        }
        if self.keys.len() >= MAX_KEYS {
            self.counts.no_place += 1;
            return None;
        }
        let cell = self.cell_number(ends);
        let class = self.class_number(key, is_held_up);
        let number = u32::try_from(self.keys.len()).expect("MAX_KEYS fits in a u32");
        let moved = self.cells[place(cell)].moved;
        self.keys.push(KeyRow {
            cell,
            level: Level::new(),
            is_unchecked: false,
            moved,
            sum: 0.0,
            windows: 0,
            thin: Thin::default(),
            is_new: false,
            waits: 0,
            residual: 0.0,
            cadence: Cadence::new(self.evaluations),
        });
        self.key_numbers.insert((key, ends), number);
        self.classes[place(class)].keys.push(number);
        self.has_new_keys = true;
        Some(number)
    }

    fn cell_number(&mut self, ends: Ends) -> u32 {
        if let Some(number) = self.cell_numbers.get(&ends) {
            return *number;
        }
        let number = u32::try_from(self.cells.len()).expect("no more cells than keys");
        let Ends { from, to, is_held_up } = ends;
        self.cells.push(MatrixCell {
            from,
            to,
            is_held_up,
            change: Change::new(),
            usual: 0.0,
            is_shared_known: true,
            moved: 0.0,
            sum: 0.0,
            summed: 0,
            cadence: Cadence::new(self.evaluations),
        });
        self.cell_numbers.insert(ends, number);
        for end in [from, to] {
            if self.cells_of_node.len() <= place(end) {
                self.cells_of_node.resize(place(end) + 1, Vec::new());
            }
            self.cells_of_node[place(end)].push(number);
        }
        number
    }

    fn class_number(&mut self, key: EdgeKey, is_held_up: bool) -> u32 {
        let count = self.classes.len();
        let identity = (key.group, key.direction, key.bucket, is_held_up);
        let number = *self
            .class_numbers
            .entry(identity)
            .or_insert_with(|| u32::try_from(count).expect("no more classes than keys"));
        if place(number) == count {
            self.classes.push(Class { is_held_up, ..Class::default() });
        }
        number
    }

    /// Takes in what was reported since the last evaluation.
    pub(super) fn evaluate(&mut self) {
        self.evaluations += 1;
        if std::mem::take(&mut self.has_new_keys) {
            self.join_classes();
        }
        let units = std::mem::take(&mut self.units);
        for unit in &units {
            self.evaluate_unit(unit);
        }
        self.units = units;
        for class in self.classes.iter_mut().filter(|class| class.is_unchecked) {
            class.is_unchecked = !cold_start::compare(&class.keys, &mut self.keys, &self.cells);
        }
        for cell in &mut self.cells {
            if cell.summed == 0 {
                continue;
            }
            cell.change.push(cell.sum / f32::from(cell.summed));
            (cell.sum, cell.summed) = (0.0, 0);
            cell.cadence.mark(self.evaluations);
            cell.moved += cell.change.settle_faster();
        }
    }

    /// A class is judged by itself, unless it is of two nodes: what is common to more cannot be separated there. Those
    /// of the same direction and size are checked together.
    fn join_classes(&mut self) {
        let mut pairs: BTreeMap<(Direction, SizeBucket, bool), Vec<u32>> = BTreeMap::new();
        self.units.clear();
        for ((_, direction, bucket, is_held_up), number) in &self.class_numbers {
            let mut ends = self.classes[place(*number)].keys.iter().map(|key| {
                let MatrixCell { from, to, .. } = self.cells[place(self.keys[place(*key)].cell)];
                (from.min(to), from.max(to))
            });
            let first = ends.next();
            if ends.all(|one| Some(one) == first) {
                pairs.entry((*direction, *bucket, *is_held_up)).or_default().push(*number);
            } else {
                self.units.push(vec![*number]);
            }
        }
        self.units.extend(pairs.into_values());
    }

    fn evaluate_unit(&mut self, unit: &[u32]) {
        let mut waiting = DueKeys::default();
        for class in unit {
            self.prepare(*class, &mut waiting);
        }
        let ready = waiting.ready();
        if ready == Ready::No {
            return;
        }
        for class in unit {
            self.share(*class, ready);
        }
        let shared = self.sharing.take();
        for class in unit {
            self.evaluate_class(*class, shared);
        }
    }

    /// Has the keys of a class that do not know yet what is usual learn, and counts which of the others can be looked
    /// at now.
    fn prepare(&mut self, class: u32, waiting: &mut DueKeys) {
        let Class { keys, is_unchecked, is_held_up } = &mut self.classes[place(class)];
        for number in keys.iter() {
            let key = &mut self.keys[place(*number)];
            if std::mem::take(&mut key.is_new) {
                key.cadence.mark(self.evaluations);
            }
            let cell = &mut self.cells[place(key.cell)];
            if key.moved != cell.moved {
                key.level.move_by(cell.moved - key.moved);
                key.moved = cell.moved;
            }
            if key.level.centre().is_none() {
                if key.windows > 0 {
                    let value = key.take();
                    if let Some(scale) = key.level.learn(value) {
                        cell.change.learn_scale(scale);
                        key.is_unchecked = !*is_held_up;
                        *is_unchecked |= key.is_unchecked;
                    }
                }
                continue;
            }
            if key.windows > 0 {
                key.waits += 1;
                waiting.new += 1;
                waiting.for_long |= key.waits > WAITING_WINDOWS.max(2 * key.cadence.gap());
            } else if key.cadence.is_kept(self.evaluations) {
                waiting.missing += 1;
            }
        }
    }

    /// Adds by how much each key of a class that is checked is slower than usual. Where more are due, those have
    /// what they had.
    fn share(&mut self, class: u32, ready: Ready) {
        for number in &self.classes[place(class)].keys {
            let key = &self.keys[place(*number)];
            let Some(centre) = key.level.centre() else { continue };
            let MatrixCell { from, to, change, .. } = &self.cells[place(key.cell)];
            if key.windows > 0 {
                self.sharing.add(key.mean() - centre, change.scale(), *from, *to);
            } else if ready == Ready::Some && key.cadence.is_kept(self.evaluations) {
                self.sharing.add(key.residual, change.scale(), *from, *to);
            }
        }
    }

    fn evaluate_class(&mut self, class: u32, shared: KeyClass) {
        let KeyClass { shift, is_known } = shared;
        for number in &self.classes[place(class)].keys {
            let key = &mut self.keys[place(*number)];
            let Some(centre) = key.level.centre() else { continue };
            if key.windows == 0 {
                continue;
            }
            let cell = &mut self.cells[place(key.cell)];
            key.residual = key.take() - centre;
            let residual = key.residual - shift;
            cell.sum += residual;
            cell.summed = cell.summed.saturating_add(1);
            cell.usual = centre + shift;
            cell.is_shared_known = is_known;
            if cell.change.is_calm() {
                key.level.follow(residual, cell.change.scale());
            }
        }
    }

    /// Forgets what is no longer reported, for a new epoch.
    pub(super) fn forget_idle(&mut self) {
        let evaluations = self.evaluations;
        let is_kept =
            |key: &KeyRow| key.cadence.last().saturating_add(IDLE_EVALUATIONS) >= evaluations;
        self.last_order.clear();
        self.late.clear();
        if self.keys.iter().all(is_kept) {
            return;
        }
        let old = std::mem::take(self);
        self.evaluations = old.evaluations;
        self.counts = old.counts;
        self.has_new_keys = true;
        for ((edge, ends), number) in old.key_numbers {
            let key = &old.keys[place(number)];
            if !is_kept(key) {
                continue;
            }
            let cell = self.cell_number(ends);
            self.cells[place(cell)] = old.cells[place(key.cell)].clone();
            let class = self.class_number(edge, ends.is_held_up);
            let number = u32::try_from(self.keys.len()).expect("MAX_KEYS fits in a u32");
            self.keys.push(KeyRow { cell, ..key.clone() });
            self.key_numbers.insert((edge, ends), number);
            let class = &mut self.classes[place(class)];
            class.keys.push(number);
            class.is_unchecked |= key.is_unchecked;
        }
    }

    /// All cells.
    pub(super) fn cells(&self) -> &[MatrixCell] {
        &self.cells
    }

    /// The cell from one node to another, of transfers that were not held up.
    pub(super) fn cell(&self, from: u32, to: u32) -> Option<&MatrixCell> {
        let ends = Ends { from, to, is_held_up: false };
        Some(&self.cells[place(*self.cell_numbers.get(&ends)?)])
    }

    /// The cells that touch a node and say something about the present.
    pub(super) fn all_cells_of(&self, node: u32) -> impl Iterator<Item = &MatrixCell> {
        let numbers = self.cells_of_node.get(place(node)).into_iter().flatten();
        numbers.map(|number| &self.cells[place(*number)]).filter(|cell| self.is_present(cell))
    }

    /// Those of them that report their two nodes alone: no transfer of theirs was held up by others.
    pub(super) fn cells_of(&self, node: u32) -> impl Iterator<Item = &MatrixCell> {
        self.all_cells_of(node).filter(|cell| !cell.is_held_up)
    }

    /// What is usual of each key that is still reported, as a logarithm, with its cell.
    pub(super) fn usual_of_keys(&self) -> impl Iterator<Item = (&MatrixCell, f32)> {
        let kept = self.keys.iter().filter(|key| key.cadence.is_kept(self.evaluations));
        kept.filter_map(|key| Some((&self.cells[place(key.cell)], key.level.centre()?)))
    }

    /// Whether transfers of a node are held up by others, and what is usual for some of them is not known yet.
    pub(super) fn learns_held_up(&self, node: u32) -> bool {
        self.keys.iter().any(|key| {
            let cell = &self.cells[place(key.cell)];
            cell.is_held_up
                && [cell.from, cell.to].contains(&node)
                && key.level.centre().is_none()
                && key.cadence.is_kept(self.evaluations)
        })
    }

    /// Whether the cell says something about the present.
    pub(super) fn is_present(&self, cell: &MatrixCell) -> bool {
        cell.change.last().is_some() && cell.cadence.is_kept(self.evaluations)
    }

    /// Whether the cell has said something not long ago.
    pub(super) fn is_recent(&self, cell: &MatrixCell) -> bool {
        cell.change.last().is_some()
            && cell.cadence.last().saturating_add(IDLE_EVALUATIONS) >= self.evaluations
    }

    /// Whether the cell has had a window since the evaluation before.
    pub(super) const fn is_news(&self, cell: &MatrixCell) -> bool {
        cell.cadence.last() == self.evaluations
    }

    /// What was not taken.
    pub(super) const fn counts(&self) -> MatrixCounts {
        self.counts
    }
}

/// The sender and the receiver of what `node` and `peer` pass to each other.
const fn ends(direction: Direction, node: u32, peer: u32) -> (u32, u32) {
    match direction {
        Direction::Send => (node, peer),
        Direction::Receive => (peer, node),
    }
}

// === impl KeyRow ===

impl KeyRow {
    /// Takes what one window says, which is of so many latencies.
    fn add(&mut self, value: f32, count: u32) {
        let Some(value) = self.thin.join(value, count) else { return };
        self.sum += value;
        self.windows = self.windows.saturating_add(1);
        self.is_new = true;
    }

    /// The mean of the windows that were not checked yet; there is one at least.
    fn mean(&self) -> f32 {
        debug_assert!(self.windows > 0, "only keys with a window are looked at");
        self.sum / f32::from(self.windows)
    }

    /// The same, and they are checked.
    fn take(&mut self) -> f32 {
        let mean = self.mean();
        (self.sum, self.windows, self.waits) = (0.0, 0, 0);
        mean
    }
}

// === impl Thin ===

impl Thin {
    /// What a window says together with those that waited for it, once they have enough latencies: the lower of those
    /// in the middle.
    fn join(&mut self, value: f32, count: u32) -> Option<f32> {
        self.values[self.windows] = value;
        self.windows += 1;
        self.latencies = self.latencies.saturating_add(count.max(1));
        if self.latencies < ROBUST_COUNT {
            return None;
        }
        let Self { mut values, windows, .. } = std::mem::take(self);
        values[..windows].sort_unstable_by(f32::total_cmp);
        Some(values[(windows - 1) / 2])
    }
}
