//! The errors that a PCI function counts, as the kernel's files of Advanced Error Reporting show them
//! (`Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats`; texts of `drivers/pci/pcie/aer.c`).

use std::fmt::Write;

/// How grave errors of a PCI function are: each has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AerSeverity {
    /// The link corrected them by itself.
    Correctable,
    /// A transaction was lost, the link is sound.
    Nonfatal,
    /// The link is unreliable.
    Fatal,
}

/// What is counted of each severity since the function was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AerCounts([u64; 3]);

/// The files, by which faults name the counters.
pub(super) const FILES: [(AerSeverity, &str); 3] = [
    (AerSeverity::Correctable, "aer_dev_correctable"),
    (AerSeverity::Nonfatal, "aer_dev_nonfatal"),
    (AerSeverity::Fatal, "aer_dev_fatal"),
];

const CORRECTABLE: [&str; 8] =
    ["RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF"];
const UNCORRECTABLE: [&str; 18] = [
    "Undefined",
    "DLP",
    "SDES",
    "TLP",
    "FCP",
    "CmpltTO",
    "CmpltAbrt",
    "UnxCmplt",
    "RxOF",
    "MalfTLP",
    "ECRC",
    "UnsupReq",
    "ACSViol",
    "UncorrIntErr",
    "BlockedTLP",
    "AtomicOpBlocked",
    "TLPBlockedErr",
    "PoisonTLPBlocked",
];

// === impl AerCounts ===

impl AerCounts {
    /// Counts so many more.
    pub(crate) fn raise(&mut self, severity: AerSeverity, count: u32) {
        self.0[Self::place(severity)] += u64::from(count);
    }

    /// The text of a severity's file without the newline at its end. All errors are of one sort:
    /// receiver errors, completions that timed out, errors of the data link protocol.
    pub(crate) fn text(&self, severity: AerSeverity) -> String {
        let (sorts, counted, total): (&[&str], _, _) = match severity {
            AerSeverity::Correctable => (&CORRECTABLE, "RxErr", "TOTAL_ERR_COR"),
            AerSeverity::Nonfatal => (&UNCORRECTABLE, "CmpltTO", "TOTAL_ERR_NONFATAL"),
            AerSeverity::Fatal => (&UNCORRECTABLE, "DLP", "TOTAL_ERR_FATAL"),
        };
        let count = self.0[Self::place(severity)];
        let mut text = String::new();
        for sort in sorts {
            let of_sort = if *sort == counted { count } else { 0 };
            writeln!(text, "{sort} {of_sort}").expect("a string takes any text");
        }
        text + &format!("{total} {count}")
    }

    fn place(severity: AerSeverity) -> usize {
        let found = FILES.iter().position(|(of, _)| *of == severity);
        found.expect("the table has every severity")
    }
}
