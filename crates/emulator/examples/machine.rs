//! Runs an emulated machine: `machine ROOT KIND` prints `ready`, ends when its standard input does,
//! and prints how often it had no descriptors left.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Read;
use std::path::Path;

use telltale_emulator::{Emulator, EmulatorOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, root, kind] = arguments.as_slice() else {
        return Err("usage: machine ROOT KIND".into());
    };
    let emulator = Emulator::start(Path::new(root), kind.parse()?, EmulatorOptions::default())?;
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{} pauses", emulator.counters().pauses);
    emulator.shutdown()?;
    Ok(())
}
