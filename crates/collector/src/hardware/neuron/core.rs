//! A core's counters of its tensor engine, and how busy it was between two scans.
//!
//! The driver's `pe_cntrs` is a table: a line of column names, then one of cycle counts for each
//! group of rows of the engine. That cycles of multiplying over all cycles are how busy it is, is
//! our reading of the names; the user guide does not have the file.

/// Groups of rows that are checked.
const MAX_GROUPS: usize = 64;

/// Cycles since the device was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cycles {
    multiplying: u64,
    all: u64,
}

// === impl Cycles ===

impl Cycles {
    /// From the table's text; none where it is in another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(cells).filter(|cells| !cells.is_empty());
        let columns = lines.next()?;
        let place = |name: &str| columns.iter().position(|column| *column == name);
        let multiplying = place("mm_active")?;
        let others = [place("wl_active")?, place("idle")?];
        let mut cycles = Self { multiplying: 0, all: 0 };
        let mut groups = 0;
        for line in lines.take(MAX_GROUPS) {
            let count = |place: usize| line.get(place)?.parse::<u64>().ok();
            let active = count(multiplying)?;
            let [weights, idle] = [count(others[0])?, count(others[1])?];
            let all = active.checked_add(weights)?.checked_add(idle)?;
            cycles.multiplying = cycles.multiplying.checked_add(active)?;
            cycles.all = cycles.all.checked_add(all)?;
            groups += 1;
        }
        (groups > 0).then_some(cycles)
    }

    /// The share of the cycles since `before` in which it multiplied; none where none passed, or
    /// where the counters went back, as after a reset.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn busy_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let multiplying = self.multiplying.checked_sub(before.multiplying)?;
        Some((multiplying as f64 / all as f64).min(1.0))
    }
}

fn cells(line: &str) -> Vec<&str> {
    let cells = line.split(|byte: char| byte == ',' || byte.is_ascii_whitespace());
    cells.filter(|cell| !cell.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::Cycles;

    const TABLE: &str = "xrow_grp,mm_active,wl_active,idle\n0,100,50,850\n1,300,100,600\n";

    #[test]
    fn the_share_of_multiplying_is_of_the_cycles_between_two_samples() {
        let first = Cycles::parse(TABLE).unwrap();
        assert_eq!(first, Cycles { multiplying: 400, all: 2000 });
        let later = Cycles::parse(
            "xrow_grp, mm_active, wl_active, idle\n0, 350, 50, 1100\n1, 300, 100, 1100\n",
        );
        assert_eq!(later.unwrap().busy_since(first), Some(0.25));
        assert_eq!(first.busy_since(first), None, "no cycle has passed");
        assert_eq!(first.busy_since(later.unwrap()), None, "it was reset");
    }

    #[test]
    fn another_form_is_not_guessed_at() {
        let none = ["", "\n", "xrow_grp,mm_active,wl_active,idle\n", "0,1,2,3\n0,1,2,3\n"];
        let bad = [
            "xrow_grp,mm_active,idle\n0,1,2\n",
            "xrow_grp,mm_active,wl_active,idle\n0,1,2\n",
            "xrow_grp,mm_active,wl_active,idle\n0,-1,2,3\n",
            "xrow_grp,mm_active,wl_active,idle\n0,18446744073709551615,1,3\n",
        ];
        for text in none.into_iter().chain(bad) {
            assert_eq!(Cycles::parse(text), None, "{text:?}");
        }
    }
}
