//! What is usual for one edge, and whether what comes now is not: baseline and clipped CUSUM.
//!
//! Values are natural logarithms of latencies, so that a factor is a difference. Nothing here knows
//! of nodes.

/// Windows from which a baseline is made.
pub(super) const LEARNING_WINDOWS: u16 = 30;
/// Windows that a baseline remembers: it follows slow changes, half of a lasting one within about
/// three minutes.
const REMEMBERED_WINDOWS: u16 = 256;
/// How far a baseline may follow upwards from where it was learned: a factor of 1.15. What gets
/// slower bit by bit stays visible.
const FOLLOWING_LIMIT: f32 = 0.14;
/// The smallest noise that is believed, 2 %: a clock of microseconds and small windows are no better.
const SMALLEST_SCALE: f32 = 0.02;
/// Turns a median absolute deviation into a standard deviation of normal noise.
const DEVIATIONS_PER_MEDIAN: f32 = 1.4826;
/// Turns a mean absolute deviation into a standard deviation of normal noise.
const DEVIATIONS_PER_MEAN: f32 = 1.2533;
/// How many windows the present level is taken from at most.
pub(super) const RECENT_WINDOWS: usize = RECENT as usize;
const RECENT: u16 = 8;
/// And at least.
const FEWEST_WINDOWS: usize = 5;

/// The largest deviation of one window that counts, so that spikes cannot raise an alarm alone.
const CLIP: f32 = 4.0;
/// The deviation that is taken off each window's.
const ALLOWANCE: f32 = 1.0;
/// The sum from which on an edge is alarmed.
const ALARM: f32 = 12.0;
/// The sum from which on an edge supports the alarm of another.
const WARM: f32 = 6.0;
/// The sum from which on an edge may be about to become slower, and its baseline stands still.
const RISING: f32 = 3.0;
/// No sum grows beyond this, so that an end is seen as soon as a beginning.
const CEILING: f32 = 2.0 * ALARM;

/// The usual level of one key.
#[derive(Debug, Clone)]
pub(super) struct Level {
    learning: Vec<f32>,
    centre: f32,
    anchor: f32,
    /// Windows that the level is the middle of, up to [`REMEMBERED_WINDOWS`].
    windows: u16,
    is_learned: bool,
}

impl Level {
    pub(super) const fn new() -> Self {
        Self { learning: Vec::new(), centre: 0.0, anchor: 0.0, windows: 0, is_learned: false }
    }

    /// The usual level, once it is known.
    pub(super) fn centre(&self) -> Option<f32> {
        self.is_learned.then_some(self.centre)
    }

    /// Takes one window while the level is not known. Returns the noise once it is.
    pub(super) fn learn(&mut self, value: f32) -> Option<f32> {
        debug_assert!(!self.is_learned, "a known level follows, and does not learn");
        self.learning.push(value);
        if self.learning.len() < usize::from(LEARNING_WINDOWS) {
            return None;
        }
        self.centre = median(&mut self.learning);
        let scale = scale(self.centre, &mut self.learning);
        self.learning = Vec::new();
        self.anchor = self.centre;
        self.windows = LEARNING_WINDOWS;
        self.is_learned = true;
        Some(scale.max(SMALLEST_SCALE))
    }

    /// The level is another from now on, known from few windows. One that is being learned stays as it is.
    pub(super) fn move_by(&mut self, change: f32) {
        if self.is_learned {
            self.centre += change;
            self.anchor = self.centre;
            self.windows = RECENT;
        }
    }

    /// Follows a slow change: `residual` is what the window was above the level.
    pub(super) fn follow(&mut self, residual: f32, scale: f32) {
        self.windows = (self.windows + 1).min(REMEMBERED_WINDOWS);
        let step = residual.clamp(-scale, scale) / f32::from(self.windows);
        self.centre = (self.centre + step).min(self.anchor + FOLLOWING_LIMIT);
        self.anchor = self.anchor.min(self.centre + FOLLOWING_LIMIT);
    }

    /// Takes `offset` off a level that was learned while something was wrong.
    pub(super) fn correct(&mut self, offset: f32) {
        self.centre -= offset;
        self.anchor -= offset;
    }
}

