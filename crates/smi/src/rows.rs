//! Which rows a process has, the same in every view: the table, the details and CSV.

use telltale_schema::memory::{MemoryKind, MemoryUsage};
use telltale_schema::snapshot::{Accounting, HeldDevice, HeldUsage};

/// One kind of memory on one device; or all of them, where no kind is mentioned.
pub(crate) struct MemoryRow {
    /// The kind, where one is mentioned.
    pub(crate) kind: Option<MemoryKind>,
    usage: Option<HeldUsage>,
}

/// The rows of a process that holds `all` these devices: one each, or one without a device. A device
/// that it merely has open beside others has no row: nothing is on it, see [`beside`].
pub(crate) fn devices(all: &[HeldDevice]) -> Vec<Option<&HeldDevice>> {
    let (idle, mut rows): (Vec<_>, Vec<_>) =
        all.iter().map(Some).partition(|held| held.is_some_and(is_idle));
    if rows.is_empty() {
        rows = idle;
    }
    if rows.is_empty() {
        rows.push(None);
    }
    rows
}

/// The devices that a process merely has open, where they have no row.
pub(crate) fn beside(all: &[HeldDevice]) -> Vec<&HeldDevice> {
    let idle: Vec<_> = all.iter().filter(|held| is_idle(held)).collect();
    if idle.len() == all.len() { Vec::new() } else { idle }
}

fn is_idle(held: &HeldDevice) -> bool {
    held.accounting == Accounting::OpenOnly
}

/// What a process has on a device, kind by kind; one line where no kind is mentioned.
pub(crate) fn lines(held: Option<&HeldDevice>) -> Vec<MemoryRow> {
    let kinds = held.map_or(&[][..], |held| &held.kinds);
    if kinds.is_empty() {
        return vec![MemoryRow {
            kind: None,
            usage: held.and_then(|held| held.accounting.of_nothing()),
        }];
    }
    kinds.iter().map(|one| MemoryRow { kind: Some(one.kind), usage: Some(one.usage) }).collect()
}

impl MemoryRow {
    /// Bytes allocated and not freed, where reported.
    pub(crate) fn live_bytes(&self) -> Option<u64> {
        self.usage.map(|usage| usage.live_bytes())
    }

    /// Another value, where the process recorded it.
    pub(crate) fn recorded(&self, shown_metric: impl Fn(&MemoryUsage) -> u64) -> Option<u64> {
        self.usage.as_ref().and_then(HeldUsage::recorded).map(shown_metric)
    }
}

#[cfg(test)]
mod tests {
    use super::{beside, devices, lines};
    use telltale_schema::snapshot::{Accounting, HeldDevice};

    fn shown(accounts: &[Accounting]) -> (Vec<Option<usize>>, Vec<usize>) {
        let held =
            |(device, accounting)| HeldDevice { device, accounting, ..HeldDevice::default() };
        let all: Vec<HeldDevice> = accounts.iter().copied().enumerate().map(held).collect();
        (
            devices(&all).iter().map(|held| held.map(|held| held.device)).collect(),
            beside(&all).iter().map(|held| held.device).collect(),
        )
    }

    #[test]
    fn a_gateway_has_a_row_only_if_there_is_no_other() {
        use Accounting::{BytesOnly, OpenOnly, Recorded, Unknown};
        assert_eq!(shown(&[OpenOnly, Recorded]), (vec![Some(1)], vec![0]));
        assert_eq!(shown(&[OpenOnly, OpenOnly]), (vec![Some(0), Some(1)], vec![]));
        assert_eq!(shown(&[BytesOnly, Unknown]), (vec![Some(0), Some(1)], vec![]));
        assert_eq!(shown(&[]), (vec![None], vec![]));
    }

    #[test]
    fn a_line_without_a_kind_says_as_much_as_is_known() {
        let shown_metrics = |held: Option<&HeldDevice>| {
            let [line] = &lines(held)[..] else { panic!("one line") };
            (line.live_bytes(), line.recorded(|usage| usage.peak_bytes))
        };
        let of = |accounting| HeldDevice { accounting, ..HeldDevice::default() };
        assert_eq!(shown_metrics(Some(&of(Accounting::Recorded))), (Some(0), Some(0)));
        assert_eq!(shown_metrics(Some(&of(Accounting::BytesOnly))), (Some(0), None));
        assert_eq!(shown_metrics(Some(&of(Accounting::Unknown))), (None, None));
        assert_eq!(shown_metrics(None), (None, None));
    }
}
