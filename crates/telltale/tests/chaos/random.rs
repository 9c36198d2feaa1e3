//! Random numbers that follow from a seed.

/// The variable that has a run repeated.
const SEED: &str = "TELLTALE_CHAOS_SEED";

/// xorshift64*: enough to be unpredictable to the code under test, and repeatable.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Numbers that follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Of the seed in the environment, else of the time; tells which.
    pub(crate) fn announced(test: &str) -> Self {
        let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let seed = std::env::var(SEED).map_or_else(|_| now(), |text| text.parse().unwrap());
        println!("{test}: {SEED}={seed} runs this again");
        Self::new(seed)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }

    /// A place in something of this length.
    pub(crate) fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    /// Any number.
    pub(crate) fn seed(&mut self) -> u64 {
        self.below(u64::MAX)
    }

    /// Puts the order of `things` to chance.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.place(last + 1));
        }
    }
}
