//! Prints what counting costs here: one allocation and free by one thread, and by two at once.
//! The comparison with other designs is in `telltale-bench`; this is for a quick look while the
//! writer is changed.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use telltale_ledger::directory::{DirectoryEnvironment, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, DeviceSlot, Ledger, LedgerOwner, Recorder};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

const PAIRS: u64 = 2_000_000;
const REPEATS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = DirectoryEnvironment::of_this_process();
    let directory = RuntimeDirectory::for_writing(None, &environment)?;
    let owner = LedgerOwner::of_this_process("record_cost", Timestamp(0))?;
    let ledger = Ledger::create(&directory, owner)?;
    let slot = ledger.add_device(&DeviceEntry::default())?;
    for bytes in [4096, 1 << 20] {
        println!("buffers of {bytes} bytes, ns per record (allocation or free):");
        let one = ledger_of_its_own(&directory)?;
        let (alone, slot_alone) = &one;
        println!("  one thread               {:.2}", median(|| run(alone, *slot_alone, bytes)));
        println!("  one of several, alone    {:.2}", {
            let _other = ledger.recorder();
            median(|| run(&ledger, slot, bytes))
        });
        println!("  two threads at once      {:.2}", median(|| both(&ledger, slot, bytes)));
    }
    let left = ledger.usage().usage.iter().map(|(_, _, usage)| usage.live_bytes).sum::<u64>();
    println!("live bytes at the end: {left}");
    Ok(())
}

fn ledger_of_its_own(
    directory: &RuntimeDirectory,
) -> Result<(Ledger, DeviceSlot), Box<dyn std::error::Error>> {
    let mut owner = LedgerOwner::of_this_process("record_cost", Timestamp(0))?;
    owner.identity.start_time_ticks += 1;
    let ledger = Ledger::create(directory, owner)?;
    let slot = ledger.add_device(&DeviceEntry::default())?;
    Ok((ledger, slot))
}

fn run(ledger: &Ledger, slot: DeviceSlot, bytes: u64) -> f64 {
    time(&ledger.recorder(), slot, bytes)
}

fn both(ledger: &Ledger, slot: DeviceSlot, bytes: u64) -> f64 {
    let start = Barrier::new(2);
    let one = || {
        let recorder = ledger.recorder();
        start.wait();
        time(&recorder, slot, bytes)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(one);
        let here = one();
        (here + other.join().expect("a timing thread does not panic")) / 2.0
    })
}

fn time(recorder: &Recorder, slot: DeviceSlot, bytes: u64) -> f64 {
    let begin = Instant::now();
    for _ in 0..PAIRS {
        let (slot, bytes) = black_box((slot, bytes));
        recorder.allocated(slot, MemoryKind::Dram, bytes);
        recorder.freed(slot, MemoryKind::Dram, bytes);
    }
    begin.elapsed().as_secs_f64() * 1e9 / (2.0 * PAIRS as f64)
}

fn median(mut measure: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS).map(|_| measure()).collect();
    times.sort_by(f64::total_cmp);
    times[REPEATS / 2]
}