/// The noise of values around their centre: the mean deviation, in which spikes count as what the
/// median deviation allows.
fn scale(centre: f32, values: &mut [f32]) -> f32 {
    values.iter_mut().for_each(|one| *one = (*one - centre).abs());
    let limit = CLIP * DEVIATIONS_PER_MEDIAN * median(values);
    let sum: f32 = values.iter().map(|one| one.min(limit)).sum();
    DEVIATIONS_PER_MEAN * sum / values.len() as f32
}

/// Whether one edge differs from its usual level, and since when.
#[derive(Debug, Clone)]
pub(super) struct Change {
    scale: f32,
    /// Windows that the noise is known from, up to [`REMEMBERED_WINDOWS`].
    windows: u16,
    rising: f32,
    falling: f32,
    recent: [f32; RECENT_WINDOWS],
    /// Windows pushed so far; the last [`RECENT_WINDOWS`] of them are in `recent`.
    pushed: usize,
    /// Windows since `rising` was last nothing, and the sum of what they were above the usual level.
    age: usize,
    risen: f32,
}

impl Change {
    pub(super) const fn new() -> Self {
        Self {
            scale: 0.0,
            windows: LEARNING_WINDOWS,
            rising: 0.0,
            falling: 0.0,
            recent: [0.0; RECENT_WINDOWS],
            pushed: 0,
            age: 0,
            risen: 0.0,
        }
    }

    /// Learns how much noise one of the edge's keys has.
    pub(super) fn learn_scale(&mut self, scale: f32) {
        // The noisiest key counts until windows tell how noisy they are together.
        self.scale = self.scale.max(scale);
    }

    /// The noise of one window.
    pub(super) const fn scale(&self) -> f32 {
        self.scale
    }

    /// Takes one window: what it was above the usual level. Only after [`Change::learn_scale`].
    pub(super) fn push(&mut self, residual: f32) {
        debug_assert!(self.scale > 0.0, "a level is learned together with its noise");
        self.recent[self.pushed % RECENT_WINDOWS] = residual;
        self.pushed += 1;
        let deviation = (residual / self.scale).clamp(-CLIP, CLIP);
        self.rising = (self.rising + deviation - ALLOWANCE).clamp(0.0, CEILING);
        self.falling = (self.falling - deviation - ALLOWANCE).clamp(0.0, CEILING);
        (self.age, self.risen) =
            if self.rising > 0.0 { (self.age + 1, self.risen + residual) } else { (0, 0.0) };
        if self.is_calm() {
            let seen = residual.abs().min(3.0 * self.scale) * DEVIATIONS_PER_MEAN;
            self.windows = (self.windows + 1).min(REMEMBERED_WINDOWS);
            self.scale += (seen - self.scale) / f32::from(self.windows);
            self.scale = self.scale.max(SMALLEST_SCALE);
        }
    }

    /// Whether it is slower than usual beyond doubt.
    pub(super) fn is_alarmed(&self) -> bool {
        self.rising > ALARM
    }

    /// Whether it is probably slower than usual.
    pub(super) fn is_warm(&self) -> bool {
        self.rising >= WARM
    }

    /// Whether it may be about to become slower.
    pub(super) fn is_rising(&self) -> bool {
        self.rising >= RISING
    }

    /// Whether it is neither slower nor faster than usual, as far as known.
    pub(super) fn is_calm(&self) -> bool {
        self.rising < RISING && self.falling < RISING
    }

    /// By how much the usual level must be moved, since it is faster for so long that this is usual now; 0 while it
    /// is not. It is no less known for that. What was learned of its noise stays, and soon gives way to what comes:
    /// levels that changed while they were learned look noisier than they are.
    pub(super) fn settle_faster(&mut self) -> f32 {
        if self.falling < CEILING {
            return 0.0;
        }
        let level = self.level().unwrap_or(0.0).min(0.0);
        self.recent.iter_mut().for_each(|one| *one -= level);
        (self.rising, self.falling, self.age, self.risen) = (0.0, 0.0, 0, 0.0);
        self.windows = RECENT;
        level
    }

