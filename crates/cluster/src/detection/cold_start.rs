//! A fault that was there before anybody knew what is usual.
//!
//! A level that was learned while its node was slow is too high, and the fault invisible. So fresh
//! levels are compared with those of the node's class, and what the node has that its peers have
//! not is taken off: from then on it shows like any other fault. Only nodes are found this way.
//! That one link is slow by nature or by a fault cannot be told without history.

use std::collections::BTreeMap;

use crate::detection::history::median;
use crate::detection::matrix::{Cell, Key};
use crate::detection::members::place;

/// Nodes that a comparison needs.
const FEWEST_NODES: usize = 4;
/// How far a node must stand out, in deviations of the nodes' levels.
const DEVIATIONS: f32 = 6.0;
/// And by which factor: ln 1.35.
const SMALLEST_EFFECT: f32 = 0.3;
/// Nodes are never believed to be more alike than this, whatever the few at hand say.
const SMALLEST_SPREAD: f32 = 0.05;
/// Turns a median absolute deviation into a standard deviation of normal noise.
const DEVIATIONS_PER_MEDIAN: f32 = 1.4826;
/// The standard error of a median over that of a mean.
const MEDIAN_OVER_MEAN: f32 = 1.2533;

/// Compares the nodes of one class, and corrects the levels of those that stand out. Says whether
/// it could: not before nine of ten keys know their level.
pub(super) fn compare(class: &[u32], keys: &mut [Key], cells: &[Cell]) -> bool {
    let known = class.iter().filter(|key| keys[place(**key)].level.centre().is_some()).count();
    if known * 10 < class.len() * 9 {
        return false;
    }
    let effects = effects(class, keys, cells);
    let outstanding = if effects.len() < FEWEST_NODES { Vec::new() } else { stand_out(&effects) };
    for (node, offset) in outstanding {
        for number in class {
            let key = &mut keys[place(*number)];
            let cell = &cells[place(key.cell)];
            if key.is_unchecked && (cell.from == node || cell.to == node) {
                key.level.correct(offset);
            }
        }
    }
    class.iter().for_each(|key| keys[place(*key)].is_unchecked = false);
    true
}

/// What one node's keys have in common.
#[derive(Debug, Clone, Copy)]
struct Effect {
    node: u32,
    /// The median level of its keys.
    level: f32,
    /// How far its keys are spread.
    spread: f32,
    /// How many it has.
    keys: usize,
    /// Whether all of them were just learned.
    is_new: bool,
}

fn effects(class: &[u32], keys: &[Key], cells: &[Cell]) -> Vec<Effect> {
    let mut levels: BTreeMap<u32, (Vec<f32>, bool)> = BTreeMap::new();
    for key in class.iter().map(|number| &keys[place(*number)]) {
        let Some(centre) = key.level.centre() else { continue };
        let cell = &cells[place(key.cell)];
        for node in [cell.from, cell.to] {
            let entry = levels.entry(node).or_insert((Vec::new(), true));
            entry.0.push(centre);
            entry.1 &= key.is_unchecked;
        }
    }
    let effect = |(node, (mut values, is_new)): (u32, (Vec<f32>, bool))| {
        values.sort_unstable_by(f32::total_cmp);
        // The lower of the two in the middle: half of a neighbour's keys may be another's fault.
        let level = values[(values.len() - 1) / 2];
        let count = values.len();
        values.iter_mut().for_each(|one| *one = (*one - level).abs());
        let spread = DEVIATIONS_PER_MEDIAN * median(&mut values);
        Effect { node, level, spread, keys: count, is_new }
    };
    levels.into_iter().map(effect).collect()
}

/// The nodes that stand out, and by how much.
fn stand_out(effects: &[Effect]) -> Vec<(u32, f32)> {
    let mut levels: Vec<f32> = effects.iter().map(|effect| effect.level).collect();
    let centre = median(&mut levels);
    levels.iter_mut().for_each(|one| *one = (*one - centre).abs());
    let between = DEVIATIONS_PER_MEDIAN * median(&mut levels);
    let mut spreads: Vec<f32> = effects.iter().map(|effect| effect.spread).collect();
    let within = median(&mut spreads);
    let is_outstanding = |effect: &&Effect| {
        let error = MEDIAN_OVER_MEAN * within / (effect.keys as f32).sqrt();
        let spread = between.max(error).max(SMALLEST_SPREAD);
        let offset = effect.level - centre;
        effect.is_new && offset >= SMALLEST_EFFECT && offset >= DEVIATIONS * spread
    };
    let outstanding = effects.iter().filter(is_outstanding);
    outstanding.map(|effect| (effect.node, effect.level - centre)).collect()
}
