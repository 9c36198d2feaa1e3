//! A workload on an emulated machine: opens a device, allocates and frees in a random order.
//!
//! `churn ROOT ORDINAL SEED STEPS` prints `open` once it has the device, and at the end what it
//! still holds of DRAM on the first chip; with `-` for STEPS it goes on until it is killed.
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

use telltale_emulator::{DeviceClient, DeviceError};
use telltale_schema::memory::MemoryKind;

const KINDS: [MemoryKind; 4] =
    [MemoryKind::Dram, MemoryKind::L1, MemoryKind::Cb, MemoryKind::Trace];
/// Buffers that are kept at most.
const MOST_LIVE: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or(format!("{what} is missing"));
    let root = PathBuf::from(next("ROOT")?);
    let device = DeviceClient::open(&root, next("ORDINAL")?.parse()?)?;
    let mut random: u64 = next("SEED")?.parse::<u64>()? | 1;
    let steps = match next("STEPS")?.as_str() {
        "-" => u64::MAX,
        number => number.parse()?,
    };
    println!("open");
    let mut live: Vec<(usize, MemoryKind, u64, u64)> = Vec::new();
    for _ in 0..steps {
        // Xorshift: any order will do.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let draw = usize::try_from(random >> 40)?;
        if live.len() >= MOST_LIVE || (draw % 5 < 2 && !live.is_empty()) {
            let (chip, kind, address, _) = live.swap_remove(draw % live.len());
            device.free(chip, kind, address)?;
            continue;
        }
        let chip = draw % device.chips().len();
        let (kind, bytes) = (KINDS[draw / 7 % KINDS.len()], 1 + random % 100_000);
        match device.allocate(chip, kind, bytes) {
            Ok(address) => live.push((chip, kind, address, bytes)),
            Err(DeviceError::Allocate(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let held = live.iter().filter(|(chip, kind, ..)| (*chip, *kind) == (0, MemoryKind::Dram));
    println!("{}", held.map(|(.., bytes)| bytes).sum::<u64>());
    Ok(())
}
