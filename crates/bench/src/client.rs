//! A workload of ours in a worker process, and one query of its endpoint as a collector makes it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use telltale_runtime::{Device, DeviceDescription, MemoryKind, Options, Runtime};
use telltale_wire::{FrameReader, Query, QueryKind, Reply, Report, frame};

use crate::seed::DEVICES;
use crate::sweep::OTHER_KINDS;

/// Bytes of each kind but DRAM on each device.
const OTHER_KINDS_BYTES: u64 = 2048;
/// Bytes taken from the socket at once: more than any answer here has.
const READ_BYTES: usize = 4 * 1024;

/// A runtime with its files in `directory` and no say of the environment.
pub fn runtime_in(directory: &Path, disabled: bool) -> Runtime {
    let mut options = Options::from_variables("bench", |_| None);
    options.directory = Some(directory.to_owned());
    options.disabled = disabled;
    Runtime::start(options)
}

/// Opens all devices of `runtime`, with `base + d` live bytes of DRAM on device d, and some of each
/// other kind that the seed's answer names. For the worker.
pub fn open_devices(runtime: &Runtime, base: u64) -> Vec<Device> {
    (0..u32::try_from(DEVICES).expect("eight fits"))
        .map(|logical_id| {
            let description = DeviceDescription { logical_id, ..DeviceDescription::default() };
            let device = runtime.open_device(description);
            device.allocate_sized(MemoryKind::Dram, base + u64::from(logical_id));
            for kind in OTHER_KINDS {
                device.allocate_sized(kind, OTHER_KINDS_BYTES);
            }
            device
        })
        .collect()
}

/// The endpoint of a process in `directory`.
pub fn endpoint(directory: &Path, pid: u32) -> PathBuf {
    directory.join(format!("metrics_{pid}.sock"))
}

/// The framed question for the memory of all devices.
pub fn memory_query() -> Vec<u8> {
    let query = Query { is_last: true, ..Query::of(QueryKind::Memory) };
    frame(&query.encode()).expect("a query is shorter than the longest frame")
}

/// One query: connect, ask, receive, decode, close.
///
/// # Errors
/// What the socket answers, and an answer that is none.
pub fn ask(socket: &Path, question: &[u8]) -> io::Result<Report> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(question)?;
    let mut frames = FrameReader::default();
    let mut buffer = [0; READ_BYTES];
    while !frames.is_complete() {
        let received = stream.read(&mut buffer)?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        frames.push(&buffer[..received]).map_err(io::Error::other)?;
    }
    let answer = frames.take().expect("a complete frame can be taken");
    match Reply::decode(&answer).map_err(io::Error::other)? {
        Reply::Report(report) => Ok(*report),
        Reply::Refused(refusal) => Err(io::Error::other(refusal.text)),
    }
}
