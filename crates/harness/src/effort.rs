//! The switch between quick and long tests.

/// Whether the long tests were asked for with `TELLTALE_LONG_TESTS=1`.
#[must_use]
pub fn long() -> bool {
    asks_for_long(std::env::var("TELLTALE_LONG_TESTS").ok().as_deref())
}

/// How many rounds a repeated test runs: `long_rounds` when [`long`], else `quick_rounds`.
#[must_use]
pub fn rounds(quick_rounds: u32, long_rounds: u32) -> u32 {
    if long() { long_rounds } else { quick_rounds }
}

fn asks_for_long(value: Option<&str>) -> bool {
    value == Some("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_1_switches_the_long_tests_on() {
        assert!(asks_for_long(Some("1")));
        for off in [None, Some(""), Some("0"), Some("yes")] {
            assert!(!asks_for_long(off), "{off:?}");
        }
        assert_eq!(rounds(3, 500), if long() { 500 } else { 3 });
    }
}
