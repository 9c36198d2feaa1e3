//! The matrix of latencies between nodes: for each pair what is usual and how it is now.
//!
//! Latencies are kept by key: process group, ranks, direction and size. All keys of one pair of
//! nodes are joined into one *cell* of the matrix once each is relative to its own usual level.
//! What all keys of a class (same group, direction and size) share is taken off first, since it
//! says nothing about anybody: a checkpoint, a busy hour. Who is at fault is decided elsewhere.

use std::collections::BTreeMap;

use crate::detection::cold_start;
use crate::detection::history::{Change, Level};
use crate::detection::members::{Members, place};
use crate::group::GroupId;
use crate::latency::{Direction, EdgeKey, EdgeWindow, SizeBucket};

/// Keys that are kept at once.
pub(super) const MAX_KEYS: usize = 4_000_000;
/// Looks without a latency after which a key is dropped when the epoch changes.
const IDLE_LOOKS: u32 = 600;
/// Looks without a latency after which a cell says nothing about the present.
const STALE_LOOKS: u32 = 3;
/// The part of a class' keys that may be slower while the rest is not: the shift that is taken off
/// is that of the tenth that is slowed least.
const UNAFFECTED_PART: usize = 10;
/// Nodes that a class must have before anything is said to be common to them.
const NODES_FOR_SHIFT: usize = 3;

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
    keys: Vec<Key>,
    key_numbers: BTreeMap<(EdgeKey, u32, u32), u32>,
    cells: Vec<Cell>,
    cell_numbers: BTreeMap<(u32, u32), u32>,
    classes: Vec<Class>,
    class_numbers: BTreeMap<(GroupId, Direction, SizeBucket), u32>,
    /// For each node, the keys of its last report in order: the next has mostly the same.
    last_order: Vec<Vec<(EdgeKey, u32)>>,
    cells_of_node: Vec<Vec<u32>>,
    looks: u32,
    counts: MatrixCounts,
    residuals: Vec<f32>,
}

#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) cell: u32,
    pub(super) level: Level,
    /// Whether the level is known and was not yet compared with those of the others.
    pub(super) is_unchecked: bool,
    generation: u32,
    value: f32,
    is_fresh: bool,
    last_fresh: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) change: Change,
    /// The usual level with what is common to the class, as it was last.
    pub(super) usual: f32,
    /// Grows when the usual levels of its keys are to be learned anew.
    generation: u32,
    sum: f32,
    summed: u16,
    last_fresh: u32,
}

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
    pub(super) fn is_long(self, cell: &Cell, level: f32) -> bool {
        cell.usual + level >= self.threshold
    }

    /// Whether an edge that is `level` above its usual is slow.
    pub(super) fn is_slow(self, cell: &Cell, level: f32) -> bool {
        level >= self.meaningful && self.is_long(cell, level)
    }
}

#[derive(Debug, Clone, Default)]
struct Class {
    keys: Vec<u32>,
    /// How many keys touch each node.
    keys_of_node: BTreeMap<u32, usize>,
    is_unchecked: bool,
}

impl Matrix {
    /// Takes the windows of one node's report.
    pub(super) fn observe(&mut self, node: u32, windows: &[EdgeWindow], members: &Members) {
        if self.last_order.len() < members.count() {
            self.last_order.resize(members.count(), Vec::new());
        }
        let mut order = std::mem::take(&mut self.last_order[place(node)]);
        for (position, window) in windows.iter().enumerate() {
            let number = match order.get(position) {
                Some((key, number)) if *key == window.key => Some(*number),
                _ => self.number(node, window.key, members),
            };
            let Some(number) = number else { continue };
            if position < order.len() {
                order[position] = (window.key, number);
            } else if position == order.len() {
                order.push((window.key, number));
            }
            let key = &mut self.keys[place(number)];
            // A clock of microseconds may say 0.
            key.value = (window.window.median_ns.max(1) as f64).ln() as f32;
            key.is_fresh = true;
        }
        self.last_order[place(node)] = order;
    }

    /// The number of a key that `node` reported, new if need be.
    fn number(&mut self, node: u32, key: EdgeKey, members: &Members) -> Option<u32> {
        let peer = members.of_rank(key.peer);
        let (Some(peer), true) = (peer, members.of_rank(key.rank) == Some(node)) else {
            self.counts.foreign += 1;
            return None;
        };
        if peer == node {
            self.counts.within_node += 1;
            return None;
        }
        let (from, to) = match key.direction {
            Direction::Send => (node, peer),
            Direction::Receive => (peer, node),
        };
        if let Some(number) = self.key_numbers.get(&(key, from, to)) {
            return Some(*number);
        }
        if self.keys.len() >= MAX_KEYS {
            self.counts.no_place += 1;
            return None;
        }
        let cell = self.cell_number(from, to);
        let class = self.class_number(key);
        let number = u32::try_from(self.keys.len()).expect("MAX_KEYS fits in a u32");
        let generation = self.cells[place(cell)].generation;
        self.keys.push(Key {
            cell,
            level: Level::new(),
            is_unchecked: false,
            generation,
            value: 0.0,
            is_fresh: false,
            last_fresh: self.looks,
        });
        self.key_numbers.insert((key, from, to), number);
        let class = &mut self.classes[place(class)];
        class.keys.push(number);
        for end in [from, to] {
            *class.keys_of_node.entry(end).or_default() += 1;
        }
        Some(number)
    }

