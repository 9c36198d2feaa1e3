//! Prints what reading the ledgers of 100 processes with 8 devices each costs here: again and
//! again as a service does, and once from a cold start. The comparison with other designs is in
//! `telltale-bench`.

use std::time::Instant;

use telltale_ledger::directory::{DirectoryEnvironment, Purpose, RuntimeDirectory};
use telltale_ledger::{DeviceEntry, Ledger, LedgerOwner, LedgerReader, LedgerSweep};
use telltale_schema::clock::Timestamp;
use telltale_schema::memory::MemoryKind;

const LEDGERS: u64 = 100;
const DEVICES: u32 = 8;
const REPEATS: usize = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let environment = DirectoryEnvironment::of_this_process();
    let directory = RuntimeDirectory::for_writing(None, &environment)?;
    for kinds in [1, 3] {
        let ledgers = write(&directory, kinds)?;
        let mut sweep = LedgerSweep::new();
        let mut readers = Vec::new();
        for ledger in &ledgers {
            sweep.insert(LedgerReader::open_at(&directory, ledger.file_name())?);
            readers.push(LedgerReader::open_at(&directory, ledger.file_name())?);
        }
        println!("{LEDGERS} ledgers, {DEVICES} devices, {kinds} kinds each, µs for all:");
        println!("  swept together     {:.1}", median(|| sweep.read_all()));
        println!("  read one by one    {:.1}", median(|| readers.iter_mut().for_each(read)));
        println!("  cold               {:.1}", median(|| cold(directory.path())));
    }
    Ok(())
}

fn write(
    directory: &RuntimeDirectory,
    kinds: usize,
) -> Result<Vec<Ledger>, Box<dyn std::error::Error>> {
    let mut ledgers = Vec::new();
    for number in 0..LEDGERS {
        let mut owner = LedgerOwner::of_this_process("read_cost", Timestamp(0))?;
        owner.identity.start_time_ticks += number;
        let ledger = Ledger::create(directory, owner)?;
        let recorder = ledger.recorder();
        for logical_id in 0..DEVICES {
            let entry = DeviceEntry { logical_id, ..DeviceEntry::default() };
            let slot = ledger.add_device(&entry)?;
            for kind in &MemoryKind::ALL[..kinds] {
                recorder.allocated(slot, *kind, 4096);
            }
        }
        ledgers.push(ledger);
    }
    Ok(ledgers)
}

fn read(reader: &mut LedgerReader) {
    assert!(reader.read().is_ok_and(|reading| !reading.torn), "nobody writes");
}

fn cold(path: &std::path::Path) {
    let directory = RuntimeDirectory::open(path, Purpose::Reading).expect("it was open before");
    let listing = directory.list().expect("it can be listed");
    for entry in listing.ledgers {
        read(&mut LedgerReader::open_at(&directory, &entry.name).expect("it was open before"));
    }
}

fn median(mut measure: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let begin = Instant::now();
            measure();
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPEATS / 2]
}
