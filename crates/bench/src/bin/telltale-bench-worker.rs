//! One process that a benchmark queries: `telltale-bench-worker DIRECTORY SERVICE NUMBER [PROCESSOR]`.
//!
//! It serves until its standard input ends or says to stop, and leaves nothing behind.
//!
//! `telltale-bench-worker launch PROGRAM [ARGUMENT...]` instead runs a program once and prints what that
//! took; `telltale-bench-worker nothing` ends at once, as the least that a program can do.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use rustix::time::ClockId;
use telltale_bench::endpoint::BareServer;
use telltale_bench::pinning::Pinned;
use telltale_bench::sample::reading_ns;
use telltale_bench::seed::SeedServer;
use telltale_bench::workers::{READY, STOP, WorkerService};
use telltale_bench::{client, launch, machine, rundir};
use telltale_schema::memory::MemoryKind;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("telltale-bench-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [name] if name == launch::NOTHING => Ok(()),
        [name, program, rest @ ..] if name == launch::LAUNCH => {
            println!("{}", launch::here(Path::new(program), rest)?);
            Ok(())
        }
        _ => serve(&arguments),
    }
}

fn serve(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [directory, service, number, rest @ ..] = arguments else {
        return Err("expected DIRECTORY SERVICE NUMBER [PROCESSOR]; cargo bench starts it".into());
    };
    let directory = Path::new(directory);
    let service = WorkerService::parse(service, number)
        .ok_or("SERVICE is one of workers.rs, with a number")?;
    // Before any thread starts, so that the server's thread inherits it.
    let _pinned = match rest {
        [processor, ..] => Some(Pinned::to(processor.parse()?)?),
        [] => None,
    };
    match service {
        WorkerService::Seed { base } => {
            let server = SeedServer::start(directory, base)?;
            serve_until_stopped(directory)?;
            drop(server);
        }
        WorkerService::Ours { base } => {
            let runtime = client::runtime_in(directory, false);
            let devices = client::open_devices(&runtime, base);
            serve_until_stopped(directory)?;
            drop(devices);
        }
        WorkerService::Bare => {
            let server = BareServer::start(directory)?;
            serve_until_stopped(directory)?;
            drop(server);
        }
        WorkerService::Machine { size } => {
            let emulator = machine::emulate(directory, size)?;
            let reported = wait_until_ordered()?;
            // The emulator may write while others remove: what is left goes after its end.
            drop(emulator);
            if !reported {
                rundir::remove(directory);
            }
        }
        WorkerService::Workload { size, number } => {
            let held = machine::hold(directory, size, number)?;
            serve_until_stopped(directory)?;
            drop(held);
        }
        WorkerService::Visitor { number } => {
            let began_ns = reading_ns(ClockId::Monotonic);
            let held = machine::visit(directory, number)?;
            answer_lines(directory, || began_ns)?;
            drop(held);
        }
        WorkerService::Toiler { pairs } => toil(directory, pairs)?,
        WorkerService::Idle => serve_until_stopped(directory)?,
    }
    Ok(())
}

/// Works once for each line, and says what that took.
fn toil(directory: &Path, pairs: u64) -> io::Result<()> {
    let (client, devices) = machine::visit(directory, 0)?;
    let device = devices.first().ok_or_else(|| io::Error::other("a device has a chip"))?;
    answer_lines(directory, || {
        let before = reading_ns(ClockId::ProcessCPUTime);
        for pair in 0..pairs {
            let address = (1 << 40) + pair % 1_000 * 64;
            device.allocate(MemoryKind::L1, address, 64);
            device.free(MemoryKind::L1, address);
        }
        reading_ns(ClockId::ProcessCPUTime) - before
    })?;
    drop(client);
    Ok(())
}

/// Says that this worker is ready and answers each line with a number, until it should end.
fn answer_lines(directory: &Path, mut answer: impl FnMut() -> f64) -> io::Result<()> {
    writeln!(io::stdout(), "{READY}")?;
    let mut line = String::new();
    while io::stdin().read_line(&mut line)? > 0 {
        if line.trim_end() == STOP {
            return Ok(());
        }
        writeln!(io::stdout(), "{}", answer())?;
        line.clear();
    }
    rundir::remove(directory);
    Ok(())
}

fn serve_until_stopped(directory: &Path) -> io::Result<()> {
    if !wait_until_ordered()? {
        rundir::remove(directory);
    }
    Ok(())
}

/// Says that this worker is ready and waits until it should end. False when the parent vanished.
fn wait_until_ordered() -> io::Result<bool> {
    writeln!(io::stdout(), "{READY}")?;
    io::stdout().flush()?;
    let mut line = String::new();
    Ok(io::stdin().read_line(&mut line).is_ok() && line.trim_end() == STOP)
}
