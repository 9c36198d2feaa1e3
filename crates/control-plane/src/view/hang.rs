//! The stacks by which it is known why a job hung.

use serde::Serialize;

use telltale_schema::text::printable;
use telltale_wire::cluster::message::{FoldedStack, HangStacks};

/// Why a job hung.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HangView {
    /// The kind, such as `rank_missing`, `data_loader`, `deadlock`.
    pub kind: String,
    /// The ranks at fault, the first 64; none where all wait alike.
    pub ranks: Vec<u32>,
    /// Equal stacks of several ranks as one, the most frequent first.
    pub stacks: Vec<StackView>,
    /// Why some could not be taken, and what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The same stack in some ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackView {
    /// How many ranks.
    pub count: u32,
    /// The first 64 of them.
    pub ranks: Vec<u32>,
    /// What they do, such as `collective`.
    pub activity: String,
    /// The stack, innermost first.
    pub stack: Vec<String>,
}

impl From<&HangStacks> for HangView {
    fn from(from: &HangStacks) -> Self {
        Self {
            kind: printable(&from.kind),
            ranks: from.ranks.clone(),
            stacks: from.stacks.iter().map(StackView::from).collect(),
            missing: from.missing.iter().map(|text| printable(text)).collect(),
        }
    }
}

impl From<&FoldedStack> for StackView {
    fn from(from: &FoldedStack) -> Self {
        Self {
            count: from.count,
            ranks: from.ranks.clone(),
            activity: printable(&from.activity),
            stack: from.stack.iter().map(|line| printable(line)).collect(),
        }
    }
}
