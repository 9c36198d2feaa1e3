//! What the endpoint of a program says.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use telltale_wire::{FrameReader, Query, QueryKind, Reply, Report, frame};

const TIMEOUT: Duration = Duration::from_secs(60);

/// What the endpoint at `path` says.
pub(crate) fn ask(path: &Path) -> Report {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&frame(&Query::of(QueryKind::All).encode()).unwrap()).unwrap();
    let mut reader = FrameReader::default();
    while !reader.is_complete() {
        let mut bytes = vec![0; reader.wanted_bytes()];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "it answers before it hangs up");
        reader.push(&bytes[..count]).unwrap();
    }
    match Reply::decode(&reader.take().unwrap()).unwrap() {
        Reply::Report(report) => *report,
        Reply::Refused(refusal) => panic!("{refusal}"),
    }
}
