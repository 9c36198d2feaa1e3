//! Options of processes that attach, and child processes that do: this test program, started again
//! with an order in its environment.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use telltale_harness::ChildGuard;
use telltale_ledger::region::writer::{PidNamespace, RegionLayout, RegionOptions, RegionWriter};
use telltale_ledger::region::{Region, RegionKind, read};

use crate::region::samples::{ID, NOW};

/// How long children get for what takes milliseconds on an idle machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

const ORDER: &str = "TELLTALE_TEST_REGION_ORDER";
const DIRECTORY: &str = "TELLTALE_TEST_REGION_MEMBER_DIRECTORY";

/// A member with a row, of this process's pid.
pub(crate) fn options(layout: RegionLayout) -> RegionOptions {
    let (board_serial, asic_id) = match layout {
        RegionLayout::V1 => (ID >> 8, ID & 0xff),
        RegionLayout::V3 | RegionLayout::V4 => (0, ID),
    };
    RegionOptions {
        layout,
        per_pid: true,
        name_id: ID,
        board_serial,
        asic_id,
        device_id: 3,
        pid: std::process::id(),
        process_name: "trainer".into(),
        pid_namespace: PidNamespace::Shared,
        // Many members on a busy machine.
        lock_wait: Duration::from_secs(2),
    }
}

/// The layout that a number selects.
pub(crate) fn numbered(number: u64) -> RegionLayout {
    let mut all = RegionLayout::NUMBERED.into_iter();
    all.find(|(known, _)| u64::from(*known) == number).expect("a layout's number").1
}

/// Attaches this process.
pub(crate) fn attach(directory: &Path, options: &RegionOptions) -> RegionWriter {
    RegionWriter::attach(directory, options).expect("the region can be attached to")
}

/// The region as our own reader sees it.
pub(crate) fn region(directory: &Path) -> Region {
    read(directory, ID, NOW).expect("the region can be read").region
}

/// All totals, all rows' and all chips' bytes, and the references: what must be zero at the end.
pub(crate) fn remains(region: &Region) -> (u128, usize, u128, u32) {
    let chips = region.chips.iter().map(|row| row.bytes.sum()).sum();
    (region.totals.sum(), region.processes.len(), chips, region.reference_count)
}

/// A command that runs `program`, a copy of this one, as [`child`] with an order.
pub(crate) fn order_command(program: &Path, directory: &Path, order: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--exact", "region::members::child", "--nocapture"]);
    command.env(ORDER, order).env(DIRECTORY, directory).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command
}

/// Starts a child with an order.
pub(crate) fn start(directory: &Path, order: &str) -> ChildGuard {
    let program = std::env::current_exe().expect("a test knows its own program");
    ChildGuard::spawn(&mut order_command(&program, directory, order))
}

/// Lets a child that waits for its input's end finish, and sees that all went well.
pub(crate) fn finish(mut child: ChildGuard) {
    drop(child.child().stdin.take());
    let status = child.wait_within("a member that was told to finish", TIMEOUT);
    assert!(status.success(), "{status}");
}

/// What a child does: attaches and churns `rounds` times, then attaches and holds `hold` bytes until
/// its input ends, or churns for ever if the order ends so. With `refused` it expects that error
/// instead. Without an order this is the ordinary run of the tests, which has no part in it.
#[test]
fn child() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let directory = std::env::var_os(DIRECTORY).expect("an order comes with a directory");
    let words: HashMap<&str, &str> =
        order.split(' ').filter_map(|word| word.split_once('=')).collect();
    let number = |name| words.get(name).map_or(0, |word| word.parse().expect("a number"));
    let layout = numbered(number("layout"));
    let mut member = options(layout);
    member.per_pid = words["rows"] == "yes";
    if let Some(error) = words.get("refused") {
        let attached = RegionWriter::attach(Path::new(&directory), &member);
        let text = format!("{:?}", attached.expect_err("the region refuses this process"));
        assert!(text.starts_with(error), "{text}");
        return;
    }
    for _ in 0..number("rounds") {
        let writer = attach(Path::new(&directory), &member);
        churn(&writer, number("pairs"));
        writer.detach().expect("nobody holds the lock for long");
    }
    let writer = attach(Path::new(&directory), &member);
    writer.record_allocation(RegionKind::Dram, number("hold"), 3);
    if order.ends_with("churn") {
        loop {
            churn(&writer, 1000);
        }
    }
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).expect("the input ends");
    writer.record_deallocation(RegionKind::Dram, number("hold"), 3);
}

/// Balanced allocations of two threads on two chips.
fn churn(writer: &RegionWriter, pairs: u64) {
    std::thread::scope(|scope| {
        for chip in [3, 4] {
            scope.spawn(move || {
                for pair in 0..pairs {
                    let bytes = 64 + pair % 4096;
                    writer.record_allocation(RegionKind::Dram, bytes, chip);
                    writer.record_allocation(RegionKind::L1, 7, chip);
                    writer.record_deallocation(RegionKind::Dram, bytes, chip);
                    writer.record_deallocation(RegionKind::L1, 7, chip);
                }
            });
        }
    });
}