    fn cell_number(&mut self, from: u32, to: u32) -> u32 {
        if let Some(number) = self.cell_numbers.get(&(from, to)) {
            return *number;
        }
        let number = u32::try_from(self.cells.len()).expect("no more cells than keys");
        self.cells.push(Cell {
            from,
            to,
            change: Change::new(),
            usual: 0.0,
            generation: 0,
            sum: 0.0,
            summed: 0,
            last_fresh: 0,
        });
        self.cell_numbers.insert((from, to), number);
        for end in [from, to] {
            if self.cells_of_node.len() <= place(end) {
                self.cells_of_node.resize(place(end) + 1, Vec::new());
            }
            self.cells_of_node[place(end)].push(number);
        }
        number
    }

    fn class_number(&mut self, key: EdgeKey) -> u32 {
        let count = self.classes.len();
        let identity = (key.group, key.direction, key.bucket);
        let number = *self
            .class_numbers
            .entry(identity)
            .or_insert_with(|| u32::try_from(count).expect("no more classes than keys"));
        if place(number) == count {
            self.classes.push(Class::default());
        }
        number
    }

    /// Takes in what was reported since the last look.
    pub(super) fn look(&mut self) {
        self.looks += 1;
        for class in 0..self.classes.len() {
            let shift = self.shift(class);
            self.look_at_class(class, shift);
            if self.classes[class].is_unchecked {
                let keys = &self.classes[class].keys;
                self.classes[class].is_unchecked =
                    !cold_start::compare(keys, &mut self.keys, &self.cells);
            }
        }
        for cell in &mut self.cells {
            if cell.summed == 0 {
                continue;
            }
            cell.change.push(cell.sum / f32::from(cell.summed));
            (cell.sum, cell.summed, cell.last_fresh) = (0.0, 0, self.looks);
            if cell.change.is_faster() {
                cell.generation += 1;
                cell.change = Change::new();
            }
        }
    }

    /// By how much all keys of a class are slower than usual, so that nobody is to blame.
    fn shift(&mut self, class: usize) -> f32 {
        let class = &self.classes[class];
        let most = class.keys_of_node.values().max().copied().unwrap_or(0);
        // Where one node is at an end of nearly every key, its own slowness would be common to all.
        let has_hub = most * UNAFFECTED_PART > class.keys.len() * (UNAFFECTED_PART - 1);
        if class.keys_of_node.len() < NODES_FOR_SHIFT || has_hub {
            return 0.0;
        }
        self.residuals.clear();
        for key in class.keys.iter().map(|key| &self.keys[place(*key)]) {
            if let (true, Some(centre)) = (key.is_fresh, key.level.centre()) {
                self.residuals.push(key.value - centre);
            }
        }
        let least = self.residuals.len() / UNAFFECTED_PART;
        if self.residuals.is_empty() {
            return 0.0;
        }
        self.residuals.select_nth_unstable_by(least, f32::total_cmp).1.max(0.0)
    }

    fn look_at_class(&mut self, class: usize, shift: f32) {
        let Class { keys, is_unchecked, .. } = &mut self.classes[class];
        for number in keys.iter() {
            let key = &mut self.keys[place(*number)];
            if !key.is_fresh {
                continue;
            }
            (key.is_fresh, key.last_fresh) = (false, self.looks);
            let cell = &mut self.cells[place(key.cell)];
            if key.generation != cell.generation {
                key.level.forget();
                key.generation = cell.generation;
            }
            let Some(centre) = key.level.centre() else {
                if let Some(scale) = key.level.learn(key.value) {
                    cell.change.learn_scale(scale);
                    key.is_unchecked = true;
                    *is_unchecked = true;
                }
                continue;
            };
            let residual = key.value - centre - shift;
            cell.sum += residual;
            cell.summed = cell.summed.saturating_add(1);
            cell.usual = centre + shift;
            if cell.change.is_calm() {
                key.level.follow(residual, cell.change.scale());
            }
        }
    }

    /// Forgets what nobody reports any more, for a new epoch.
    pub(super) fn forget_idle(&mut self) {
        let looks = self.looks;
        let is_kept = |key: &Key| key.last_fresh.saturating_add(IDLE_LOOKS) >= looks;
        self.last_order.clear();
        if self.keys.iter().all(is_kept) {
            return;
        }
        let old = std::mem::take(self);
        self.looks = old.looks;
        self.counts = old.counts;
        for ((edge, from, to), number) in old.key_numbers {
            let key = &old.keys[place(number)];
            if !is_kept(key) {
                continue;
            }
            let cell = self.cell_number(from, to);
            self.cells[place(cell)] = old.cells[place(key.cell)].clone();
            let class = self.class_number(edge);
            let number = u32::try_from(self.keys.len()).expect("MAX_KEYS fits in a u32");
            self.keys.push(Key { cell, ..key.clone() });
            self.key_numbers.insert((edge, from, to), number);
            let class = &mut self.classes[place(class)];
            class.keys.push(number);
            class.is_unchecked |= key.is_unchecked;
            for end in [from, to] {
                *class.keys_of_node.entry(end).or_default() += 1;
            }
        }
    }

    /// All cells.
    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The cell from one node to another.
    pub(super) fn cell(&self, from: u32, to: u32) -> Option<&Cell> {
        Some(&self.cells[place(*self.cell_numbers.get(&(from, to))?)])
    }

    /// The cells that touch a node and say something about the present.
    pub(super) fn cells_of(&self, node: u32) -> impl Iterator<Item = &Cell> {
        let numbers = self.cells_of_node.get(place(node)).into_iter().flatten();
        numbers.map(|number| &self.cells[place(*number)]).filter(|cell| self.is_present(cell))
    }

    /// Whether the cell says something about the present.
    pub(super) fn is_present(&self, cell: &Cell) -> bool {
        cell.last_fresh > 0 && cell.last_fresh + STALE_LOOKS > self.looks
    }

    /// What was not taken.
    pub(super) const fn counts(&self) -> MatrixCounts {
        self.counts
    }
}
