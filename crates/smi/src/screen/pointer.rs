//! The selected row of a list that changes: it stays on the same thing, and visible.

/// A selection.
#[derive(Debug, Clone)]
pub(super) struct Pointer<T> {
    id: Option<T>,
    at: usize,
    /// The first visible row.
    top: usize,
    rows: usize,
}

impl<T> Default for Pointer<T> {
    fn default() -> Self {
        Self { id: None, at: 0, top: 0, rows: 0 }
    }
}

impl<T: PartialEq> Pointer<T> {
    /// The place of the selected row.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What a person has selected.
    pub(super) fn id(&self) -> Option<&T> {
        self.id.as_ref()
    }

    /// Has [`Self::find`] select this.
    pub(super) fn seek(&mut self, id: T) {
        self.id = Some(id);
    }

    /// Whether a person has selected something.
    pub(super) fn is_chosen(&self) -> bool {
        self.id.is_some()
    }

    /// Finds the selected thing in the list as it is now; where it has gone, what is in its place
    /// is selected. A person who has selected nothing stays at the first row.
    pub(super) fn find(&mut self, rows: usize, id: impl Fn(usize) -> T) {
        self.rows = rows;
        let last = rows.saturating_sub(1);
        if let Some(wanted) = &self.id {
            let near = (self.at < rows && id(self.at) == *wanted).then_some(self.at);
            let found = near.or_else(|| (0..rows).find(|at| id(*at) == *wanted));
            match found {
                Some(at) => self.at = at,
                None => {
                    self.at = self.at.min(last);
                    self.id = (rows > 0).then(|| id(self.at));
                }
            }
        } else {
            self.at = self.at.min(last);
        }
    }

    /// Selects another row.
    pub(super) fn go(&mut self, at: usize, id: impl Fn(usize) -> T) {
        self.at = at.min(self.rows.saturating_sub(1));
        self.id = (self.rows > 0).then(|| id(self.at));
    }

    /// The first visible row where so many can be seen, such that the selected one is.
    pub(super) fn first(&mut self, height: usize) -> usize {
        let most = self.rows.saturating_sub(height);
        self.top = self.top.min(most).min(self.at).max((self.at + 1).saturating_sub(height));
        self.top
    }
}

#[cfg(test)]
mod tests {
    use super::Pointer;

    #[test]
    fn it_stays_on_what_was_selected_and_in_sight() {
        let mut pointer = Pointer::default();
        let first: Vec<u32> = (0..100).collect();
        pointer.find(first.len(), |at| first[at]);
        pointer.go(50, |at| first[at]);
        assert_eq!(pointer.first(10), 41);
        let turned: Vec<u32> = (0..100).rev().collect();
        pointer.find(turned.len(), |at| turned[at]);
        assert_eq!((pointer.at(), pointer.first(10)), (49, 41));
        let short = [1, 2];
        pointer.find(short.len(), |at| short[at]);
        assert_eq!((pointer.at(), pointer.first(10)), (1, 0));
        pointer.find(0, |_| 0);
        assert_eq!((pointer.at(), pointer.first(10), pointer.first(0)), (0, 0, 1));
    }
}
