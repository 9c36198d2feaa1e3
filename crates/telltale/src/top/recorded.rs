//! A recording in the place of the present: played at the view's pace, and gone through in steps.

use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use telltale_schema::text::with_causes;
use telltale_smi::screen::Recorded;
use telltale_sources::Recording;

use super::Wake;

/// The player of a recording, and its requests.
#[derive(Debug, Default)]
pub(super) struct Player {
    wanted: Mutex<PlaybackOrder>,
    wake_up: Condvar,
}

/// What was ordered since it was checked last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct PlaybackOrder {
    back: usize,
    forth: usize,
    /// To play where it stands still, and the other way round.
    turn: bool,
}

/// Where in a recording the view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    place: usize,
    last: usize,
    plays: bool,
}

// === impl Player ===

impl Player {
    /// Starts the thread that plays.
    pub(super) fn start(
        recording: Recording,
        period: Duration,
        wakes: SyncSender<Wake>,
    ) -> io::Result<Arc<Self>> {
        let player = Arc::new(Self::default());
        let orders = Arc::clone(&player);
        thread::Builder::new().name(String::from("source")).spawn(move || {
            let last = recording.frames().len() - 1;
            let mut now = Position { place: 0, last, plays: last > 0 };
            while show(&recording, now, &wakes) {
                now = orders.next(now, period);
            }
        })?;
        Ok(player)
    }

    /// Goes by so many snapshots, and stands still there.
    pub(super) fn step(&self, back: bool, steps: u64) {
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let towards = if back { &mut wanted.back } else { &mut wanted.forth };
        *towards = towards.saturating_add(steps);
        self.wake_up.notify_one();
    }

    /// Plays, or stands still.
    pub(super) fn turn(&self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.turn = !wanted.turn;
        self.wake_up.notify_one();
    }

    /// Waits for an order, or the next snapshot's time.
    fn next(&self, now: Position, period: Duration) -> Position {
        let due = Instant::now() + period;
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let ordered = std::mem::take(&mut *wanted);
            if ordered != PlaybackOrder::default() {
                return now.after(ordered);
            }
            let left = due.saturating_duration_since(Instant::now());
            wanted = match (now.plays, left.is_zero()) {
                (true, true) => return now.played(),
                (true, false) => {
                    let waited = self.wake_up.wait_timeout(wanted, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                (false, _) => self.wake_up.wait(wanted).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

// === impl Position ===

impl Position {
    /// By one snapshot; at the end it stands still.
    fn played(self) -> Self {
        let place = (self.place + 1).min(self.last);
        Self { place, plays: place < self.last, ..self }
    }

    fn after(self, ordered: PlaybackOrder) -> Self {
        let PlaybackOrder { back, forth, turn } = ordered;
        if (back, forth) != (0, 0) {
            let place = self.place.saturating_add(forth).min(self.last.saturating_add(back));
            let place = place.saturating_sub(back).min(self.last);
            return Self { place, plays: false, ..self };
        }
        match (turn, self.plays, self.place == self.last) {
            (false, ..) => self,
            (true, true, _) => Self { plays: false, ..self },
            // What was played to its end is played again.
            (true, false, true) => Self { place: 0, plays: self.last > 0, ..self },
            (true, false, false) => Self { plays: true, ..self },
        }
    }
}

/// Shows the snapshot there, or says why it cannot; false when the viewer has gone.
fn show(recording: &Recording, now: Position, wakes: &SyncSender<Wake>) -> bool {
    let Position { place, last, plays } = now;
    let wake = match recording.snapshot(place) {
        Ok(snapshot) => {
            Wake::Recorded(Arc::new(snapshot), Recorded { place, count: last + 1, plays })
        }
        Err(error) => Wake::Words(with_causes(&error)),
    };
    wakes.send(wake).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{PlaybackOrder, Position};

    #[test]
    fn steps_stand_still_and_stay_within() {
        let at = |place, plays| Position { place, last: 9, plays };
        let go = |back, forth| PlaybackOrder { back, forth, turn: false };
        let turn = PlaybackOrder { turn: true, ..PlaybackOrder::default() };
        for (from, order, to) in [
            (at(5, true), go(1, 0), at(4, false)),
            (at(5, true), go(60, 0), at(0, false)),
            (at(5, false), go(0, 60), at(9, false)),
            (at(5, false), go(2, 60), at(9, false)),
            (at(5, true), go(0, usize::MAX), at(9, false)),
            (at(5, true), turn, at(5, false)),
            (at(5, false), turn, at(5, true)),
            (at(9, false), turn, at(0, true)),
        ] {
            assert_eq!(from.after(order), to, "{from:?} {order:?}");
        }
        assert_eq!(at(3, true).played(), at(4, true));
        assert_eq!(at(8, true).played(), at(9, false));
        let alone = Position { place: 0, last: 0, plays: false };
        assert_eq!((alone.played(), alone.after(turn)), (alone, alone));
    }
}
