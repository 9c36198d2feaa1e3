//! Which name has which number.

use std::collections::BTreeMap;

/// Names by what they are of, each with the number that it was given first.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    known: BTreeMap<(&'static str, String), usize>,
    next: BTreeMap<&'static str, usize>,
}

// === impl Numbers ===

impl Numbers {
    /// What stands for a name: the same wherever it is.
    pub(super) fn named(&mut self, kind: &'static str, name: &str) -> String {
        let next = self.next.entry(kind).or_insert(1);
        let number = *self.known.entry((kind, name.to_owned())).or_insert_with(|| {
            let number = *next;
            *next += 1;
            number
        });
        format!("{kind}-{number}")
    }
}
