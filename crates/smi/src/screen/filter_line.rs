//! The line in which a filter is typed.

use telltale_query::{Candidate, MAX_QUERY_BYTES, Query, QueryError, complete};

use super::event::PressedKey;

/// Text with a cursor.
#[derive(Debug, Clone, Default)]
pub(super) struct FilterLine {
    text: Vec<char>,
    cursor: usize,
    /// What Tab put there last, and what it may put there next.
    offered: Option<Offer>,
}

#[derive(Debug, Clone)]
struct Offer {
    start: usize,
    candidates: Vec<String>,
    next: usize,
}

/// What a key did to the line.
pub(super) enum Typed {
    Open,
    /// It is closed, and the filter stays what it was.
    Closed,
    /// The filter is this one now.
    Taken(Option<Query>),
}

impl FilterLine {
    pub(super) fn new(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { cursor: text.len(), text, offered: None }
    }

    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Characters before the cursor.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    fn before(&self) -> String {
        self.text[..self.cursor].iter().collect()
    }

    /// What is wrong with the text; nothing is wrong with none.
    pub(super) fn error(&self) -> Option<QueryError> {
        let text = self.text();
        if text.trim().is_empty() { None } else { Query::parse(&text).err() }
    }

    /// How it can go on at the cursor.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        complete(&self.before()).1
    }

    pub(super) fn key(&mut self, key: PressedKey) -> Typed {
        if key != PressedKey::Tab {
            self.offered = None;
        }
        match key {
            PressedKey::Escape | PressedKey::Control('c' | 'g') => return Typed::Closed,
            PressedKey::Enter => {
                let text = self.text();
                if text.trim().is_empty() {
                    return Typed::Taken(None);
                }
                if let Ok(query) = Query::parse(&text) {
                    return Typed::Taken(Some(query));
                }
            }
            PressedKey::Tab => self.complete(),
            PressedKey::Char(character) if !character.is_control() => self.insert(character),
            PressedKey::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            PressedKey::Delete if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            PressedKey::Control('u') => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            PressedKey::Left => self.cursor = self.cursor.saturating_sub(1),
            PressedKey::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            PressedKey::Home | PressedKey::Control('a') => self.cursor = 0,
            PressedKey::End | PressedKey::Control('e') => self.cursor = self.text.len(),
            _ => {}
        }
        Typed::Open
    }

    fn insert(&mut self, character: char) {
        // Every character has at most four bytes.
        if self.text.len() < MAX_QUERY_BYTES / 4 {
            self.text.insert(self.cursor, character);
            self.cursor += 1;
        }
    }

    /// Puts the next candidate in the place of the word at the cursor.
    fn complete(&mut self) {
        let mut offer = match self.offered.take() {
            Some(offer) => offer,
            None => {
                let (typed, candidates) = complete(&self.before());
                let candidates = candidates.into_iter().map(|it| it.text).collect();
                Offer { start: self.cursor.saturating_sub(typed), candidates, next: 0 }
            }
        };
        let Some(word) = offer.candidates.get(offer.next) else { return };
        let word: Vec<char> = word.chars().collect();
        let end = offer.start + word.len();
        self.text.splice(offer.start..self.cursor, word);
        self.cursor = end;
        offer.next = (offer.next + 1) % offer.candidates.len();
        self.offered = Some(offer);
    }
}

#[cfg(test)]
mod tests {
    use super::{FilterLine, Typed};
    use crate::screen::event::PressedKey;

    #[test]
    fn tab_goes_through_what_fits() {
        let mut line = FilterLine::new("not na");
        let mut seen = Vec::new();
        for _ in 0..4 {
            line.key(PressedKey::Tab);
            seen.push(line.text());
        }
        assert!(seen[..3].iter().any(|text| text == "not namespace_pid"), "{seen:?}");
        assert_eq!(seen[3], seen[0]);
        line.key(PressedKey::Char(' '));
        assert_eq!(line.text(), format!("{} ", seen[0]));
    }

    #[test]
    fn only_what_makes_sense_is_taken() {
        let mut line = FilterLine::new("dram > 2Gi");
        assert!(matches!(line.key(PressedKey::Enter), Typed::Open));
        assert_eq!(line.error().map(|error| error.column), Some(7));
        line.key(PressedKey::Char('B'));
        assert!(matches!(line.key(PressedKey::Enter), Typed::Taken(Some(_))));
        line.key(PressedKey::Control('u'));
        assert!(matches!(line.key(PressedKey::Enter), Typed::Taken(None)));
        assert!(matches!(line.key(PressedKey::Escape), Typed::Closed));
    }
}
