//! A core's memory: the gauge of all of it, and one for each thing that it is for.
//!
//! Each `total` is a gauge; `present` beside it is the size of the last allocation alone.

use crate::limits::MAX_DEVICE_BYTES;
use crate::tree::{Directory, Unreadable};

use std::collections::BTreeMap;

/// Categories of one core that are checked; the driver has eleven.
const MAX_CATEGORIES: usize = 64;
/// The longest name of a category, in characters.
const MAX_NAME_CHARACTERS: usize = 64;
/// What the gauge has beyond its categories.
const OTHER: &str = "other";

/// What the files of a core's device memory said.
#[derive(Debug)]
pub(super) struct MemoryFiles {
    pub(super) total: Result<Vec<u8>, Unreadable>,
    categories: Vec<(String, Result<Vec<u8>, Unreadable>)>,
}

// === impl MemoryFiles ===

impl MemoryFiles {
    /// Reads them in a core's `stats/memory_usage/device_mem`.
    pub(super) fn read(directory: &Directory) -> Self {
        let mut names = directory.names().unwrap_or_default();
        names.sort_unstable();
        let is_name = |name: &String| {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            plain && name.len() <= MAX_NAME_CHARACTERS && name != OTHER
        };
        let categories = names.into_iter().filter(is_name).take(MAX_CATEGORIES);
        let read = |name: String| match directory.attribute(&format!("{name}/total")) {
            // `total`, `present` and `peak` are files, and no categories.
            Err(error) if error.is_missing() => None,
            said => Some((name, said)),
        };
        Self {
            categories: categories.filter_map(read).collect(),
            total: directory.attribute("total"),
        }
    }

    /// Bytes by category, so that they add up to the use, and that: where the files were read while
    /// something was allocated, the larger of gauge and sum. No categories where one of them has no
    /// value that can be true.
    pub(super) fn add_up(&self, total: u64) -> (u64, BTreeMap<String, u64>) {
        let mut bytes = BTreeMap::new();
        let mut sum = 0u64;
        for (name, said) in &self.categories {
            let value = said.as_ref().ok().and_then(|text| super::unit::number(text));
            let Some(value) = value.filter(|bytes| *bytes <= MAX_DEVICE_BYTES) else {
                return (total, BTreeMap::new());
            };
            sum = sum.saturating_add(value);
            if value > 0 {
                bytes.insert(name.clone(), value);
            }
        }
        let used = total.max(sum);
        if used > MAX_DEVICE_BYTES || self.categories.is_empty() {
            return (total, BTreeMap::new());
        }
        if used > sum {
            bytes.insert(OTHER.to_owned(), used - sum);
        }
        (used, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, MemoryFiles};
    use crate::tree::Unreadable;

    #[test]
    fn categories_add_up_to_the_use_or_are_not_told() {
        let files = |list: &[(&str, &str)]| MemoryFiles {
            total: Ok(Vec::new()),
            categories: list
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Ok(text.as_bytes().to_vec())))
                .collect(),
        };
        let map = |list: &[(&str, u64)]| -> BTreeMap<String, u64> {
            list.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
        };
        let two = files(&[("tensors", "70\n"), ("constants", "0\n"), ("model_code", "20\n")]);
        let parts = [("tensors", 70), ("model_code", 20)];
        assert_eq!(two.add_up(90), (90, map(&parts)));
        assert_eq!(two.add_up(100), (100, map(&[parts[0], parts[1], ("other", 10)])));
        assert_eq!(two.add_up(80), (90, map(&parts)), "allocated between two files");
        for bad in ["", "-1", "x", "18446744073709550592"] {
            assert_eq!(files(&[("tensors", "70"), ("dma_rings", bad)]).add_up(90), (90, map(&[])));
        }
        assert_eq!(files(&[]).add_up(90), (90, map(&[])));
        let mut failing = files(&[("tensors", "70")]);
        failing.categories[0].1 = Err(Unreadable::TooLong { limit: 1 });
        assert_eq!(failing.add_up(90), (90, map(&[])));
    }
}
