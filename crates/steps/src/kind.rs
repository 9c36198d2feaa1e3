//! Kinds of operations: those of one kind are compared with each other.

/// Kinds that a job may have.
pub const MAX_KINDS: usize = 256;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nature {
    /// It computes. Its duration is work.
    Compute,
    /// What its rank did between two operations, which was not measured. Its duration is taken for work.
    Between,
    /// It sends, receives or takes part in a collective. Its duration holds the wait for the others.
    Communication,
}

impl Nature {
    /// Whether its duration is the rank's own work, and holds no wait for others.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Compute | Self::Between)
    }
}

/// The number of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u8);

/// The kinds of a job's operations, by name.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    names: Vec<(Box<str>, Nature)>,
}

impl Kind {
    /// Its place among the kinds of its job.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Kinds {
    /// The kind with this name and nature, new if need be; `None` when there are [`MAX_KINDS`].
    pub fn kind(&mut self, name: &str, nature: Nature) -> Option<Kind> {
        let known = self.names.iter().position(|(known, of)| **known == *name && *of == nature);
        let index = known.unwrap_or(self.names.len());
        let kind = Kind(u8::try_from(index).ok()?);
        if known.is_none() {
            self.names.push((name.into(), nature));
        }
        Some(kind)
    }

    /// Its name.
    ///
    /// # Panics
    /// When the kind is another job's.
    #[must_use]
    pub fn name(&self, kind: Kind) -> &str {
        &self.names[kind.index()].0
    }

    /// Its nature.
    ///
    /// # Panics
    /// When the kind is another job's.
    #[must_use]
    pub fn nature(&self, kind: Kind) -> Nature {
        self.names[kind.index()].1
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = Kind> + use<> {
        let count = self.names.len();
        (0..=u8::MAX).take(count).map(Kind)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_number_and_there_is_a_limit() {
        let mut kinds = Kinds::default();
        let forward = kinds.kind("forward", Nature::Compute).unwrap();
        assert_eq!(kinds.kind("forward", Nature::Compute), Some(forward));
        assert_ne!(kinds.kind("forward", Nature::Communication), Some(forward));
        assert_eq!((kinds.name(forward), kinds.nature(forward)), ("forward", Nature::Compute));
        for number in 2..MAX_KINDS {
            assert!(kinds.kind(&number.to_string(), Nature::Compute).is_some());
        }
        assert_eq!(kinds.kind("one more", Nature::Compute), None);
        assert_eq!(kinds.all().count(), MAX_KINDS);
    }
}
