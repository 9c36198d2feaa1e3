//! Entries between the poster and the counter: bounded, and what does not fit is
//! counted.

use std::collections::VecDeque;

use super::entry::{Post, PostEntry, PostRefused};
use super::{IntakeCounts, PostOutcome};

/// Entries that may wait to be counted.
pub const MAX_QUEUED_ENTRIES: usize = 32_768;

/// Posts that wait, in their order.
#[derive(Debug, Default)]
pub struct Queue {
    posts: VecDeque<Vec<PostEntry>>,
    entries: usize,
    received: u64,
    malformed_posts: u64,
    refused: u64,
    queue_full: u64,
    /// Of these, those that are known to be lost.
    known_lost: u64,
}

impl Queue {
    /// Puts in the body of a post.
    ///
    /// # Errors
    /// When it cannot be read; nothing of it is taken then, and it is counted.
    pub fn post(&mut self, body: &[u8]) -> Result<PostOutcome, PostRefused> {
        let Post { entries, refused, first_refused } = self.read(body)?;
        let given = entries.len();
        let queued = self.put(entries, refused);
        Ok(PostOutcome { queued, refused, first_refused, dropped: given - queued })
    }

    /// Reads a post. One that cannot be read is counted.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, body: &[u8]) -> Result<Post, PostRefused> {
        Post::parse(body).inspect_err(|_| self.count_malformed())
    }

    /// Puts in the entries of a post, of which `refused` others made no sense, and says how many had
    /// a place: all or none.
    pub fn put(&mut self, entries: Vec<PostEntry>, refused: usize) -> usize {
        let given = entries.len();
        add(&mut self.received, given + refused);
        add(&mut self.refused, refused);
        if given == 0 {
            return 0;
        }
        if !self.has_room(given) {
            add(&mut self.queue_full, given);
            return 0;
        }
        self.entries += given;
        self.posts.push_back(entries);
        given
    }

    /// Whether so many entries have a place.
    pub const fn has_room(&self, entries: usize) -> bool {
        entries <= MAX_QUEUED_ENTRIES - self.entries
    }

    const fn count_malformed(&mut self) {
        self.malformed_posts += 1;
    }

    /// Takes out the oldest post.
    pub fn pop(&mut self) -> Option<Vec<PostEntry>> {
        let post = self.posts.pop_front()?;
        self.entries -= post.len();
        Some(post)
    }

    /// Forgets what waits, and says how many entries those are.
    pub fn clear(&mut self) -> u64 {
        self.posts.clear();
        u64::try_from(std::mem::take(&mut self.entries)).unwrap_or(u64::MAX)
    }

    /// How many entries found no place since this was last asked.
    pub const fn lost(&mut self) -> u64 {
        let lost = self.queue_full.saturating_sub(self.known_lost);
        self.known_lost = self.queue_full;
        lost
    }

    /// What became of what was put in.
    #[must_use]
    pub fn counts(&self) -> IntakeCounts {
        IntakeCounts {
            received: self.received,
            malformed_posts: self.malformed_posts,
            refused: self.refused,
            queue_full: self.queue_full,
            ..IntakeCounts::default()
        }
    }
}

fn add(counter: &mut u64, more: usize) {
    *counter = counter.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
}
