//! Lists of places, one behind the other: what a list for each of a million operations costs is memory that is given
//! and taken.

/// The lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    ends: Vec<u32>,
    places: Vec<u32>,
}

impl Lists {
    /// Of so many lists, which each pair names one of, the places that it names with it, in the order of the pairs.
    pub(crate) fn of_pairs(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut ends = vec![0_u32; count];
        pairs.clone().for_each(|(list, _)| ends[at(list)] += 1);
        let mut sum = 0;
        // Where each begins, which moves to where it ends as places come.
        for end in &mut ends {
            let count = std::mem::replace(end, sum);
            sum += count;
        }
        let mut places = vec![0_u32; at(sum)];
        for (list, place) in pairs {
            places[at(ends[at(list)])] = place;
            ends[at(list)] += 1;
        }
        Self { ends, places }
    }

    /// Adds a place to the list that is not ended.
    pub(crate) fn push(&mut self, place: u32) {
        self.places.push(place);
    }

    /// Ends the list.
    pub(crate) fn end(&mut self) {
        self.ends.push(u32::try_from(self.places.len()).expect("a few for each operation"));
    }

    /// How many lists there are.
    pub(crate) const fn count(&self) -> usize {
        self.ends.len()
    }

    /// How many places all have.
    pub(crate) const fn places(&self) -> usize {
        self.places.len()
    }

    /// One of them.
    pub(crate) fn of(&self, list: usize) -> &[u32] {
        let begin = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[at(begin)..at(self.ends[list])]
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.count()).map(|list| self.of(list))
    }
}

/// A place as an index.
pub(crate) const fn at(place: u32) -> usize {
    place as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_put_into_their_lists_in_their_order() {
        let lists = Lists::of_pairs(4, [(2, 7), (0, 5), (2, 6), (3, 1)].into_iter());
        let all: Vec<&[u32]> = lists.all().collect();
        assert_eq!(all, [&[5][..], &[], &[7, 6], &[1]]);
        assert_eq!((lists.count(), lists.places()), (4, 4));
    }
}