    /// How much slower it is at present: the median of the windows since the change began, of five
    /// at least and eight at most. `None` before there are five.
    pub(super) fn level(&self) -> Option<f32> {
        if self.pushed < FEWEST_WINDOWS {
            return None;
        }
        let count = self.windows();
        let mut values = [0.0; RECENT_WINDOWS];
        for (back, value) in (1..=count).zip(&mut values) {
            *value = self.recent[(self.pushed - back) % RECENT_WINDOWS];
        }
        Some(median(&mut values[..count]))
    }

    /// How much slower it was on average since the change began; 0 while there is none.
    pub(super) fn mean_since(&self) -> f32 {
        if self.age == 0 { 0.0 } else { self.risen / self.age as f32 }
    }

    /// What the latest window was above the usual level, if there was one.
    pub(super) fn last(&self) -> Option<f32> {
        let latest = self.pushed.checked_sub(1)?;
        Some(self.recent[latest % RECENT_WINDOWS])
    }

    /// The standard error of [`Change::level`] in normal noise.
    pub(super) fn level_error(&self) -> f32 {
        let count = self.windows();
        DEVIATIONS_PER_MEAN * self.scale / (count as f32).sqrt()
    }

    fn windows(&self) -> usize {
        self.age.clamp(FEWEST_WINDOWS, RECENT_WINDOWS).min(self.pushed.max(1))
    }
}

/// The median of at least one value; the mean of the two in the middle when their number is even.
pub(super) fn median(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A level of 7.0 with a noise of 10 %, learned.
    fn learned() -> (Level, Change) {
        let (mut level, mut change) = (Level::new(), Change::new());
        for window in 0..LEARNING_WINDOWS {
            let noise = [-0.1, 0.05, 0.1, -0.05, 0.0][usize::from(window % 5)];
            if let Some(scale) = level.learn(7.0 + noise) {
                change.learn_scale(scale);
            }
        }
        (level, change)
    }

    fn windows_to_alarm(change: &mut Change, residual: f32) -> Option<usize> {
        (1..=100).find(|_| {
            change.push(residual);
            change.is_alarmed()
        })
    }

    #[test]
    fn a_lasting_change_alarms_within_windows_and_a_spike_never() {
        let (level, change) = learned();
        assert_eq!(level.centre(), Some(7.0));
        assert!((change.scale() - 0.075).abs() < 0.001, "{}", change.scale());
        for (ratio, expected) in [(1.5, Some(5)), (3.0, Some(5)), (1.3, Some(6)), (1.05, None)] {
            let residual = f32::ln(ratio);
            assert_eq!(windows_to_alarm(&mut change.clone(), residual), expected, "{ratio}");
        }
        let mut spiked = change;
        for window in 0..10_000 {
            spiked.push(if window % 5 == 0 { 1.1 } else { 0.0 });
            assert!(!spiked.is_alarmed());
        }
    }

    #[test]
    fn the_level_is_that_since_the_change() {
        let (_, mut change) = learned();
        (0..20).for_each(|_| change.push(0.0));
        (0..6).for_each(|_| change.push(0.4));
        assert_eq!(change.level(), Some(0.4));
        (0..40).for_each(|_| change.push(0.0));
        assert_eq!(change.level(), Some(0.0));
        assert!(!change.is_warm() && change.is_calm());
    }

    #[test]
    fn a_baseline_follows_drift_but_not_beyond_its_limit() {
        let (mut level, _) = learned();
        for _ in 0..100_000 {
            let centre = level.centre().unwrap();
            level.follow(9.0 - centre, 0.1);
        }
        assert!((level.centre().unwrap() - 7.14).abs() < 1e-4);
        for _ in 0..100_000 {
            let centre = level.centre().unwrap();
            level.follow(5.0 - centre, 0.1);
        }
        assert!((level.centre().unwrap() - 5.0).abs() < 1e-2);
    }

    #[test]
    fn what_gets_faster_for_good_is_usual_from_then_on() {
        let (mut level, mut change) = learned();
        (0..7).for_each(|_| change.push(-1.0));
        assert_eq!(change.settle_faster(), 0.0);
        change.push(-1.0);
        let moved = change.settle_faster();
        level.move_by(moved);
        assert_eq!((moved, level.centre()), (-1.0, Some(6.0)));
        assert_eq!((change.level(), change.is_calm()), (Some(0.0), true));
        // What is slow now is so by the new level.
        assert_eq!(windows_to_alarm(&mut change, 0.4), Some(5));
    }
}
